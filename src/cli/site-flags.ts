/** The flags that describe a site, and the settings that follow from them. */

import { SCORE_REASONS, type ScoreReason } from '../domain/score.ts'
import {
  FAIL_POLICY_ENDPOINTS,
  SITE_LIMITS,
  type SiteFailPolicy,
  type SiteLimits,
  type SiteSettings,
} from '../domain/site.ts'
import { BITS, CIDR, NAME, ORIGIN, PER_MINUTE, SITE_KEY_RULE, SOLVE_MS, UsageError } from '../sites/rules.ts'
import { difficultyProblem } from '../sites/sites.ts'
import type { Flag, FlagValue, Input, Positional } from './command.ts'

export const SITE_KEY: Positional = { name: 'SITE_KEY', ...SITE_KEY_RULE }

const BITS_VALUE: FlagValue = { placeholder: 'BITS', ...BITS }
const MS_VALUE: FlagValue = { placeholder: 'MS', ...SOLVE_MS }
const LIMIT_VALUE: FlagValue = { placeholder: 'N', ...PER_MINUTE }

const ENDPOINT: FlagValue = {
  placeholder: 'ENDPOINT',
  repeats: true,
  expects: FAIL_POLICY_ENDPOINTS.join(' or '),
  accepts: text => (FAIL_POLICY_ENDPOINTS as readonly string[]).includes(text),
}

const WEIGHT: FlagValue = {
  placeholder: 'WEIGHT',
  repeats: true,
  expects: `a signal, = and a number from 0 to 1, such as webdriver=1; signals are ${SCORE_REASONS.join(', ')}`,
  accepts: isWeight,
}

export function fileValue(expects: string): FlagValue {
  return { placeholder: 'FILE', expects, accepts: text => text !== '' }
}

export const POLICY_FILE = fileValue('a JSON file with numbers of a policy')

export const SITE_FLAGS = {
  name: { about: 'What people call the site.', value: { placeholder: 'NAME', ...NAME } },
  origin: {
    about:
      'Origin that may use the site key; without any, every origin may. Replaces the list of an existing site.',
    value: { placeholder: 'ORIGIN', repeats: true, ...ORIGIN },
  },
  plan: {
    about: 'free, or pro, which has IP rules. A new site is free.',
    value: {
      placeholder: 'PLAN',
      expects: 'free or pro',
      accepts: text => text === 'free' || text === 'pro',
    },
  },
  threshold: {
    about: 'Lowest score that passes, 0 to 1. A new site has 0.5.',
    value: { placeholder: 'SCORE', expects: 'a number from 0 to 1', accepts: isShare },
  },
  base: { about: 'Difficulty for a lone visitor, 16 to 28. A new site has 18.', value: BITS_VALUE },
  'solve-ms': {
    about: 'Instead of --base: milliseconds that 95 of 100 lone visitors wait for the solver at most.',
    value: MS_VALUE,
    contradicts: 'base',
  },
  min: { about: 'Lowest difficulty. A new site has 16.', value: BITS_VALUE },
  max: { about: 'Highest difficulty. A new site has 28.', value: BITS_VALUE },
  'require-origin': {
    about: "Refuse requests without an Origin header (a page of the service's own origin needs none).",
    contradicts: 'no-require-origin',
  },
  'no-require-origin': { about: 'Allow requests without an Origin header, as a new site does.' },
  allow: {
    about: 'Address that passes; all others fail. Plan pro.',
    value: { placeholder: 'CIDR', repeats: true, ...CIDR },
  },
  block: {
    about: 'Address that always fails. Plan pro.',
    value: { placeholder: 'CIDR', repeats: true, ...CIDR },
  },
  'limit-challenge': {
    about: 'Requests per minute of an address to /challenge, instead of the limit of the service.',
    value: LIMIT_VALUE,
  },
  'limit-verify': { about: 'The same for /verify.', value: LIMIT_VALUE },
  'limit-redeem': {
    about: 'The same for /verify-token: of each API key, and of each address of a backend.',
    value: LIMIT_VALUE,
  },
  'fail-open': {
    about: 'Endpoint that keeps answering while Redis is away, whatever the service does.',
    value: ENDPOINT,
  },
  'fail-closed': {
    about: 'Endpoint that answers 503 while Redis is away, whatever the service does.',
    value: ENDPOINT,
  },
  weight: {
    about: 'What a signal takes off the score, such as webdriver=1, instead of its usual weight.',
    value: WEIGHT,
  },
} as const satisfies Record<string, Flag>

/** Flags of `site update` alone. Each but the last two empties a list or a group before the other flags fill it. */
export const CLEARING_FLAGS = {
  'no-origins': { about: 'Allow every origin again.', contradicts: 'origin' },
  'no-allow': { about: 'Empty the allow list.', contradicts: 'allow' },
  'no-block': { about: 'Empty the block list.', contradicts: 'block' },
  'no-limits': { about: 'Back to the limits of the service, but for those that are given here.' },
  'no-fail-policy': { about: 'Back to what the service does, but for endpoints that are given here.' },
  'no-weights': { about: 'Back to the usual weights, but for those that are given here.' },
  shadow: {
    about: 'Policy that decides beside the live one, without effect: its difference is counted and logged.',
    value: POLICY_FILE,
  },
  'no-shadow': { about: 'Let no policy decide beside the live one.', contradicts: 'shadow' },
} as const satisfies Record<string, Flag>

/**
 * The settings with the flags applied. Settings that no flag names stay. A given list replaces the old list; limits, policies
 * and weights are set one by one.
 *
 * @throws UsageError if flags contradict each other or the site's settings
 */
export function applyFlags(before: SiteSettings, input: Input): SiteSettings {
  const plan = (input.text('plan') as SiteSettings['plan'] | undefined) ?? before.plan
  if (plan !== 'pro' && (input.has('allow') || input.has('block'))) {
    throw new UsageError(`--allow, --block: expected --plan pro; plan ${plan} has no IP rules`)
  }
  return {
    name: input.text('name')?.trim() ?? before.name,
    active: before.active,
    plan,
    origins: list(input, 'origin', 'no-origins', before.origins),
    requireOrigin: input.has('require-origin') || (before.requireOrigin && !input.has('no-require-origin')),
    threshold: number(input, 'threshold', before.threshold),
    difficulty: difficulty(input, before.difficulty),
    ipRules: {
      allow: list(input, 'allow', 'no-allow', before.ipRules.allow),
      block: list(input, 'block', 'no-block', before.ipRules.block),
    },
    limits: limits(input, before.limits),
    failOpen: failPolicy(input, before.failOpen),
    scoreWeights: weights(input, before.scoreWeights),
  }
}

function list(input: Input, flag: string, clearingFlag: string, before: string[]): string[] {
  if (input.has(clearingFlag)) return []
  return [...new Set(input.texts(flag) ?? before)]
}

function number(input: Input, flag: string, before: number): number {
  const text = input.text(flag)
  return text === undefined ? before : Number(text)
}

function difficulty(input: Input, before: SiteSettings['difficulty']): SiteSettings['difficulty'] {
  const base = number(input, 'base', before.base)
  const min = number(input, 'min', before.min)
  const max = number(input, 'max', before.max)
  const solveMs = number(input, 'solve-ms', before.solveMs ?? 0)
  const isTimed = solveMs > 0 && !input.has('base')
  const after = { base, min, max, ...(isTimed && { solveMs }) }
  const problem = difficultyProblem(after)
  if (problem !== undefined) throw new UsageError(`--min, ${isTimed ? '' : '--base, '}--max: ${problem}`)
  return after
}

function limits(input: Input, before: SiteLimits = {}): SiteLimits {
  const after = input.has('no-limits') ? {} : { ...before }
  for (const name of SITE_LIMITS) {
    const text = input.text(`limit-${name}`)
    if (text !== undefined) after[name] = Number(text)
  }
  return after
}

function failPolicy(input: Input, before: SiteFailPolicy = {}): SiteFailPolicy {
  const after = input.has('no-fail-policy') ? {} : { ...before }
  for (const endpoint of FAIL_POLICY_ENDPOINTS) {
    const isOpen = input.texts('fail-open')?.includes(endpoint) === true
    const isClosed = input.texts('fail-closed')?.includes(endpoint) === true
    if (isOpen && isClosed) {
      throw new UsageError(`--fail-open, --fail-closed: expected one of the two for ${endpoint}, not both`)
    }
    if (isOpen || isClosed) after[endpoint] = isOpen
  }
  return after
}

function weights(
  input: Input,
  before: SiteSettings['scoreWeights'] = {},
): NonNullable<SiteSettings['scoreWeights']> {
  const after = input.has('no-weights') ? {} : { ...before }
  const given = new Set<string>()
  for (const text of input.texts('weight') ?? []) {
    const [signal, weight] = text.split('=') as [ScoreReason, string]
    if (given.has(signal)) throw new UsageError(`--weight: expected ${signal} once`)
    given.add(signal)
    after[signal] = Number(weight)
  }
  return after
}

function isWeight(text: string): boolean {
  const [signal, weight, more] = text.split('=')
  return (
    (SCORE_REASONS as readonly string[]).includes(signal!) &&
    weight !== undefined &&
    isShare(weight) &&
    more === undefined
  )
}

function isShare(text: string): boolean {
  return /^\d*\.?\d+$/.test(text) && Number(text) <= 1
}
