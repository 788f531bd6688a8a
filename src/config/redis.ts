/**
 * Turns the Redis settings into a RedisTarget. Forms of REDIS_URL:
 *
 *   redis://[user:password@]host[:port][/db]                     one server (rediss:// for TLS)
 *   redis://a:7000,redis://b:7000,...                            a Cluster: two or more seeds
 *   redis+cluster://[user:password@]a:7000,b:7000                a Cluster, also with one seed
 *   redis+sentinel://[user:password@]a:26379,b:26379/<name>[/db] Sentinels that know the primary <name>;
 *                                                              user and password are the servers'
 *
 * With rediss+sentinel://, Sentinels use TLS too. IPv6 hosts need brackets.
 */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { hostAndPort } from '../addresses/address.ts'
import { systemErrorText } from '../words/system-error.ts'
import { SETTINGS, type SettingName } from './settings.ts'

export interface RedisTarget {
  /** `socket`: the embedded store, whose process speaks Redis' protocol on the Unix socket `path` (store/embedded/). */
  readonly kind: 'standalone' | 'sentinel' | 'cluster' | 'socket'
  readonly path?: string
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly primaryName?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: string | undefined
  /** The settings that the credentials are from, for error messages. */
  readonly from: Readonly<Record<'user' | 'password' | 'sentinel', string>>
  readonly db: number
  readonly tls?: RedisTls | undefined
}

/** PEM texts. */
interface RedisTls {
  /** Replaces the authorities that Node.js trusts. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The name that certificates must have; the default is the host connected to. */
  readonly name?: string | undefined
}

/** Returns a setting's value, or its default. */
export type TextOf = (name: SettingName) => string
/** Returns the variable that a setting's value is from, which for a secret may be `<NAME>_FILE`. */
type VariableOf = (name: SettingName) => string

const DATA_CREDENTIALS = ['POWGATE_REDIS_USER', 'POWGATE_REDIS_PASSWORD'] as const
const SENTINEL_CREDENTIALS = ['POWGATE_SENTINEL_USER', 'POWGATE_SENTINEL_PASSWORD'] as const
const ENCODING_HINT = 'in a user or password of REDIS_URL write , # / ? % as %2C %23 %2F %3F %25'
const TLS_SETTINGS = [
  'POWGATE_REDIS_TLS_CA',
  'POWGATE_REDIS_TLS_CERT',
  'POWGATE_REDIS_TLS_KEY',
  'POWGATE_REDIS_TLS_NAME',
] as const

/** @param problems gets a line each, without values that may be secret. @returns undefined if REDIS_URL is empty or malformed */
export function checkedRedis(
  text: TextOf,
  variableOf: VariableOf,
  problems: string[],
): RedisTarget | undefined {
  const url = text('REDIS_URL')
  if (url === '') {
    if (variableOf('REDIS_URL') !== 'REDIS_URL') return undefined // its file is unreadable or empty, which is told already
    for (const name of [...DATA_CREDENTIALS, ...SENTINEL_CREDENTIALS, ...TLS_SETTINGS])
      if (text(name) !== '') problems.push(`${name}: has no effect without REDIS_URL`)
    return undefined
  }
  const target = parseRedisUrl(url)
  if (target === undefined) {
    const hint = url.includes('@') ? `; ${ENCODING_HINT}` : ''
    problems.push(`${variableOf('REDIS_URL')}: expected ${SETTINGS.REDIS_URL.expects}${hint}`)
    return undefined
  }
  const before = problems.length
  const checked = {
    ...target,
    ...dataCredentials(target, text, variableOf, problems),
    ...sentinelCredentials(target, text, variableOf, problems),
    tls: checkedTls(target, text, problems),
  }
  // `parseConfig` throws because of the problems, but first asks for POWGATE_SECRETS, which Redis needs.
  return problems.length === before ? checked : target
}

/** A user and a password may each be in their setting or in REDIS_URL. */
function dataCredentials(target: RedisTarget, text: TextOf, variableOf: VariableOf, problems: string[]) {
  const [userSetting, passwordSetting] = DATA_CREDENTIALS
  const credential = (setting: SettingName, inUrl: string | undefined, ifOther: string) => {
    const given = text(setting) || undefined
    if (given !== undefined && inUrl !== undefined && given !== inUrl)
      problems.push(`${setting}: REDIS_URL ${ifOther}; expected one of the two`)
    const isFromUrl = given === undefined && inUrl !== undefined
    return { value: given ?? inUrl, from: variableOf(isFromUrl ? 'REDIS_URL' : setting) }
  }
  const user = credential(userSetting, target.username, 'names another user')
  const password = credential(passwordSetting, target.password, 'has another password')
  // If `from` is the variable of a file, that file is unreadable or empty, which is told already.
  if (user.value !== undefined && password.value === undefined && password.from === passwordSetting)
    problems.push(
      `${passwordSetting}: needed with a user; expected ${SETTINGS[passwordSetting].expects}, any for a user with nopass; ${ENCODING_HINT}`,
    )
  const sentinel = variableOf('POWGATE_SENTINEL_PASSWORD')
  const from = { user: user.from, password: password.from, sentinel }
  return { username: user.value, password: password.value, from }
}

function sentinelCredentials(target: RedisTarget, text: TextOf, variableOf: VariableOf, problems: string[]) {
  const [userSetting, passwordSetting] = SENTINEL_CREDENTIALS
  for (const name of SENTINEL_CREDENTIALS)
    if (text(name) !== '' && target.kind !== 'sentinel')
      problems.push(`${name}: has no effect unless REDIS_URL is redis+sentinel:// or rediss+sentinel://`)
  const sentinelUsername = text(userSetting) || undefined
  const sentinelPassword = text(passwordSetting) || undefined
  const isInFile = variableOf(passwordSetting) !== passwordSetting
  if (sentinelUsername !== undefined && sentinelPassword === undefined && !isInFile)
    problems.push(`${passwordSetting}: needed with a user; expected ${SETTINGS[passwordSetting].expects}`)
  return { sentinelUsername, sentinelPassword }
}

function checkedTls(target: RedisTarget, text: TextOf, problems: string[]): RedisTls | undefined {
  if (target.tls === undefined) {
    for (const name of TLS_SETTINGS)
      if (text(name) !== '') problems.push(`${name}: REDIS_URL asks for no TLS; expected rediss://`)
    return undefined
  }
  const [caSetting, certSetting, keySetting, nameSetting] = TLS_SETTINGS
  const ca = pemFile(caSetting, text, problems, checkCertificates)
  const cert = pemFile(certSetting, text, problems, checkCertificates)
  const key = pemFile(keySetting, text, problems, createPrivateKey)
  if (text(certSetting) !== '' && text(keySetting) === '')
    problems.push(`${keySetting}: needed with ${certSetting}; expected ${SETTINGS[keySetting].expects}`)
  if (text(keySetting) !== '' && text(certSetting) === '')
    problems.push(`${certSetting}: needed with ${keySetting}; expected ${SETTINGS[certSetting].expects}`)
  const isPair = () => new X509Certificate(cert!).checkPrivateKey(createPrivateKey(key!))
  if (cert !== undefined && key !== undefined && !isPair())
    problems.push(`${keySetting}: this is not the key of the certificate in ${certSetting}`)
  return { ca, cert, key, name: text(nameSetting) || undefined }
}

function pemFile(
  name: SettingName,
  text: TextOf,
  problems: string[],
  check: (pem: string) => unknown,
): string | undefined {
  const path = text(name)
  if (path === '') return undefined
  const pem = textOfFile(name, path, problems)
  if (pem === undefined) return undefined
  try {
    check(pem)
    return pem
  } catch (error) {
    const isLocked =
      pem.includes('ENCRYPTED') || (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
    const what = isLocked
      ? 'is encrypted; expected a key without a passphrase'
      : `holds no valid ${check === createPrivateKey ? 'key' : 'certificate'}; expected ${SETTINGS[name].expects}`
    problems.push(`${name}: ${path} ${what}`)
    return undefined
  }
}

/** Returns undefined, and adds a problem of the variable, if the file cannot be read. */
export function textOfFile(variable: string, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    problems.push(`${variable}: cannot read ${path}: ${systemErrorText(error)}`)
    return undefined
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function checkCertificates(pem: string): void {
  const certificates = pem.match(CERTIFICATE)
  if (certificates === null) throw new Error('no certificate')
  for (const certificate of certificates) new X509Certificate(certificate)
}

const SCHEME = /^(rediss?)(\+cluster|\+sentinel)?:\/\//

/** @returns undefined if the text has none of the forms above */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const parts = text.split(',').map(part => part.trim())
  const [scheme, protocol, mode] = SCHEME.exec(parts[0]!) ?? []
  if (scheme === undefined) return undefined
  const urls: URL[] = []
  for (const part of parts) {
    const authority = part.replace(SCHEME, '')
    // A node after a comma has no scheme, or the same as the first.
    if (authority === '' || (part !== authority && !part.startsWith(scheme))) return undefined
    if (!URL.canParse(`redis://${authority}`)) return undefined
    // Only a later node seems to have credentials, so the comma is probably part of a password.
    if (part === authority && part.includes('@') && !parts[0]!.includes('@')) return undefined
    urls.push(new URL(`redis://${authority}`))
  }
  const kind = mode === '+cluster' || urls.length > 1 ? 'cluster' : 'standalone'
  return targetOf(mode === '+sentinel' ? 'sentinel' : kind, urls, protocol === 'rediss')
}

export function socketTarget(path: string): RedisTarget {
  return { kind: 'socket', path, nodes: [], db: 0, from: { user: '', password: '', sentinel: '' } }
}

const DEFAULT_PORTS = { standalone: 6379, cluster: 6379, sentinel: 26379 }

function targetOf(
  kind: keyof typeof DEFAULT_PORTS,
  urls: readonly URL[],
  hasTls: boolean,
): RedisTarget | undefined {
  // The path stands after the last node. Others may only repeat it.
  const { pathname } = urls[urls.length - 1]!
  if (urls.some(url => url.pathname.length > 1 && url.pathname !== pathname)) return undefined
  const path = pathname.split('/').slice(1)
  const primaryName = kind === 'sentinel' ? path.shift() : undefined
  const [dbText = ''] = path
  if (kind === 'sentinel' && (primaryName === undefined || primaryName === '')) return undefined
  if (path.length > 1 || !/^\d{0,3}$/.test(dbText) || (dbText !== '' && kind === 'cluster')) return undefined
  if (urls.some(url => url.hostname === '' || url.search !== '' || url.hash !== '')) return undefined
  const credentials = credentialsOf(urls)
  if (credentials === undefined) return undefined
  return {
    kind,
    nodes: urls.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || DEFAULT_PORTS[kind]),
    })),
    primaryName,
    ...credentials,
    from: { user: 'REDIS_URL', password: 'REDIS_URL', sentinel: 'POWGATE_SENTINEL_PASSWORD' },
    db: Number(dbText),
    tls: hasTls ? {} : undefined,
  }
}

/** Returns the user and password of all nodes, or undefined if they differ or cannot be decoded. */
function credentialsOf(urls: readonly URL[]): Pick<RedisTarget, 'username' | 'password'> | undefined {
  const given = urls.filter(url => url.username !== '' || url.password !== '')
  const [first] = given
  if (given.some(url => url.username !== first?.username || url.password !== first?.password))
    return undefined
  const decoded = (text: string | undefined) => (text ? decodeURIComponent(text) : undefined)
  try {
    return { username: decoded(first?.username), password: decoded(first?.password) }
  } catch {
    return undefined
  }
}

/** Names the kind and the hosts, but no credentials: the text goes into logs and messages. */
export function describeTarget(target: RedisTarget): string {
  if (target.path !== undefined) return `embedded store in ${dirname(target.path)}`
  const nodes = target.nodes.map(hostAndPort).join(', ')
  const how = target.tls === undefined ? '' : ' over TLS'
  return `Redis ${target.kind === 'standalone' ? '' : `${target.kind} `}at ${nodes}${how}`
}
