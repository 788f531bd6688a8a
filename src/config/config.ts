/** Reads settings from the environment, a settings file and secrets' files, and lists all problems at once. */

import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { AddressSet, hostAndPort, isEverybody, isLoopback, parseRange } from '../addresses/address.ts'
import { riskOfTrusting } from '../addresses/trusted-proxies.ts'
import { limitsOf } from '../domain/endpoint.ts'
import { NONCE_TIME_ZERO_MS } from '../protocol/proof.ts'
import { OperatorError } from '../words/errors.ts'
import { didYouMean } from '../words/nearest.ts'
import { checkedRedis, describeTarget, type RedisTarget, type TextOf, textOfFile } from './redis.ts'
import { PRINTABLE, SECRET_CHARACTERS_MIN, SETTINGS, type Setting, type SettingName } from './settings.ts'

export type Config = Readonly<ReturnType<typeof configOf>>

/** `auto`: on until the service of the first start ends. Workers get `on` or `off`. */
type DemoMode = 'auto' | 'on' | 'off'

/** All settings that are set and not empty. For a secret that was read from a file, `<NAME>_FILE` has the file's path. */
export type SettingValues = Readonly<Partial<Record<SettingName | `${SettingName}_FILE`, string>>>

/** A flag for commands that messages print, so that they use the same store. A Config does not keep the file's path, so it is read anew. */
export function configFlag(): string {
  const { POWGATE_CONFIG_FILE: path = '' } = process.env
  return path.trim() === '' ? '' : ` --config ${shellWord(resolve(path.trim()))}`
}

/** Quoted if a shell would not take it literally. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** Commands read these. They are no settings of the service, and no mistake. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set([
  'POWGATE_URL',
  'POWGATE_SITE_KEY',
  'POWGATE_API_KEY',
  'POWGATE_ACTOR',
])

/** Names and values of variables that Kubernetes sets for each Service of the namespace, which may be named powgate. */
const SERVICE_LINKS = [
  [/^\w+_SERVICE_HOST$/, /^[\d.]+$|^[\da-f:]+$/i],
  [/^\w+_SERVICE_PORT(_\w+)?$/, /^\d+$/],
  [/^\w+_PORT(_\d+_(TCP|UDP|SCTP))?$/, /^(tcp|udp|sctp):\/\//],
  [/^\w+_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)$/, /^(tcp|udp|sctp|\d+|[\da-f.:]+)$/i],
] as const

function isServiceLink(name: string, value: string): boolean {
  return SERVICE_LINKS.some(([names, values]) => names.test(name) && values.test(value))
}

const FILE_SUFFIX = '_FILE'

/** The environment takes precedence over POWGATE_CONFIG_FILE. */
export function gatherSettings(env: NodeJS.ProcessEnv): { values: SettingValues; problems: string[] } {
  const problems: string[] = []
  const configFile = env.POWGATE_CONFIG_FILE?.trim()
  const fromFile = configFile ? readSettingsFile(configFile, problems) : {}
  const values: Record<string, string> = {}
  for (const [name, { isSecret }] of Object.entries<Setting>(SETTINGS)) {
    const pathName = name + FILE_SUFFIX
    const isInEnvironment = env[name]?.trim() || (isSecret && env[pathName]?.trim())
    const source = isInEnvironment ? env : fromFile
    const value = source[name]?.trim()
    const path = isSecret ? source[pathName]?.trim() : undefined
    if (value && path) problems.push(`${pathName}: ${name} is set too; expected one of the two`)
    if (value) values[name] = value
    else if (path) readSecret(name, path, values, problems)
  }
  for (const [name, value = ''] of Object.entries(env))
    if (value.trim() !== '' && isUnknown(name, value.trim()))
      problems.push(`${name}: there is no such setting${suggestionFor(name)}`)
  return { values, problems }
}

/** Looks for the name without POWGATE_ too, because some settings, like PORT, have no prefix. */
function suggestionFor(name: string): string {
  const bare = name.replace(/^POWGATE_/, '')
  return didYouMean(bare in SETTINGS ? bare : name, Object.keys(SETTINGS))
}

function isUnknown(name: string, value: string): boolean {
  if (!name.startsWith('POWGATE_') || isSetting(name)) return false
  return !OTHER_VARIABLES.has(name) && !isServiceLink(name, value)
}

function isSetting(name: string): boolean {
  if (Object.hasOwn(SETTINGS, name)) return true
  const settings: Record<string, Setting> = SETTINGS
  return name.endsWith(FILE_SUFFIX) && settings[name.slice(0, -FILE_SUFFIX.length)]?.isSecret === true
}

function readSecret(name: string, path: string, values: Record<string, string>, problems: string[]): void {
  const pathName = name + FILE_SUFFIX
  values[pathName] = path // so that it is known where the value would be from
  const secret = textOfFile(pathName, path, problems)?.trim()
  if (secret === undefined) return
  if (secret === '') problems.push(`${pathName}: the file ${path} is empty`)
  // Master secrets may stand on lines of their own.
  else values[name] = secret.split(/\s*\n\s*/).join(',')
}

const LINE = /^(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/

/** A shell takes this for a comment, systemd for a part of the value. */
const COMMENT = /\s#/
const QUOTED = /^(["'])((?!\1).)*\1$/

/** Lines of NAME=value. Empty lines and comments (#) are skipped. */
function readSettingsFile(path: string, problems: string[]): Record<string, string> {
  const settings: Record<string, string> = {}
  const file = textOfFile('POWGATE_CONFIG_FILE', path, problems)
  // A full disk leaves an empty file, with which a SIGHUP would set every setting back to its default.
  if (file?.trim() === '') problems.push(`POWGATE_CONFIG_FILE: the file ${path} is empty`)
  file?.split('\n').forEach((line, index) => {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) return
    const [, name, value] = LINE.exec(text) ?? []
    const at = `POWGATE_CONFIG_FILE: ${path} line ${index + 1}`
    if (name === undefined || value === undefined) problems.push(`${at}: expected NAME=value`)
    else if (name === 'POWGATE_CONFIG_FILE') problems.push(`${at}: a file of settings names no other`)
    else if (!isSetting(name)) problems.push(`${at}: ${name}: there is no such setting${suggestionFor(name)}`)
    else if (Object.hasOwn(settings, name)) problems.push(`${at}: ${name}: expected once`)
    else if (COMMENT.test(text) && !QUOTED.test(value))
      problems.push(
        `${at}: ${name}: expected a comment on a line of its own, or quotes around a value with #`,
      )
    else settings[name] = value.replace(/^(["'])(.*)\1$/, '$2')
  })
  return settings
}

export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const { values, problems } = gatherSettings(env)
  return parseConfig(values, problems)
}

/** @param found problems of `gatherSettings`. @throws OperatorError with a line for each problem, those too */
export function parseConfig(values: SettingValues, found: readonly string[] = []): Config {
  const problems = [...found]
  // A nonce counts its time from 2024. A machine without a clock battery starts years before, until the network tells it the time.
  if (Date.now() < NONCE_TIME_ZERO_MS) problems.push('the clock of this machine is before 2024: set it')
  const text = (name: SettingName) => values[name] ?? SETTINGS[name].fallback
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    const value = values[name as SettingName]
    if (value === undefined || setting.accepts(value)) continue
    const got = setting.isSecret ? '' : `, got ${JSON.stringify(value)}`
    const hint = isServiceLink(name, value)
      ? ', which Kubernetes sets for a Service of that name: set enableServiceLinks: false in the pod'
      : ''
    problems.push(`${name}: expected ${setting.expects}${got}${hint}`)
  }

  const variableOf = (name: SettingName) => (name + FILE_SUFFIX in values ? name + FILE_SUFFIX : name)
  const redis = checkedRedis(text, variableOf, problems)
  const secretsFrom = variableOf('POWGATE_SECRETS')
  const secrets = checkedSecrets(text('POWGATE_SECRETS'), secretsFrom, redis !== undefined, problems)
  const trustedProxies = checkedRanges(text('POWGATE_TRUSTED_PROXIES'), problems)
  if (text('POWGATE_PROXY_PROTOCOL') === 'on' && trustedProxies.length === 0) {
    problems.push(
      'POWGATE_PROXY_PROTOCOL: expected POWGATE_TRUSTED_PROXIES to name the proxies that send the header',
    )
  }
  const [port, adminPort] = [Number(text('PORT')), Number(text('POWGATE_ADMIN_PORT'))]
  if (adminPort !== 0 && adminPort === port)
    problems.push(`POWGATE_ADMIN_PORT: expected another port than PORT, got ${adminPort}`)
  if (problems.length > 0) throw new OperatorError(problems.join('\n'))
  return Object.freeze(
    configOf(text, redis, secrets, trustedProxies, values.POWGATE_REDIS_SHARDS !== undefined),
  )
}

/** @param redis undefined for the embedded store. @param secrets the first signs; empty if the data directory has the secret */
function configOf(
  text: TextOf,
  redis: RedisTarget | undefined,
  secrets: readonly string[],
  trustedProxies: readonly string[],
  areShardsSet: boolean,
) {
  const number = (name: SettingName) => Number(text(name))
  const failOpen = list(text('POWGATE_FAIL_OPEN'))
  const adminHosts = list(text('POWGATE_ADMIN_HOSTS').toLowerCase())
  return {
    host: text('HOST'),
    port: number('PORT'),
    adminHost: text('POWGATE_ADMIN_HOST'),
    /** Lower case, without the final dot. */
    adminHosts: adminHosts.map(name => name.replace(/\.$/, '')),
    adminPort: number('POWGATE_ADMIN_PORT') || undefined,
    workers: number('POWGATE_WORKERS'),
    deployment: text('POWGATE_DEPLOYMENT'),
    metricsSites: list(text('POWGATE_METRICS_SITES')),
    logLevel: text('LOG_LEVEL'),
    logFormat: text('POWGATE_LOG_FORMAT') as 'auto' | 'json' | 'text',
    logSuccesses: number('POWGATE_LOG_SUCCESSES'),
    logsWholeAddresses: text('POWGATE_LOG_ADDRESSES') === 'whole',
    auditMs: number('POWGATE_AUDIT_DAYS') * 86_400_000,
    dataDir: text('POWGATE_DATA_DIR'),
    stateBytesMax: number('POWGATE_STATE_MAX_MB') * 2 ** 20,
    redis,
    redisPrefix: text('POWGATE_REDIS_PREFIX'),
    redisShards: number('POWGATE_REDIS_SHARDS'),
    /** If false, a host takes the number of shards that Redis keeps, if there is one, instead of `redisShards`. */
    areShardsSet,
    storeWaitMs: number('POWGATE_STORE_WAIT_SECONDS') * 1000,
    secrets,
    trustedProxies: new AddressSet(trustedProxies),
    proxyProtocol: text('POWGATE_PROXY_PROTOCOL') === 'on',
    ipv6PrefixBits: number('POWGATE_IPV6_PREFIX'),
    limits: limitsOf(({ setting }) => number(setting)),
    challengeLifetimeMs: number('POWGATE_CHALLENGE_SECONDS') * 1000,
    tokenLifetimeMs: number('POWGATE_TOKEN_SECONDS') * 1000,
    storeDeadlineMs: number('POWGATE_STORE_DEADLINE_MS'),
    bodyBytesMax: number('POWGATE_BODY_MAX_BYTES'),
    connectionsMax: number('POWGATE_CONNECTIONS_MAX'),
    overloadMs: number('POWGATE_OVERLOAD_MS') || undefined,
    failOpen: { challenge: failOpen.includes('challenge'), verify: failOpen.includes('verify') },
    failOpenAfterMs: number('POWGATE_FAIL_OPEN_AFTER_SECONDS') * 1000,
    drainMs: number('POWGATE_DRAIN_SECONDS') * 1000,
    unreadyMs: number('POWGATE_UNREADY_SECONDS') * 1000,
    demo: text('POWGATE_DEMO') as DemoMode,
    testKeys: text('POWGATE_TEST_KEYS') === 'on',
    warnings: warningsOf(text, trustedProxies),
  }
}

export function storeNameIn({ redis, redisPrefix, dataDir }: Config): string {
  if (redis === undefined) return resolve(dataDir)
  return `${describeTarget(redis)} (database ${redis.db}, prefix ${redisPrefix})`
}

/** The URL by which this machine reaches a listener: not by `localhost` of its own, which has two addresses, maybe of two programs. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host // `::` takes IPv4 too
  return `http://${hostAndPort({ host: name, port })}`
}

const COMMENT_OR_QUOTED = /^#|\s#|^["']|["']$/

function checkedSecrets(text: string, variable: string, isNeeded: boolean, problems: string[]): string[] {
  const secrets = list(text)
  const { expects } = SETTINGS.POWGATE_SECRETS
  // An unreadable or empty file is told already.
  if (secrets.length === 0 && isNeeded && variable === 'POWGATE_SECRETS')
    problems.push(`POWGATE_SECRETS: needed with REDIS_URL; expected ${expects}`)
  else if (secrets.length === 0 && text !== '') problems.push(`${variable}: expected ${expects}`)
  for (const [index, secret] of secrets.entries()) {
    const which = `${variable}: secret ${index + 1}`
    if (!PRINTABLE.test(secret)) problems.push(`${which} is not printable text`)
    // Otherwise a comment in the file would be taken for a secret, and the first secret signs.
    else if (COMMENT_OR_QUOTED.test(secret))
      problems.push(`${which} has a comment or quotation marks; expected secrets alone`)
    else if (secret.length < SECRET_CHARACTERS_MIN)
      problems.push(`${which} has ${secret.length} characters; expected ${expects}`)
  }
  return secrets
}

function checkedRanges(text: string, problems: string[]): string[] {
  const ranges = list(text)
  for (const range of ranges) {
    const isRange = parseRange(range) !== undefined
    if (isRange && !isEverybody(range)) continue
    const { expects } = SETTINGS.POWGATE_TRUSTED_PROXIES
    const why = isRange ? ', which is everybody' : ''
    problems.push(`POWGATE_TRUSTED_PROXIES: expected ${expects}, got ${JSON.stringify(range)}${why}`)
  }
  return ranges
}

/** 64 workers on two busy cores never settled, because calls of the store ended too late. */
const WORKERS_PER_CORE_MAX = 4

function warningsOf(text: TextOf, trustedProxies: readonly string[]): string[] {
  const warnings = trustedProxies.flatMap(range => {
    const risk = riskOfTrusting(range)
    return risk === undefined ? [] : [`POWGATE_TRUSTED_PROXIES: ${range} ${risk}`]
  })
  if (trustedProxies.length === 0 && isLoopback(text('HOST')))
    warnings.push(
      'HOST is a loopback address, so all visitors come through a proxy of this machine and share one rate limit: set POWGATE_TRUSTED_PROXIES',
    )
  const [workers, cores] = [Number(text('POWGATE_WORKERS')), availableParallelism()]
  if (workers > WORKERS_PER_CORE_MAX * cores)
    warnings.push(
      `POWGATE_WORKERS: ${workers} for ${cores} cores: they wait for each other, and calls of the store end too late`,
    )
  if (text('POWGATE_TEST_KEYS') === 'on')
    warnings.push('POWGATE_TEST_KEYS is on: anybody passes with the published test keys; not for production')
  return warnings
}

function list(text: string): string[] {
  return text
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '')
}
