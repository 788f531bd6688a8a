/**
 * The JSON Schemas of a file of sites, of a file of a policy, and of a site's shadow policy. domain/policy.ts says what each
 * number of a policy is. A `description` completes "expected ..." in error lines.
 */

import Type from '#typebox'
import type { PolicyOverrides } from '../domain/difficulty.ts'
import { DEFAULT_POLICY, type NetworkLevel } from '../domain/policy.ts'
import { SCORE_REASONS, SCORE_WEIGHTS } from '../domain/score.ts'
import { SITE_DEFAULTS, SITE_KEY_PATTERN } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'
import { FILE_FORMAT, FILE_VERSION } from './file.ts'
import {
  BITS,
  CIDR,
  type IntegerRule,
  NAME,
  NAME_CHARACTERS_MAX,
  ORIGIN,
  PER_MINUTE,
  SITE_KEY_RULE,
  SOLVE_MS,
} from './rules.ts'

const CLOSED = { additionalProperties: false } as const
const MANY = 1_000_000

function number(minimum: number, maximum = MANY) {
  return Type.Number({ description: `a number from ${minimum} to ${maximum}`, minimum, maximum })
}

function addedBits() {
  const maximum = DIFFICULTY_MAX - DIFFICULTY_MIN
  return Type.Integer({ description: `an integer from 0 to ${maximum}`, minimum: 0, maximum })
}

function integer(
  { expects, least, most }: IntegerRule,
  annotations: { title?: string; default?: number } = {},
) {
  return Type.Integer({ ...annotations, description: expects, minimum: least, maximum: most })
}

/** Proofs are counted at the levels of the live policy, so another policy has some of these. */
function networks(levels: readonly NetworkLevel[]) {
  const prefixes = levels.map(({ prefixBits }) => prefixBits)
  const description = 'an object with prefixBits, free and slope'
  const prefixBits = Type.Enum(prefixes, { description: `one of ${prefixes.join(', ')}` })
  const level = Type.Object({ prefixBits, free: number(1), slope: number(0) }, { description, ...CLOSED })
  return Type.Array(level, { description: `a list of networks: ${prefixes.map(n => `/${n}`).join(', ')}` })
}

const POLICY_FIELDS = {
  base: integer(BITS),
  min: integer(BITS),
  max: integer(BITS),
  quietShare: number(0, 0.99),
  addressBitsMax: addedBits(),
  failuresPerBit: number(1),
  failureBitsMax: addedBits(),
  neighbourBitsMax: addedBits(),
  loadBitsMax: addedBits(),
  loadBitsOnceMax: addedBits(),
  loadTolerated: number(1),
  usualRateMin: number(0.01),
  addressProofsFree: number(0),
  ownerProofsFree: number(0),
  networkBitsMax: addedBits(),
  networksV4: networks(DEFAULT_POLICY.networksV4),
  networksV6: networks(DEFAULT_POLICY.networksV6),
} satisfies Record<keyof PolicyOverrides, unknown>

export const POLICY_SCHEMA = Type.Partial(Type.Object(POLICY_FIELDS), {
  title: 'Policy that decides beside the live one, without effect',
  description: 'an object with numbers of a policy',
  ...CLOSED,
})

function share(title: string, fallback: number) {
  return Type.Number({
    title,
    description: 'a number from 0 to 1',
    minimum: 0,
    maximum: 1,
    default: fallback,
  })
}

function yesNo(title: string, annotations: { default?: boolean } = {}) {
  return Type.Boolean({ title, description: 'true or false', ...annotations })
}

function texts(title: string, expects: string, description: string) {
  return Type.Array(Type.String({ description: expects }), { title, description, default: [] })
}

const ranges = (title: string) => texts(title, CIDR.expects, 'a list of IP addresses and CIDRs')

const { base, min, max } = SITE_DEFAULTS.difficulty

const DIFFICULTY = Type.Partial(
  Type.Object({
    base: integer(BITS, { title: 'Zero bits for a lone visitor', default: base }),
    min: integer(BITS, { title: 'Lowest', default: min }),
    max: integer(BITS, { title: 'Highest', default: max }),
    solveMs: integer(SOLVE_MS, {
      title: 'Milliseconds that 95 of 100 lone visitors wait for the solver at most, in place of base',
    }),
  }),
  { title: 'Difficulty', description: 'an object with base or solveMs, min and max', ...CLOSED },
)

const IP_RULES = Type.Partial(
  Type.Object({
    allow: ranges('Addresses that pass; all others fail'),
    block: ranges('Addresses that always fail'),
  }),
  { title: 'IP rules, on plan pro', description: 'an object with allow and block', ...CLOSED },
)

const LIMITS = Type.Partial(
  Type.Object({
    challenge: integer(PER_MINUTE, { title: '/challenge, of one address' }),
    verify: integer(PER_MINUTE, { title: '/verify, of one address' }),
    redeem: integer(PER_MINUTE, { title: '/verify-token, of each API key' }),
  }),
  {
    title: 'Requests per minute, in place of the limits of the service',
    description: 'an object with challenge, verify and redeem, or some of them',
    ...CLOSED,
  },
)

const FAIL_OPEN = Type.Partial(Type.Object({ challenge: yesNo('/challenge'), verify: yesNo('/verify') }), {
  title: 'Whether an endpoint keeps answering while Redis is away, in place of what the service does',
  description: 'an object with challenge and verify, or one of them',
  ...CLOSED,
})

const SCORE_WEIGHTS_OF_SITE = Type.Partial(
  Type.Object(Object.fromEntries(SCORE_REASONS.map(name => [name, share(name, SCORE_WEIGHTS[name])]))),
  {
    title: 'What signals take off the score, in place of the usual weights',
    description: 'an object of signals and numbers from 0 to 1',
    ...CLOSED,
  },
)

const SITE = Type.Object(
  {
    siteKey: Type.Optional(
      Type.String({
        title: 'Key of the site; without it the site is known by its name',
        description: SITE_KEY_RULE.expects,
        pattern: SITE_KEY_PATTERN,
      }),
    ),
    name: Type.String({
      title: 'What people call the site',
      description: NAME.expects,
      minLength: 1,
      maxLength: NAME_CHARACTERS_MAX,
    }),
    active: Type.Optional(yesNo('Whether the site is served', { default: SITE_DEFAULTS.active })),
    plan: Type.Optional(
      Type.Enum(['free', 'pro'], {
        title: 'Plan; pro has IP rules',
        description: 'free or pro',
        default: SITE_DEFAULTS.plan,
      }),
    ),
    origins: Type.Optional(
      texts(
        'Origins that may use the site key; without any, every origin may',
        ORIGIN.expects,
        'a list of origins',
      ),
    ),
    requireOrigin: Type.Optional(
      yesNo('Whether a request without an Origin header is refused', {
        default: SITE_DEFAULTS.requireOrigin,
      }),
    ),
    threshold: Type.Optional(share('Lowest score that passes', SITE_DEFAULTS.threshold)),
    difficulty: Type.Optional(DIFFICULTY),
    ipRules: Type.Optional(IP_RULES),
    limits: Type.Optional(LIMITS),
    failOpen: Type.Optional(FAIL_OPEN),
    scoreWeights: Type.Optional(SCORE_WEIGHTS_OF_SITE),
    shadow: Type.Optional(POLICY_SCHEMA),
  },
  { title: 'Site', description: 'an object that describes a site', ...CLOSED },
)

export const SITES_FILE_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Sites of powgate',
  ...Type.Object(
    {
      format: Type.Literal(FILE_FORMAT, { description: JSON.stringify(FILE_FORMAT) }),
      version: Type.Literal(FILE_VERSION, { description: String(FILE_VERSION) }),
      sites: Type.Array(SITE, { description: 'a list of sites' }),
      $schema: Type.Optional(Type.String({ title: 'For editors', description: 'an address' })),
    },
    CLOSED,
  ),
}
