/**
 * Forms of the values that people set, in JSON and as a flag. The schema of files, the flags and all error messages follow from the
 * form in each row of the table SITE_FIELDS (site-fields.ts).
 */

import { isEverybody, parseRange } from '../addresses/address.ts'
import { isOriginPattern } from './origin.ts'

/** Checks a flag, an argument or an environment variable. */
export interface ValueRule {
  /** Completes "expected ...". */
  readonly expects: string
  readonly accepts: (text: string) => boolean
  /** Returns what a wrong text probably meant. */
  readonly suggest?: (text: string) => string | undefined
  /** Error messages never repeat it. */
  readonly isSecret?: true
}

/** JSON Schema (draft 7). The description completes "expected ...". */
export interface Schema {
  readonly description: string
  readonly type?: string | readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly [keyword: string]: unknown
}

export interface ValueForm<Value> {
  readonly schema: Schema
  /** undefined for a boolean, whose flag is a switch. */
  readonly text?: TextForm<Value>
}

interface TextForm<Value> extends ValueRule {
  readonly placeholder: string // of the value, in help
  readonly repeats?: true // the flag may be given several times
  readonly read: (texts: readonly string[]) => Value
}

/** Returns whether a file of sites, or a flag, could set this value. */
export function isOfForm({ schema, text }: ValueForm<unknown>, value: unknown): boolean {
  const { type, minimum = -Infinity, maximum = Infinity } = schema
  const isSwitch = text === undefined
  if (isSwitch) return typeof value === 'boolean'
  if (type === 'integer' && !Number.isInteger(value)) return false
  if (type === 'integer' || type === 'number')
    return typeof value === 'number' && value >= minimum && value <= maximum
  if ((type === 'array') !== Array.isArray(value)) return false
  return [value].flat().every(item => typeof item === 'string' && text.accepts(item))
}

export const YES_NO: ValueForm<boolean> = { schema: { type: 'boolean', description: 'true or false' } }

export function integer(placeholder: string, minimum: number, maximum: number): ValueForm<number> {
  return number(placeholder, minimum, maximum, 'integer')
}

export function number(
  placeholder: string,
  minimum: number,
  maximum: number,
  type: 'number' | 'integer' = 'number',
): ValueForm<number> {
  const rule = numberRule(minimum, maximum, type)
  return {
    schema: { type, description: rule.expects, minimum, maximum },
    text: { placeholder, ...rule, read: ([text]) => Number(text) },
  }
}

/** Takes decimal digits alone, because `0x1F90` or `1e3` may be meant otherwise. */
export function numberRule(minimum: number, maximum: number, type: 'number' | 'integer'): ValueRule {
  const spelling = type === 'integer' ? /^(0|[1-9]\d*)$/ : /^\d*\.?\d+$/
  return {
    expects: `${type === 'integer' ? 'an' : 'a'} ${type} from ${minimum} to ${maximum}`,
    accepts: text => spelling.test(text) && Number(text) >= minimum && Number(text) <= maximum,
  }
}

export function oneOf<Word extends string>(placeholder: string, ...words: readonly Word[]): ValueForm<Word> {
  const expects = words.join(', ').replace(/, (?=[^,]*$)/, ' or ')
  const accepts = (text: string) => (words as readonly string[]).includes(text)
  const read = ([text]: readonly string[]) => text as Word
  return { schema: { enum: words, description: expects }, text: { placeholder, expects, accepts, read } }
}

/** Removes duplicates. A flag may give several values with commas. */
export function listOf(placeholder: string, rule: ValueRule, description: string): ValueForm<string[]> {
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

const NAME_CHARACTERS_MAX = 100

export const NAME: ValueRule = {
  expects: `1 to ${NAME_CHARACTERS_MAX} printable characters`,
  accepts: isName,
}

export const NAME_FORM: ValueForm<string> = {
  schema: { type: 'string', description: NAME.expects, minLength: 1, maxLength: NAME_CHARACTERS_MAX },
  text: { ...NAME, placeholder: 'NAME', read: ([text]) => text!.trim() },
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

/** Refuses control characters, because names are printed to terminals. */
function isName(text: string): boolean {
  const length = text.trim().length
  return length >= 1 && length <= NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
}

/** People paste origins with a path, capitals or a default port, or without a scheme. */
function nearestOrigin(text: string): string | undefined {
  const scheme = /^(localhost|127\.)/i.test(text) ? 'http' : 'https'
  const address = /^https?:\/\//i.test(text) ? text : `${scheme}://${text}`
  if (!URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return isOriginPattern(origin) ? origin : undefined
}
