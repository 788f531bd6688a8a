/** Flags of `site create` and `site update`, made from the table of site fields. */

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
import { UsageError } from '../sites/errors.ts'
import { SITE_KEY_RULE } from '../sites/rules.ts'
import type { Flag, FlagValue, Input, Positional } from './command.ts'

export const SITE_KEY: Positional = { name: 'SITE_KEY', ...SITE_KEY_RULE }

export const SITE_FLAGS: Readonly<Record<string, Flag>> = Object.fromEntries(FIELDS.flatMap(settingFlags))

/** Only `site update` has these. */
export const CLEARING_FLAGS: Readonly<Record<string, Flag>> = Object.fromEntries(
  FIELDS.flatMap(({ unsetFlag }) => {
    return unsetFlag === undefined || unsetFlag in SITE_FLAGS
      ? []
      : [[unsetFlag, { about: 'Back to the default.' }]]
  }),
)

function fieldsOf(flag: string): readonly SiteField[] {
  return FIELDS.filter(field => field.flag === flag)
}

/** Returns the name that a flag of several fields has for this one (`webdriver` in `--weight webdriver=1`), else undefined. */
function namedPart({ flag, path }: SiteField): string | undefined {
  return fieldsOf(flag!).length > 1 ? path.at(-1) : undefined
}

function settingFlags(field: SiteField): [name: string, flag: Flag][] {
  const { about, plan, flag, falseFlag, unsetFlag, defaultWords } = field
  if (flag === undefined) return []
  const rule = flagValue(field)
  // The help gives some defaults in words, such as "any". Whoever passes the words as a value is told how to get the default.
  const suggest = (given: string) =>
    given === defaultWords ? `no --${flag}, or --${unsetFlag} with site update` : rule?.suggest?.(given)
  const value = rule && { ...rule, suggest }
  const [fallback, another] = new Set(fieldsOf(flag).map(defaultText))
  const notes = [
    value === undefined ? `${about}.` : `${about} (${value.expects}).`,
    ...(fallback === undefined || another !== undefined ? [] : [`Default: ${fallback}.`]),
    ...(plan === undefined ? [] : [`Needs --plan ${plan}.`]),
  ]
  // A flag that clears several fields, such as --no-limits, goes with one that sets one of them.
  const clearsThisAlone = FIELDS.filter(other => other.unsetFlag === unsetFlag).length === 1
  const contradicts = value === undefined ? falseFlag : clearsThisAlone ? unsetFlag : undefined
  const setting: [string, Flag] = [flag, { about: notes.join(' '), value, contradicts }]
  return falseFlag === undefined
    ? [setting]
    : [setting, [falseFlag, { about: `The opposite of --${flag}.`, value }]]
}

function flagValue(field: SiteField): FlagValue | undefined {
  const { text } = field.form
  if (namedPart(field) === undefined) return text
  const parts = fieldsOf(field.flag!).map(({ path }) => path.at(-1)!)
  const one = `one of ${parts.join(', ')}`
  const repeats = true
  if (text === undefined)
    return { placeholder: 'NAME', repeats, expects: one, accepts: given => parts.includes(given) }
  const accepts = (given: string) => parts.some(part => text.accepts(valueOfPart(part, given) ?? ''))
  return { placeholder: text.placeholder, repeats, expects: `${one}, then = and ${text.expects}`, accepts }
}

/** Returns the value `1` in `webdriver=1` for `webdriver`, and undefined for another part. */
function valueOfPart(part: string, given: string): string | undefined {
  return given.startsWith(`${part}=`) ? given.slice(part.length + 1) : undefined
}

/** The fields that a command's flags set, each with its value: undefined for the default. */
type GivenFields = ReadonlyMap<SiteField, unknown>

/** @throws UsageError */
export function givenFields(input: Input): GivenFields {
  const given = new Map<SiteField, unknown>()
  for (const field of FIELDS) {
    const value = givenValue(field, input)
    if (value !== undefined || (field.unsetFlag !== undefined && input.has(field.unsetFlag)))
      given.set(field, value)
  }
  return given
}

function givenValue(field: SiteField, input: Input): unknown {
  const { form, flag, falseFlag } = field
  if (flag === undefined) return undefined
  const part = namedPart(field)
  if (falseFlag !== undefined) {
    const isGiven = (name: string) =>
      part === undefined ? input.has(name) : input.texts(name)?.includes(part) === true
    if (isGiven(flag) && isGiven(falseFlag))
      throw new UsageError(`--${flag}, --${falseFlag}: expected one of the two for ${part}, not both`)
    return isGiven(flag) || isGiven(falseFlag) ? isGiven(flag) : undefined
  }
  const all = input.texts(flag) ?? []
  const texts = part === undefined ? all : all.flatMap(given => valueOfPart(part, given) ?? [])
  if (texts.length === 0) return undefined
  if (texts.length > 1 && !form.text!.repeats) throw new UsageError(`--${flag}: expected ${part} once`)
  return form.text!.read(texts)
}

/** @throws UsageError if the fields contradict each other */
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
