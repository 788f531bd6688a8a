/**
 * A site's settings, each a line of `SiteSettings` and a row of SITE_FIELDS. The rows give the schema of export files, the flags with
 * their help, and, in the order of the rows, the lines of `site show`, the audit log and docs/reference/sites.md.
 */

import { DIFFICULTY_MAX, DIFFICULTY_MIN, PUZZLES, type PuzzleName } from '../protocol/proof.ts'
import { LIMIT_MAX } from './limits.ts'
import { SCORE_REASONS, SCORE_WEIGHTS, type ScoreReason } from './score.ts'
import {
  CIDR,
  integer,
  listOf,
  NAME_FORM,
  NETWORK,
  number,
  ORIGIN,
  oneOf,
  type ValueForm,
  YES_NO,
} from './value-forms.ts'

export interface SiteSettings {
  name: string
  active: boolean
  plan: 'free' | 'pro'
  origins: string[]
  requireOrigin: boolean
  threshold: number
  minScore: number
  signals: (typeof SIGNALS)[number]
  puzzle: PuzzleName
  difficulty: { base: number; min: number; max: number; solveMs?: number }
  usualRate?: number
  ipRules: { allow: string[]; block: string[] }
  limits?: { challenge?: number; verify?: number; redeem?: number }
  known: { networks: string[]; limit?: number }
  failOpen?: { challenge?: boolean; verify?: boolean }
  scoreWeights?: { [Signal in ScoreReason]?: number }
}

// Names of the fields of SiteSettings. SITE_FIELDS compiles only with a row for each, and with no other row.
type Group = 'difficulty' | 'ipRules' | 'limits' | 'known' | 'failOpen' | 'scoreWeights'
type PartOf<Name extends Group> = `${Name}.${keyof NonNullable<SiteSettings[Name]> & string}`
type FieldName = Exclude<keyof SiteSettings, Group> | { [Name in Group]: PartOf<Name> }[Group]

interface Row {
  readonly form: ValueForm<unknown>
  readonly about: string
  /** The default. A field without one is absent from the record until it is set; only `difficulty.base` has one by its puzzle (`completed`). */
  readonly fallback?: unknown
  /** The default in words, for help and `site show`. */
  readonly defaultWords?: string
  /** The plan that includes the field. A site of another plan keeps the value, which has no effect. */
  readonly plan?: 'pro'
  /** Several fields may share a flag: `--weight webdriver=1`. `active` has none, but commands of its own. */
  readonly flag?: string
  /** Sets "false", as `flag` sets "true". */
  readonly falseFlag?: string
  /** Returns the field to its default; may be the `flag` of another field. */
  readonly unsetFlag?: string
}

/** The default base of a site: a low-end phone solves it in 0.1 s, HashWX in 0.3 s. */
export const BASE_BITS = { sha256: 18, hashwx: 17 } satisfies Record<PuzzleName, number>

/** The mean number of hashes with which 95 % of visitors are done within a second (docs/evidence/effect.md#a-time-instead-of-bits). */
const HASHES_WITHIN_1_S = { sha256: 1.835e6, hashwx: 0.2747e6 } satisfies Record<PuzzleName, number>

/** The most bits with which 95 % of visitors wait at most `solveMs` on a quiet day. In t seconds they do t times the hashes. */
export function baseOf(
  { solveMs, min, max }: { solveMs: number; min: number; max: number },
  puzzle: PuzzleName,
): number {
  const bits = Math.floor(Math.log2(HASHES_WITHIN_1_S[puzzle] * (solveMs / 1000)))
  return Math.max(min, Math.min(max, bits))
}

export const BITS = integer('BITS', DIFFICULTY_MIN, DIFFICULTY_MAX)
/** Below 36 ms, with HashWX 239, even the lowest base (16 bits) takes longer than the target; beyond 10 s, visitors would leave. */
const SOLVE_MS = integer('MS', 20, 10_000)
const PER_MINUTE = integer('N', 1, LIMIT_MAX)
const SHARE = number('N', 0, 1)
const RANGES = listOf('CIDR', CIDR, 'a list of IP addresses and CIDRs')

function ranges(flag: string, defaultWords: string, about: string): Row {
  return { form: RANGES, about, fallback: [], defaultWords, plan: 'pro', flag, unsetFlag: `no-${flag}` }
}

function limit(flag: string, about: string): Row {
  return { form: PER_MINUTE, about, defaultWords: 'the limit of the service', flag, unsetFlag: 'no-limits' }
}

const FAIL_OPEN: Row = {
  form: YES_NO,
  about: 'Whether an endpoint answers from memory while Redis is away',
  defaultWords: 'as POWGATE_FAIL_OPEN says',
  flag: 'fail-open',
  falseFlag: 'fail-closed',
  unsetFlag: 'no-fail-policy',
}

/** What the widget reads of a browser. Signals that it does not read lower no score. */
export const SIGNALS = ['none', 'flags'] as const

const SITE_FIELDS: Readonly<Record<FieldName, Row>> = {
  name: { form: NAME_FORM, about: 'Name of the site, for people', flag: 'name' },
  active: { form: YES_NO, about: 'Whether the site is served', fallback: true },
  plan: {
    form: oneOf('PLAN', 'free', 'pro'),
    about: 'Plan, which costs nothing; pro has IP rules',
    fallback: 'free',
    flag: 'plan',
  },
  origins: {
    form: listOf('ORIGIN', ORIGIN, 'a list of origins'),
    about: 'Origins that may use the site key',
    fallback: [],
    defaultWords: 'any',
    flag: 'origin',
    unsetFlag: 'no-origins',
  },
  requireOrigin: {
    form: YES_NO,
    about: "Refuse requests without an Origin header, except from pages of the service's own origin",
    fallback: false,
    flag: 'require-origin',
    falseFlag: 'no-require-origin',
  },
  threshold: {
    form: SHARE,
    about: 'Lowest score of a visitor who gets a token',
    fallback: 0.5,
    flag: 'threshold',
  },
  minScore: {
    form: SHARE,
    about: 'Lowest score of a token that a backend may redeem',
    fallback: 0,
    flag: 'min-score',
  },
  signals: {
    form: oneOf('SIGNALS', ...SIGNALS),
    about: 'What the widget reads of the browser for the score: nothing, or seven flags',
    fallback: 'flags',
    flag: 'signals',
  },
  puzzle: {
    form: oneOf('PUZZLE', ...PUZZLES),
    about:
      'What browsers compute: sha256 works everywhere; hashwx gives graphics cards little, and needs WebAssembly to be quick',
    fallback: 'sha256',
    flag: 'puzzle',
  },
  'difficulty.base': {
    form: BITS,
    about: 'Base difficulty: bits for a visitor on a quiet day',
    defaultWords: `${BASE_BITS.sha256}, or ${BASE_BITS.hashwx} with --puzzle hashwx`,
    flag: 'base',
  },
  'difficulty.min': { form: BITS, about: 'Lowest difficulty', fallback: DIFFICULTY_MIN, flag: 'min' },
  'difficulty.max': { form: BITS, about: 'Highest difficulty', fallback: DIFFICULTY_MAX, flag: 'max' },
  'difficulty.solveMs': {
    form: SOLVE_MS,
    about: 'Target solve time in ms for 95 % of visitors on a quiet day, in place of --base',
    defaultWords: 'the base holds',
    flag: 'solve-ms',
    unsetFlag: 'base', // a new base removes the target
  },
  usualRate: {
    form: number('N', 0.5, 100_000),
    about: 'Expected rate of returning sources, in proofs a second. The learned rate counts only above it',
    defaultWords: 'what is learned',
    flag: 'usual-rate',
    unsetFlag: 'no-usual-rate',
  },
  'ipRules.allow': ranges('allow', 'any', 'Addresses that pass; all others fail'),
  'ipRules.block': ranges('block', 'none', 'Addresses that always fail'),
  'limits.challenge': limit('limit-challenge', 'Requests a minute to /challenge, of an address at this site'),
  'limits.verify': limit('limit-verify', 'Requests a minute to /verify, of an address at this site'),
  'limits.redeem': limit(
    'limit-redeem',
    'Requests a minute to /verify-token, of an API key and of an address that uses it',
  ),
  'known.networks': {
    form: listOf('CIDR', NETWORK, 'a list of IP addresses and CIDRs, without /0'),
    about: 'Networks that many people share, such as an office: their traffic makes no challenge harder',
    fallback: [],
    defaultWords: 'none',
    flag: 'known-networks',
    unsetFlag: 'no-known-networks',
  },
  'known.limit': {
    form: PER_MINUTE,
    about: 'Requests a minute to /challenge, and to /verify, of an address in a known network',
    defaultWords: 'the limit of other addresses',
    flag: 'known-limit',
    unsetFlag: 'no-known-limit',
  },
  'failOpen.challenge': FAIL_OPEN,
  'failOpen.verify': FAIL_OPEN,
  ...(Object.fromEntries(SCORE_REASONS.map(signal => [`scoreWeights.${signal}`, weight(signal)])) as Record<
    PartOf<'scoreWeights'>,
    Row
  >),
}

function weight(signal: ScoreReason): Row {
  return {
    form: SHARE,
    about: 'How much a signal lowers the score; 0 ignores the signal',
    defaultWords: String(SCORE_WEIGHTS[signal]),
    flag: 'weight',
    unsetFlag: 'no-weights',
  }
}

export interface SiteField extends Row {
  readonly name: string
  readonly path: readonly [name: string, part?: string]
}

export const FIELDS: readonly SiteField[] = Object.entries<Row>(SITE_FIELDS).map(([name, row]) => {
  return { ...row, name, path: name.split('.') as [string, string?] }
})

type Tree = Readonly<Record<string, unknown>>

export function valueIn(settings: object, { path: [name, part] }: SiteField): unknown {
  const value = (settings as Tree)[name]
  return part === undefined ? value : (value as Tree | undefined)?.[part]
}

/**
 * @param field its name
 * @param value undefined unsets the field; `completed` then fills in the default
 */
export function withValue<Given extends object>(settings: Given, field: string, value: unknown): Given {
  const [name, part] = field.split('.') as [string, string?]
  const group = (settings as Tree)[name] as Tree | undefined
  return { ...settings, [name]: part === undefined ? value : { ...group, [part]: value } }
}

/** Settings in the table's order, with fallbacks. Texts are trimmed, lists lose duplicates, and `solveMs` decides the base. */
export function completed(given: Partial<SiteSettings> & { readonly name: string }): SiteSettings {
  let settings = {} as SiteSettings
  for (const field of FIELDS) {
    // The table has `puzzle` before `difficulty.base`, so `settings.puzzle` is set here.
    const fallback = field.name === 'difficulty.base' ? BASE_BITS[settings.puzzle] : field.fallback
    const value = valueIn(given, field) ?? fallback
    // The reader of the flag's texts also cleans texts and lists that come from a file. It checks nothing: the schema does that.
    const isText = typeof value === 'string' || Array.isArray(value)
    const clean = isText ? (field.form.text?.read([value].flat()) ?? value) : value
    if (clean !== undefined) settings = withValue(settings, field.name, clean)
  }
  const { puzzle, difficulty } = settings
  const { solveMs } = difficulty
  if (solveMs !== undefined) difficulty.base = baseOf({ ...difficulty, solveMs }, puzzle)
  return settings
}

const RECORD_FIELDS = ['siteKey', 'createdAt', 'updatedAt', 'raise', 'deletedAt']
const ALL_FIELD_NAMES = new Set([...RECORD_FIELDS, ...FIELDS.map(({ name }) => name)])
const GROUPS = new Set(FIELDS.filter(({ path }) => path.length > 1).map(({ path }) => path[0]))

/** Fields that this version does not know, probably of a later one. They are kept, and have no effect. */
export function unknownFields(record: object): ReadonlyMap<string, unknown> {
  const named = Object.entries(record).flatMap(([name, value]) =>
    GROUPS.has(name)
      ? Object.entries(Object(value)).map(([part, inner]) => [`${name}.${part}`, inner] as const)
      : [[name, value] as const],
  )
  return new Map(named.filter(([name]) => !ALL_FIELD_NAMES.has(name)))
}

/** Adds a record's unknown fields to settings that were made from it. */
export function withUnknownFields(settings: SiteSettings, record: object): SiteSettings {
  let all = settings
  for (const [name, value] of unknownFields(record)) all = withValue(all, name, value)
  return all
}

export function isOutsidePlan({ plan }: SiteField, sitesPlan: SiteSettings['plan']): boolean {
  return plan !== undefined && plan !== sitesPlan
}

/** Removes the fields that the site's plan does not include. */
export function inEffect(settings: SiteSettings): SiteSettings {
  const unused = FIELDS.filter(field => isOutsidePlan(field, settings.plan))
  return completed(unused.reduce((rest, field) => withValue(rest, field.name, undefined), settings))
}

export function defaultText({ fallback, defaultWords }: Row): string | undefined {
  return defaultWords ?? (fallback === undefined ? undefined : String(fallback))
}

export function difficultyProblem({ base, min, max }: SiteSettings['difficulty']): string | undefined {
  return min <= base && base <= max ? undefined : `expected min <= base <= max, got ${min}, ${base}, ${max}`
}
