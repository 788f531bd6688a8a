/**
 * Flags of `site create` and `site update`, made from the table of site fields (domain/site-fields.ts). A row of that table may name:
 *
 *   flag         sets the field: --base 20. A boolean becomes true: --require-origin
 *   falseFlag    makes a boolean false: --no-require-origin
 *   unsetFlag    sets each field that names it to its default: --no-weights
 *
 * If several rows name one flag, its value begins with the last part of the field's path: --weight webdriver=1, --fail-open verify.
 */

import {
  BASE_BITS,
  completed,
  defaultText,
  difficultyProblem,
  FIELDS,
  isOutsidePlan,
  type SiteField,
  type SiteSettings,
  withValue,
} from '../domain/site-fields.ts'
import { SITE_KEY_RULE } from '../sites/rules.ts'
import { UsageError } from '../words/errors.ts'
import type { Flag, FlagValue, Input, Positional } from './command.ts'

export const SITE_KEY: Positional = { name: 'SITE_KEY', ...SITE_KEY_RULE }

/** Rows that share a flag make equal entries: they differ only in path and default, and `flagsOfField` looks at all of them. */
export const SITE_FLAGS: Readonly<Record<string, Flag>> = Object.assign({}, ...FIELDS.map(flagsOfField))

/** Flags that only `site update` has. `--base`, which also clears `--solve-ms`, is in SITE_FLAGS. */
export const CLEARING_FLAGS: Readonly<Record<string, Flag>> = Object.fromEntries(
  FIELDS.flatMap(({ unsetFlag }) => unsetFlag ?? [])
    .filter(name => !(name in SITE_FLAGS))
    .map(name => [name, { about: 'Back to the default.' }]),
)

function fieldsOf(flag: string): readonly SiteField[] {
  return FIELDS.filter(field => field.flag === flag)
}

/** The name of this field in the value of a shared flag (`webdriver` in `--weight webdriver=1`); undefined for a flag of its own. */
function namedPart({ flag, path }: SiteField): string | undefined {
  return flag !== undefined && fieldsOf(flag).length > 1 ? path.at(-1) : undefined
}

function flagsOfField(field: SiteField): Record<string, Flag> {
  const { about, plan, flag, falseFlag, unsetFlag } = field
  if (flag === undefined) return {}
  const fields = fieldsOf(flag)
  const value = fields.length > 1 ? valueWithName(fields) : valueOfOneField(field)
  const defaults = new Set(fields.map(defaultText))
  const [fallback] = defaults.size === 1 ? defaults : []
  const notes = [
    value === undefined ? `${about}.` : `${about} (${value.expects}).`,
    ...(fallback === undefined ? [] : [`Default: ${fallback}.`]),
    ...(plan === undefined ? [] : [`Needs --plan ${plan}.`]),
  ]
  // --no-origins contradicts --origin; but --no-limits, which clears other fields too, goes with --limit-verify.
  const clearsThisAlone = FIELDS.filter(other => other.unsetFlag === unsetFlag).length === 1
  return {
    [flag]: { about: notes.join(' '), value, contradicts: clearsThisAlone ? unsetFlag : undefined },
    ...(falseFlag && { [falseFlag]: { about: `The opposite of --${flag}.`, value } }),
  }
}

function valueOfOneField({ form, flag, unsetFlag, defaultWords }: SiteField): FlagValue | undefined {
  const { text } = form
  if (text === undefined || unsetFlag === undefined) return text
  // The help gives some defaults in words, such as "any". Whoever passes the words as a value is told how to get the default.
  const restoring = `no --${flag}, or --${unsetFlag} with site update`
  return { ...text, suggest: given => (given === defaultWords ? restoring : text.suggest?.(given)) }
}

function valueWithName(fields: readonly SiteField[]): FlagValue {
  const { text } = fields[0]!.form
  const parts = fields.map(({ path }) => path.at(-1)!)
  const one = `one of ${parts.join(', ')}`
  const accepts = (given: string) =>
    text === undefined
      ? parts.includes(given)
      : parts.some(part => text.accepts(valueOfPart(part, given) ?? '')) // no form accepts ''
  const expects = text === undefined ? one : `${one}, then = and ${text.expects}`
  return { placeholder: text?.placeholder ?? 'NAME', repeats: true, expects, accepts }
}

/** Returns the value `1` in `webdriver=1` for `webdriver`, '' in `webdriver`, and undefined for another part. */
function valueOfPart(part: string, given: string): string | undefined {
  if (given === part) return ''
  return given.startsWith(`${part}=`) ? given.slice(part.length + 1) : undefined
}

/** The fields that a command's flags set, each with its value: undefined for the default. */
type GivenFields = ReadonlyMap<SiteField, unknown>

export function givenFields(input: Input): GivenFields {
  const given = new Map<SiteField, unknown>()
  for (const field of FIELDS) {
    const value = givenValue(field, input)
    if (value !== undefined || (field.unsetFlag !== undefined && input.has(field.unsetFlag)))
      given.set(field, value)
  }
  return given
}

/** Returns undefined if no flag sets the field. */
function givenValue(field: SiteField, input: Input): unknown {
  const { form, path, flag, falseFlag } = field
  const texts = textsFor(field, flag, input)
  if (falseFlag === undefined) {
    // The field is no boolean.
    if (texts === undefined) return undefined
    if (texts.length > 1 && !form.text!.repeats)
      throw new UsageError(`--${flag}: expected ${path.at(-1)} once`)
    return form.text!.read(texts)
  }
  const isTrue = texts !== undefined
  const isFalse = textsFor(field, falseFlag, input) !== undefined
  if (isTrue && isFalse)
    throw new UsageError(`--${flag}, --${falseFlag}: expected one of the two for ${path.at(-1)}, not both`)
  return isTrue || isFalse ? isTrue : undefined
}

/** Returns the texts that the command line gives the flag for this field, or undefined if it has none for it. */
function textsFor(field: SiteField, flag: string | undefined, input: Input): readonly string[] | undefined {
  const given = flag === undefined ? undefined : input.texts(flag)
  const part = namedPart(field)
  if (given === undefined || part === undefined) return given
  const texts = given.flatMap(text => valueOfPart(part, text) ?? [])
  return texts.length === 0 ? undefined : texts
}

/** Returns the settings with the given values. @throws UsageError if they contradict each other */
export function withGiven(before: SiteSettings, given: GivenFields): SiteSettings {
  // If the base is the default of the puzzle, a change of the puzzle changes it too.
  const { puzzle, difficulty } = completed(before)
  const base = difficulty.base === BASE_BITS[puzzle] ? undefined : difficulty.base
  let settings = withValue(before, 'difficulty.base', base)
  for (const [field, value] of given) settings = withValue(settings, field.name, value)
  const after = completed(settings)
  for (const [field, value] of given) {
    if (value !== undefined && isOutsidePlan(field, after.plan))
      throw new UsageError(`--${field.flag}: expected --plan ${field.plan}, got ${after.plan}`)
  }
  const problem = difficultyProblem(after.difficulty)
  if (problem !== undefined) throw new UsageError(`--min, --base, --max: ${problem}`)
  return after
}
