/**
 * Kinds of values that people set: the form of a value in JSON, and the texts that stand for it in flags. A row of a table names
 * its kind (site-fields.ts, policy.ts). The schema of a file, flags and all error lines follow from the kind.
 */

import { parseRange } from './address.ts'
import { isEverybody } from './client-address.ts'
import { isOriginPattern } from './origin.ts'

/** A value that is given as text: by a flag, by position or by an environment variable. */
export interface ValueRule {
  /** Completes "expected ..." in error lines. */
  readonly expects: string
  readonly accepts: (text: string) => boolean
  /** What was probably meant by a text that is not accepted. */
  readonly suggest?: (text: string) => string | undefined
  /** Never repeated in an error line. */
  readonly isSecret?: true
}

/** JSON Schema (draft 7). The description completes "expected ..." in error lines. */
export interface Schema {
  readonly description: string
  readonly [keyword: string]: unknown
}

export interface Kind<Value> {
  readonly schema: Schema
  /** undefined for values that no text stands for: a flag of a boolean is a switch, and that of an object names a file. */
  readonly text?: TextForm<Value>
}

/** How texts stand for a value: one text, or several for a list. */
export interface TextForm<Value> extends ValueRule {
  /** Stands for a text in the help. */
  readonly placeholder: string
  /** Whether each text is one of a list. */
  readonly repeats?: true
  /** @param texts that were accepted */
  readonly read: (texts: readonly string[]) => Value
}

export const YES_NO: Kind<boolean> = { schema: { type: 'boolean', description: 'true or false' } }

export function integer(placeholder: string, minimum: number, maximum: number): Kind<number> {
  return number(placeholder, minimum, maximum, 'integer')
}

export function number(
  placeholder: string,
  minimum: number,
  maximum: number,
  type: 'number' | 'integer' = 'number',
): Kind<number> {
  const expects = `${type === 'integer' ? 'an' : 'a'} ${type} from ${minimum} to ${maximum}`
  const spelling = type === 'integer' ? /^(0|[1-9]\d*)$/ : /^\d*\.?\d+$/
  const accepts = (text: string) => spelling.test(text) && Number(text) >= minimum && Number(text) <= maximum
  return {
    schema: { type, description: expects, minimum, maximum },
    text: { placeholder, expects, accepts, read: ([text]) => Number(text) },
  }
}

export function oneOf<Word extends string>(placeholder: string, ...words: readonly Word[]): Kind<Word> {
  const expects = words.join(', ').replace(/, (?=[^,]*$)/, ' or ')
  const accepts = (text: string) => (words as readonly string[]).includes(text)
  const read = ([text]: readonly string[]) => text as Word
  return {
    schema: { enum: words, description: expects },
    text: { placeholder, expects, accepts, read },
  }
}

/** One text, without spaces around it. */
export function textOf(placeholder: string, rule: ValueRule, maxLength: number): Kind<string> {
  return {
    schema: { type: 'string', description: rule.expects, minLength: 1, maxLength },
    text: { ...rule, placeholder, read: ([text]) => text!.trim() },
  }
}

/** A list of texts, each once. A flag may give several at once, with commas between them. */
export function listOf(placeholder: string, rule: ValueRule, description: string): Kind<string[]> {
  return {
    schema: { type: 'array', items: { type: 'string', description: rule.expects }, description },
    text: {
      ...rule,
      placeholder,
      repeats: true,
      accepts: text => text.split(',').every(rule.accepts),
      read: texts => [...new Set(texts.flatMap(text => text.split(',')))],
    },
  }
}

/** Any of some values by their names. */
export function objectOf<Values extends object>(
  kinds: Readonly<Record<string, Kind<unknown>>>,
  description: string,
): Kind<Values> {
  const properties = Object.entries(kinds).map(([name, { schema }]) => [name, schema] as const)
  return { schema: objectSchema(Object.fromEntries(properties), { description }) }
}

/** The schema of an object that has no other properties than these. */
export function objectSchema(
  properties: Readonly<Record<string, Schema>>,
  annotations: Schema & { readonly required?: readonly string[] },
): Schema {
  return { type: 'object', ...annotations, properties, additionalProperties: false }
}

export const NAME_CHARACTERS_MAX = 100

export const NAME: ValueRule = {
  expects: `1 to ${NAME_CHARACTERS_MAX} printable characters`,
  accepts: isName,
}

export const ORIGIN: ValueRule = {
  expects: 'an origin as browsers send it, such as https://example.com or https://*.example.com',
  accepts: isOriginPattern,
  suggest: nearestOrigin,
}

export const CIDR: ValueRule = {
  expects: 'an IP address or a CIDR, such as 203.0.113.7 or 203.0.113.0/24',
  accepts: text => parseRange(text) !== undefined,
}

export const NETWORK: ValueRule = {
  expects: 'an IP address or a CIDR such as 203.0.113.0/24, not everybody (/0)',
  accepts: text => CIDR.accepts(text) && !isEverybody(text),
}

/** Names are printed to terminals, so they hold no control characters. */
function isName(text: string): boolean {
  const length = text.trim().length
  return length >= 1 && length <= NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
}

/** Addresses copied from a browser's address bar have a path, capitals or a default port, or lack their scheme. */
function nearestOrigin(text: string): string | undefined {
  const scheme = /^(localhost|127\.)/i.test(text) ? 'http' : 'https'
  const address = /^https?:\/\//i.test(text) ? text : `${scheme}://${text}`
  if (!URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return isOriginPattern(origin) ? origin : undefined
}
