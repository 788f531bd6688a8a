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
import { SITE_KEY_RULE, UsageError } from '../sites/rules.ts'
import type { Flag, FlagValue, Input, Positional } from './command.ts'

export const SITE_KEY: Positional = { name: 'SITE_KEY', ...SITE_KEY_RULE }

export const SITE_FLAGS: Readonly<Record<string, Flag>> = Object.fromEntries(FIELDS.flatMap(settingFlags))

/** Only `site update` has these. */
export const CLEARING_FLAGS: Readonly<Record<string, Flag>> = Object.fromEntries(
  FIELDS.flatMap(({ clear }) => {
    return clear === undefined || clear in SITE_FLAGS ? [] : [[clear, { about: 'Back to the default.' }]]
  }),
)

/** The fields that a flag sets, by the name that its value gives for each: `--weight webdriver=1` names `webdriver`. */
function setBy(flag: string | undefined): ReadonlyMap<string, SiteField> {
  return new Map(FIELDS.filter(field => field.flag === flag).map(field => [field.path.at(-1)!, field]))
}

/** The name of a field in the value of a flag that several fields share; undefined if the field has the flag to itself. */
function partOf({ flag, path }: SiteField): string | undefined {
  return setBy(flag).size > 1 ? path.at(-1) : undefined
}

function settingFlags(field: SiteField): [name: string, flag: Flag][] {
  const { about, plan, flag, off, clear, otherwise } = field
  if (flag === undefined) return []
  const rule = flagValue(field)
  // The help gives some defaults in words, such as "any". Whoever passes the words as a value is told how to get the default.
  const suggest = (given: string) =>
    given === otherwise ? `no --${flag}, or --${clear} with site update` : rule?.suggest?.(given)
  const value = rule && { ...rule, suggest }
  const [usual, another] = new Set([...setBy(flag).values()].map(defaultText))
  const notes = [
    value === undefined ? `${about}.` : `${about} (${value.expects}).`,
    ...(usual === undefined || another !== undefined ? [] : [`Default: ${usual}.`]),
    ...(plan === undefined ? [] : [`Needs --plan ${plan}.`]),
  ]
  const isCleared = FIELDS.filter(other => other.clear === clear).length === 1
  const contradicts = value === undefined ? off : isCleared ? clear : undefined
  const setting: [string, Flag] = [flag, { about: notes.join(' '), value, contradicts }]
  return off === undefined ? [setting] : [setting, [off, { about: `The opposite of --${flag}.`, value }]]
}

function flagValue(field: SiteField): FlagValue | undefined {
  const { text } = field.form
  if (partOf(field) === undefined) return text
  const parts = [...setBy(field.flag).keys()]
  const one = `one of ${parts.join(', ')}`
  const repeats = true
  if (text === undefined)
    return { placeholder: 'NAME', repeats, expects: one, accepts: given => parts.includes(given) }
  const accepts = (given: string) => parts.some(part => text.accepts(valueFor(part, given) ?? ''))
  return { placeholder: text.placeholder, repeats, expects: `${one}, then = and ${text.expects}`, accepts }
}

/** The value in `webdriver=1`; undefined for another part. */
function valueFor(part: string, given: string): string | undefined {
  return given.startsWith(`${part}=`) ? given.slice(part.length + 1) : undefined
}

/** The fields that a command's flags set. undefined as a value returns the field to its default. */
type GivenFields = ReadonlyMap<SiteField, unknown>

/** @throws UsageError */
export function givenFields(input: Input): GivenFields {
  const given = new Map<SiteField, unknown>()
  for (const field of FIELDS) {
    const value = givenValue(field, input)
    if (value !== undefined || (field.clear !== undefined && input.has(field.clear))) given.set(field, value)
  }
  return given
}

function givenValue(field: SiteField, input: Input): unknown {
  const { form, flag, off } = field
  if (flag === undefined) return undefined
  const part = partOf(field)
  if (off !== undefined) {
    const names = (name: string) => (part === undefined ? input.has(name) : input.texts(name)?.includes(part))
    if (names(flag) && names(off))
      throw new UsageError(`--${flag}, --${off}: expected one of the two for ${part}, not both`)
    return names(flag) || names(off) ? names(flag) === true : undefined
  }
  const all = input.texts(flag) ?? []
  const texts = part === undefined ? all : all.flatMap(given => valueFor(part, given) ?? [])
  if (texts.length === 0) return undefined
  if (texts.length > 1 && !form.text!.repeats) throw new UsageError(`--${flag}: expected ${part} once`)
  return form.text!.read(texts)
}

/** @throws UsageError if the fields contradict each other */
export function withGiven(before: SiteSettings, given: GivenFields): SiteSettings {
  // A base that is its puzzle's default follows the puzzle.
  const { puzzle, difficulty } = completed(before)
  const base = difficulty.base === BASE_BITS[puzzle] ? undefined : difficulty.base
  let settings = withValue(before, { path: ['difficulty', 'base'] }, base)
  for (const [field, value] of given) settings = withValue(settings, field, value)
  const after = completed(settings)
  for (const [field, value] of given) {
    if (value !== undefined && isOutsidePlan(field, after.plan))
      throw new UsageError(`--${field.flag}: expected --plan ${field.plan}, got ${after.plan}`)
  }
  const problem = difficultyProblem(after.difficulty)
  if (problem !== undefined) throw new UsageError(`--min, --base, --max: ${problem}`)
  return after
}
