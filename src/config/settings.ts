/** The table of settings, for validation, `--help` and docs/reference/settings.md. */

import { availableParallelism } from 'node:os'
import { LIMITS } from '../domain/endpoint.ts'
import { LIMIT_MAX } from '../domain/limits.ts'
import { numberRule, type ValueRule } from '../domain/value-forms.ts'

/** A setting with `isSecret` may also stand in a file, whose path is then in the variable `<NAME>_FILE`. */
export interface Setting extends ValueRule {
  /** The default; empty for none. */
  readonly fallback: string
  readonly about: string
  /** SIGHUP does not change the value. */
  readonly needsRestart?: true
}

const WORKERS_MAX = 256
export const SECRET_CHARACTERS_MIN = 32
/** U+FFFD stands for bytes that are not UTF-8, so it is refused. */
export const PRINTABLE = /^[^\p{Cc}\ufffd]+$/u

function integer([minimum, maximum]: readonly [number, number], fallback: number, about: string): Setting {
  return { ...numberRule(minimum, maximum, 'integer'), fallback: String(fallback), about }
}

type LimitSetting = (typeof LIMITS)[keyof typeof LIMITS]['setting']

function limits() {
  const rows = Object.values(LIMITS).map(({ setting, perMinute, about }) => [
    setting,
    integer([1, LIMIT_MAX], perMinute, `Requests per minute: ${about}.`),
  ])
  return Object.fromEntries(rows) as Readonly<Record<LimitSetting, Setting>>
}

/** Accepts any text; what `expects` says is checked where the value is read. */
function optional(expects: string, about: string): Setting {
  return { accepts: () => true, fallback: '', expects, about }
}

function secret(expects: string, about: string): Setting {
  return { ...optional(expects, about), isSecret: true }
}

function matching(pattern: RegExp, fallback: string, expects: string, about: string): Setting {
  return { accepts: text => pattern.test(text), fallback, expects, about }
}

function choice(options: readonly string[], about: string, fallback = options[0]!): Setting {
  const expects = options.join(', ').replace(/, (?=[^,]*$)/, ' or ')
  return { accepts: text => options.includes(text), fallback, expects, about }
}

function address(fallback: string, about: string): Setting {
  return matching(/^[0-9A-Za-z._:-]{1,255}$/, fallback, 'an IP address or a host name', about)
}

/** The primary process uses the value itself, or the store's keys hold it: workers that differed could redeem a token twice. */
function untilRestart(setting: Setting): Setting {
  return { ...setting, needsRestart: true }
}

export const SETTING_GROUPS = {
  Listening: {
    HOST: untilRestart(address('0.0.0.0', 'Address to listen on.')),
    PORT: untilRestart(integer([0, 65535], 8080, 'Port to listen on; 0 takes a free one.')),
    // The primary process uses this too, but takes a new number over when it renews the workers.
    POWGATE_WORKERS: integer(
      [1, WORKERS_MAX],
      Math.min(WORKERS_MAX, availableParallelism()),
      'Worker processes; by default one for each core.',
    ),
    POWGATE_CONNECTIONS_MAX: integer(
      [0, 1_000_000],
      0,
      'Most connections of a worker; near it some are closed. 0: as many as its limit of open files allows.',
    ),
    POWGATE_CONFIG_FILE: untilRestart(
      optional(
        'a file of NAME=value lines',
        'File with these settings. The environment takes precedence. Read again on SIGHUP.',
      ),
    ),
  },
  'Behind a load balancer': {
    POWGATE_TRUSTED_PROXIES: optional(
      'IP addresses and CIDRs, separated by commas',
      'Your proxies, whose X-Forwarded-For, X-Request-Id and PROXY protocol are trusted. Needed behind a proxy.',
    ),
    // Listeners with and without it cannot share a port.
    POWGATE_PROXY_PROTOCOL: untilRestart(
      choice(
        ['on', 'off'],
        'Whether trusted proxies start connections with a PROXY protocol header, version 2 (or 1).',
        'off',
      ),
    ),
    // The prefix is part of the keys of limits and used nonces.
    POWGATE_IPV6_PREFIX: untilRestart(
      integer(
        [48, 128],
        64,
        'Bits of an IPv6 address that count as one visitor: in limits, and for remoteip at /siteverify.',
      ),
    ),
  },
  Secrets: {
    POWGATE_SECRETS: secret(
      `one or more secrets of at least ${SECRET_CHARACTERS_MIN} characters, separated by commas`,
      'Master secrets: the first signs, all verify. Needed with Redis; otherwise generated in the data directory.',
    ),
  },
  'Embedded store': {
    POWGATE_DATA_DIR: untilRestart(
      matching(
        /^[^~$"'][^$]*$/, // only a shell replaces these; elsewhere a directory of this very name would be made
        './data',
        'a writable directory, without ~ or $',
        'For the embedded store and its generated secret.',
      ),
    ),
    // The store process outlives a rolling restart, with the value of its start.
    POWGATE_STATE_MAX_MB: untilRestart(
      integer(
        [16, 4096], // Node.js writes and reads no file of 2 GiB, which a state of 6 GiB takes
        1024,
        'Largest size of the embedded store, in MiB. Above half of it new networks are not counted. When it is full, requests that need it are refused.',
      ),
    ),
  },
  Redis: {
    // A reload takes over another address, but not another database, nor none: see `reloadSettings` (process/lifecycle.ts).
    REDIS_URL: secret(
      'redis://host[:port][/db], perhaps with user:password@ before the host, rediss:// for TLS, a comma-separated list or redis+cluster:// for a Cluster, redis+sentinel://host:port,.../name for Sentinel',
      'Redis or Valkey, 6.2 or newer. Without it the embedded store is used.',
    ),
    POWGATE_REDIS_USER: optional('a user name', 'User of Redis, if not in REDIS_URL.'),
    POWGATE_REDIS_PASSWORD: secret('a password', 'Password of Redis, if not in REDIS_URL.'),
    POWGATE_SENTINEL_USER: optional('a user name', 'User of the Sentinels, if they want one.'),
    POWGATE_SENTINEL_PASSWORD: secret('a password', 'Password of the Sentinels, if they want one.'),
    POWGATE_REDIS_TLS_CA: optional(
      'a PEM file',
      'Certificate authority of Redis and its Sentinels, instead of the public ones.',
    ),
    POWGATE_REDIS_TLS_CERT: optional('a PEM file', 'Certificate that powgate shows to Redis.'),
    POWGATE_REDIS_TLS_KEY: optional('a PEM file', 'Private key of that certificate.'),
    POWGATE_REDIS_TLS_NAME: optional(
      'a host name',
      'Name that the certificates must have, where nodes are known by address.',
    ),
    POWGATE_REDIS_PREFIX: untilRestart(
      matching(
        /^[A-Za-z0-9_.-]{1,32}$/,
        'pg',
        '1 to 32 letters, digits, dots, dashes or underscores',
        'Prefix of every key in Redis.',
      ),
    ),
    POWGATE_REDIS_SHARDS: untilRestart(
      integer(
        [1, 256],
        16,
        'On a Cluster: slots for addresses and sites; at least one for each primary. Unset: as kept in Redis, else 16.',
      ),
    ),
  },
  'When the store is slow or away': {
    POWGATE_STORE_DEADLINE_MS: integer([10, 10_000], 150, 'Longest time in ms for a call to the store.'),
    POWGATE_FAIL_OPEN: matching(
      /^(none|(challenge|verify)( *, *(challenge|verify))*)$/,
      'challenge,verify',
      'challenge, verify, both separated by a comma, or none',
      'Endpoints that keep answering from memory while Redis is away. /verify-token and /siteverify never do.',
    ),
    POWGATE_FAIL_OPEN_AFTER_SECONDS: integer(
      [0, 3600],
      10,
      'How long Redis must be away before an endpoint fails open; visitors wait. Set it longer than a failover takes.',
    ),
    POWGATE_STORE_WAIT_SECONDS: integer([1, 3600], 30, 'How many seconds a start waits for its store.'),
  },
  'With too many requests': {
    POWGATE_OVERLOAD_MS: integer(
      [0, 10_000],
      100,
      'Queueing delay in ms above which a worker sheds load, new challenges first. 0: never.',
    ),
  },
  'Limits and lifetimes': {
    ...limits(),
    POWGATE_CHALLENGE_SECONDS: integer(
      [10, 600],
      120,
      'Shortest lifetime of a challenge; difficult ones get more. A change expires those under way.',
    ),
    POWGATE_TOKEN_SECONDS: integer(
      [1, 3600],
      300,
      'Lifetime of a token; the contract says 300. A change expires challenges under way, but no token.',
    ),
    POWGATE_BODY_MAX_BYTES: integer([1024, 1_048_576], 8192, 'Longest request body in bytes.'),
  },
  'Watching it': {
    POWGATE_ADMIN_HOST: untilRestart(
      address('127.0.0.1', 'Address of the admin port. It has no password, so keep it private.'),
    ),
    POWGATE_ADMIN_HOSTS: untilRestart(
      matching(
        /^$|^[\w-]+(\.[\w-]+)*\.?( *, *[\w-]+(\.[\w-]+)*\.?)*$/,
        '',
        'host names without ports, separated by commas',
        "Host names by which the admin port may be reached, besides IP addresses, localhost and the machine's name.",
      ),
    ),
    POWGATE_ADMIN_PORT: untilRestart(
      integer([0, 65535], 0, 'Port of health, metrics and the dashboard; 0: none.'),
    ),
    POWGATE_DEPLOYMENT: untilRestart(
      matching(
        /^[\w.-]{0,64}$/,
        '',
        'up to 64 letters, digits, dots, dashes or underscores',
        'Label `deployment` of every metric, which tells this deployment (production, staging) from others.',
      ),
    ),
    POWGATE_METRICS_SITES: untilRestart(
      matching(
        /^(site_[0-9A-Za-z]{22}( *, *(?=s)|$)){0,50}$/, // (?=s): no comma at the end
        '',
        'up to 50 site keys, separated by commas',
        'Sites with metrics of their own, by which an alert tells that one of them fails.',
      ),
    ),
    LOG_LEVEL: choice(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'Least severe log lines to write.',
      'info',
    ),
    POWGATE_LOG_FORMAT: untilRestart(
      choice(['auto', 'json', 'text'], 'JSON for programs, text for people; auto: text on a terminal.'),
    ),
    POWGATE_LOG_SUCCESSES: {
      ...numberRule(0, 1, 'number'),
      fallback: '0.01',
      about:
        'Share of the visitors whose successes are logged; 0: none. Failures and refusals are, up to bounds.',
    },
    POWGATE_LOG_ADDRESSES: choice(
      ['network', 'whole'],
      'Whether the log has only the networks of addresses (/24 of IPv4, /48 of IPv6), or addresses.',
    ),
    POWGATE_AUDIT_DAYS: integer([1, 36_500], 400, 'Days for which the audit log keeps an entry.'),
  },
  Stopping: {
    POWGATE_UNREADY_SECONDS: integer(
      [0, 300],
      0,
      'Seconds from "not ready" to closed listeners after SIGTERM: as long as your balancer needs to notice.',
    ),
    POWGATE_DRAIN_SECONDS: integer(
      [0, 300],
      8,
      'Longest wait in seconds, when stopping, for requests and connections to end. Docker kills after 10.',
    ),
  },
  'For trying out': {
    POWGATE_DEMO: untilRestart(
      choice(['auto', 'on', 'off'], 'Whether /demo is served. auto: from the first start until the next.'),
    ),
    POWGATE_TEST_KEYS: choice(
      ['on', 'off'],
      'Whether the published test keys work, which always pass, fail or are used. Never in production.',
      'off',
    ),
  },
} as const satisfies Record<string, Readonly<Record<string, Setting>>>

type Groups = typeof SETTING_GROUPS
export type SettingName = { [Heading in keyof Groups]: keyof Groups[Heading] }[keyof Groups]

export const SETTINGS = Object.assign({}, ...Object.values(SETTING_GROUPS)) as Readonly<
  Record<SettingName, Setting>
>
