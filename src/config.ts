/** Environment variables -> one frozen Config. Every problem is found before anything starts, and all are listed. */

import { availableParallelism } from 'node:os'
import { Ajv } from 'ajv'
import Type, { type TSchema } from 'typebox'
import { AddressSet, parseRange } from './domain/address.ts'
import { CONTRACT_LIMITS, type Limits } from './domain/limits.ts'
import { parseRedisUrl, type RedisTarget } from './store/redis/connection.ts'

export interface Config {
  readonly host: string
  readonly port: number
  /** undefined: no admin port. */
  readonly adminPort: number | undefined
  readonly workers: number
  readonly logLevel: string
  readonly dataDir: string
  readonly stateBytesMax: number
  /** undefined: the embedded store. */
  readonly redis: RedisTarget | undefined
  readonly redisPrefix: string
  readonly redisShards: number
  /** Empty: generated in the data directory (embedded store only). The first signs. */
  readonly secrets: readonly string[]
  readonly trustedProxies: AddressSet
  readonly ipv6PrefixBits: number
  readonly limits: Limits
  readonly challengeLifetimeMs: number
  readonly tokenLifetimeMs: number
  readonly storeDeadlineMs: number
  readonly bodyBytesMax: number
  readonly failOpen: { readonly challenge: boolean; readonly verify: boolean }
  readonly drainMs: number
  readonly demo: DemoMode
}

/** `auto`: on while the service runs that made the first start. The primary decides; workers get one of the others. */
export type DemoMode = 'auto' | 'on' | 'off'

export interface Setting {
  readonly schema: TSchema
  /** What is used when the variable is not set, as text. */
  readonly fallback: string
  readonly expects: string
  readonly about: string
}

const LIMIT_MAX = 1_000_000
const SECRET_CHARACTERS_MIN = 32

function integer(minimum: number, maximum: number, fallback: number | string, about: string): Setting {
  const schema = Type.Integer({ minimum, maximum })
  return { schema, fallback: String(fallback), expects: `an integer from ${minimum} to ${maximum}`, about }
}

function limit(perMinute: number, about: string): Setting {
  return integer(1, LIMIT_MAX, perMinute, `Requests per minute: ${about}.`)
}

/** The one table of settings: validation, `--help` and the README come from it. */
export const SETTINGS = {
  HOST: {
    schema: Type.String(),
    fallback: '0.0.0.0',
    expects: 'an IP address',
    about: 'Address to listen on.',
  },
  PORT: integer(0, 65535, 8080, 'Port to listen on; 0 takes a free one.'),
  REDIS_URL: {
    schema: Type.String(),
    fallback: '',
    expects:
      'redis://[user:password@]host[:port][/db], rediss:// for TLS, a comma-separated list or redis+cluster:// for a Cluster, redis+sentinel://host:port,.../name for Sentinel',
    about: 'Redis or Valkey, 6.2 or newer. Without it the embedded store is used.',
  },
  LOG_LEVEL: {
    schema: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    fallback: 'info',
    expects: 'one of trace, debug, info, warn, error, fatal, silent',
    about: 'Least severe log lines to write.',
  },
  POWGATE_WORKERS: integer(1, 256, availableParallelism(), 'Worker processes; by default one for each core.'),
  POWGATE_DATA_DIR: {
    schema: Type.String(),
    fallback: './data',
    expects: 'a directory that can be written',
    about: 'Where the embedded store and its generated secret live.',
  },
  POWGATE_STATE_MAX_MB: integer(
    16,
    1_000_000,
    1024,
    'Bound of the embedded store, in MiB; full, it refuses.',
  ),
  POWGATE_SECRETS: {
    schema: Type.String(),
    fallback: '',
    expects: `one or more secrets of at least ${SECRET_CHARACTERS_MIN} characters, separated by commas`,
    about:
      'Master secrets: the first signs, all verify. Needed with Redis; otherwise generated in the data directory.',
  },
  POWGATE_TRUSTED_PROXIES: {
    schema: Type.String(),
    fallback: '',
    expects: 'IP addresses and CIDRs, separated by commas',
    about: 'Proxies whose X-Forwarded-For is believed.',
  },
  POWGATE_ADMIN_PORT: integer(0, 65535, 0, 'Loopback port for /healthz and /readyz; 0: none.'),
  POWGATE_IPV6_PREFIX: integer(48, 128, 64, 'Bits of an IPv6 address that count as one visitor in limits.'),
  POWGATE_LIMIT_CHALLENGE_ADDRESS: limit(CONTRACT_LIMITS.challengeAddress, '/challenge, per address'),
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: limit(
    CONTRACT_LIMITS.challengeAddressSite,
    '/challenge, per address and site',
  ),
  POWGATE_LIMIT_VERIFY_ADDRESS: limit(CONTRACT_LIMITS.verifyAddress, '/verify, per address'),
  POWGATE_LIMIT_VERIFY_ADDRESS_SITE: limit(
    CONTRACT_LIMITS.verifyAddressSite,
    '/verify, per address and site',
  ),
  POWGATE_LIMIT_REDEEM_ADDRESS: limit(CONTRACT_LIMITS.redeemAddress, '/verify-token, per calling address'),
  POWGATE_LIMIT_REDEEM_API_KEY: limit(CONTRACT_LIMITS.redeemApiKey, '/verify-token, per API key'),
  POWGATE_CHALLENGE_SECONDS: integer(
    10,
    600,
    120,
    'Least lifetime of a challenge; high difficulties get more.',
  ),
  POWGATE_TOKEN_SECONDS: integer(1, 3600, 300, 'Lifetime of a token; the interface says 300.'),
  POWGATE_STORE_DEADLINE_MS: integer(10, 10_000, 150, 'How long a store call may take.'),
  POWGATE_BODY_MAX_BYTES: integer(1024, 1_048_576, 8192, 'Longest request body.'),
  POWGATE_FAIL_OPEN: {
    schema: Type.String({ pattern: '^(none|(challenge|verify)(,(challenge|verify))*)$' }),
    fallback: 'challenge,verify',
    expects: 'challenge, verify, both separated by a comma, or none',
    about: 'Endpoints that keep answering from memory while Redis is away. /verify-token never does.',
  },
  POWGATE_REDIS_PREFIX: {
    schema: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,32}$' }),
    fallback: 'pg',
    expects: '1 to 32 letters, digits, dots, dashes or underscores',
    about: 'Starts every key in Redis.',
  },
  POWGATE_REDIS_SHARDS: integer(
    1,
    256,
    16,
    'On a Cluster: over how many slots addresses and sites spread; the same on all hosts, and at least its primaries.',
  ),
  POWGATE_DRAIN_SECONDS: integer(0, 300, 10, 'Longest wait for requests under way when stopping.'),
  POWGATE_DEMO: {
    schema: Type.Enum(['auto', 'on', 'off']),
    fallback: 'auto',
    expects: 'auto, on or off',
    about: 'Whether /demo is served; auto: only by the first start, which makes the demo site.',
  },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS

/** All that is wrong, one line each, each starting with a variable's name. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** Variables of the command line, which share the name space but are not settings of the service. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['POWGATE_URL', 'POWGATE_SITE_KEY', 'POWGATE_API_KEY'])

const ajv = new Ajv({ coerceTypes: true, strict: true })
const validators = new Map(
  Object.entries<Setting>(SETTINGS).map(([name, { schema }]) => [
    name,
    ajv.compile(Type.Object({ value: schema })),
  ]),
)

/** @throws ConfigError listing every problem */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = []
  const text = (name: SettingName) => env[name]?.trim() || SETTINGS[name].fallback
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    const validate = validators.get(name)!
    if (!validate({ value: text(name as SettingName) })) {
      problems.push(`${name}: expected ${setting.expects}, got ${JSON.stringify(env[name])}`)
    }
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('POWGATE_') && !(name in SETTINGS) && !OTHER_VARIABLES.has(name)) {
      problems.push(`${name}: there is no such setting${suggestion(name)}`)
    }
  }

  const redis = checkedRedis(text('REDIS_URL'), problems)
  const secrets = checkedSecrets(text('POWGATE_SECRETS'), redis !== undefined, problems)
  const trustedProxies = checkedRanges(text('POWGATE_TRUSTED_PROXIES'), problems)
  const failOpen = text('POWGATE_FAIL_OPEN').split(',')
  if (problems.length > 0) throw new ConfigError(problems)

  const number = (name: SettingName) => Number(text(name))
  return Object.freeze({
    host: text('HOST'),
    port: number('PORT'),
    adminPort: number('POWGATE_ADMIN_PORT') || undefined,
    workers: number('POWGATE_WORKERS'),
    logLevel: text('LOG_LEVEL'),
    dataDir: text('POWGATE_DATA_DIR'),
    stateBytesMax: number('POWGATE_STATE_MAX_MB') * 2 ** 20,
    redis,
    redisPrefix: text('POWGATE_REDIS_PREFIX'),
    redisShards: number('POWGATE_REDIS_SHARDS'),
    secrets,
    trustedProxies: new AddressSet(trustedProxies),
    ipv6PrefixBits: number('POWGATE_IPV6_PREFIX'),
    limits: {
      challengeAddress: number('POWGATE_LIMIT_CHALLENGE_ADDRESS'),
      challengeAddressSite: number('POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE'),
      verifyAddress: number('POWGATE_LIMIT_VERIFY_ADDRESS'),
      verifyAddressSite: number('POWGATE_LIMIT_VERIFY_ADDRESS_SITE'),
      redeemAddress: number('POWGATE_LIMIT_REDEEM_ADDRESS'),
      redeemApiKey: number('POWGATE_LIMIT_REDEEM_API_KEY'),
    },
    challengeLifetimeMs: number('POWGATE_CHALLENGE_SECONDS') * 1000,
    tokenLifetimeMs: number('POWGATE_TOKEN_SECONDS') * 1000,
    storeDeadlineMs: number('POWGATE_STORE_DEADLINE_MS'),
    bodyBytesMax: number('POWGATE_BODY_MAX_BYTES'),
    failOpen: { challenge: failOpen.includes('challenge'), verify: failOpen.includes('verify') },
    drainMs: number('POWGATE_DRAIN_SECONDS') * 1000,
    demo: text('POWGATE_DEMO') as DemoMode,
  })
}

/** The address that a person on this machine opens. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

function checkedRedis(url: string, problems: string[]): RedisTarget | undefined {
  if (url === '') return undefined
  const target = parseRedisUrl(url)
  // The URL can hold a password, so it is not repeated.
  if (target === undefined) problems.push(`REDIS_URL: expected ${SETTINGS.REDIS_URL.expects}`)
  return target
}

function checkedSecrets(text: string, isNeeded: boolean, problems: string[]): string[] {
  const secrets = list(text)
  if (isNeeded && secrets.length === 0) {
    problems.push(`POWGATE_SECRETS: needed with REDIS_URL; expected ${SETTINGS.POWGATE_SECRETS.expects}`)
  }
  secrets.forEach((secret, index) => {
    if (secret.length < SECRET_CHARACTERS_MIN) {
      problems.push(
        `POWGATE_SECRETS: secret ${index + 1} has ${secret.length} characters; expected ${SETTINGS.POWGATE_SECRETS.expects}`,
      )
    }
  })
  return secrets
}

function checkedRanges(text: string, problems: string[]): string[] {
  const ranges = list(text)
  for (const range of ranges) {
    if (parseRange(range) === undefined) {
      problems.push(
        `POWGATE_TRUSTED_PROXIES: expected ${SETTINGS.POWGATE_TRUSTED_PROXIES.expects}, got ${JSON.stringify(range)}`,
      )
    }
  }
  return ranges
}

function list(text: string): string[] {
  return text
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '')
}

function suggestion(name: string): string {
  const letters = (text: string) => [...text].sort().join('')
  const near = Object.keys(SETTINGS).find(
    known => letters(known) === letters(name) || known.startsWith(name) || name.startsWith(known),
  )
  return near === undefined ? '' : ` (did you mean ${near}?)`
}
