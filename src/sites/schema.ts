/** The JSON Schema of a file of sites. A `description` completes "expected ..." in error lines. */

import Type from '#typebox'
import { SCORE_REASONS, SCORE_WEIGHTS } from '../domain/score.ts'
import { SITE_DEFAULTS } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'
import { FILE_FORMAT, FILE_VERSION } from './file.ts'
import { POLICY_SCHEMA } from './policy-schema.ts'
import { CIDR, LIMIT_MAX, NAME, NAME_CHARACTERS_MAX, ORIGIN, SITE_KEY_RULE, SOLVE_MS } from './rules.ts'

const CLOSED = { additionalProperties: false } as const

function bits(title: string, fallback: number) {
  return Type.Integer({
    title,
    description: `an integer from ${DIFFICULTY_MIN} to ${DIFFICULTY_MAX}`,
    minimum: DIFFICULTY_MIN,
    maximum: DIFFICULTY_MAX,
    default: fallback,
  })
}

function perMinute(title: string) {
  const description = `an integer from 1 to ${LIMIT_MAX}`
  return Type.Integer({ title, description, minimum: 1, maximum: LIMIT_MAX })
}

function share(title: string, fallback: number) {
  return Type.Number({
    title,
    description: 'a number from 0 to 1',
    minimum: 0,
    maximum: 1,
    default: fallback,
  })
}

function yesNo(title: string) {
  return Type.Boolean({ title, description: 'true or false' })
}

function ranges(title: string) {
  const range = Type.String({ description: CIDR.expects })
  return Type.Array(range, { title, description: 'a list of IP addresses and CIDRs', default: [] })
}

const { base, min, max } = SITE_DEFAULTS.difficulty

const DIFFICULTY = Type.Partial(
  Type.Object({
    base: bits('Zero bits for a lone visitor', base),
    min: bits('Lowest', min),
    max: bits('Highest', max),
    solveMs: Type.Integer({
      title: 'Milliseconds that 95 of 100 lone visitors wait for the solver at most, in place of base',
      description: SOLVE_MS.expects,
      minimum: SOLVE_MS.least,
      maximum: SOLVE_MS.most,
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
    challenge: perMinute('/challenge, of one address'),
    verify: perMinute('/verify, of one address'),
    redeem: perMinute('/verify-token, of each API key'),
  }),
  {
    title: 'Requests per minute, in place of the limits of the service',
    description: 'an object with challenge, verify and redeem, or some of them',
    ...CLOSED,
  },
)

const FAIL_OPEN = Type.Partial(
  Type.Object({
    challenge: yesNo('/challenge'),
    verify: yesNo('/verify'),
  }),
  {
    title: 'Whether an endpoint keeps answering while Redis is away, in place of what the service does',
    description: 'an object with challenge and verify, or one of them',
    ...CLOSED,
  },
)

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
        pattern: '^site_[0-9A-Za-z]{22}$',
      }),
    ),
    name: Type.String({
      title: 'What people call the site',
      description: NAME.expects,
      minLength: 1,
      maxLength: NAME_CHARACTERS_MAX,
    }),
    active: Type.Optional(
      Type.Boolean({
        title: 'Whether the site is served',
        description: 'true or false',
        default: SITE_DEFAULTS.active,
      }),
    ),
    plan: Type.Optional(
      Type.Enum(['free', 'pro'], {
        title: 'Plan; pro has IP rules',
        description: 'free or pro',
        default: SITE_DEFAULTS.plan,
      }),
    ),
    origins: Type.Optional(
      Type.Array(Type.String({ description: ORIGIN.expects }), {
        title: 'Origins that may use the site key; without any, every origin may',
        description: 'a list of origins',
        default: [],
      }),
    ),
    requireOrigin: Type.Optional(
      Type.Boolean({
        title: 'Whether a request without an Origin header is refused',
        description: 'true or false',
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
