/** Turns the settings of Redis into a RedisTarget. TLS files are read here, so that their faults are known at the start. */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseRedisUrl, type RedisTarget, type RedisTls } from './redis-target.ts'
import { SETTINGS, type SettingName } from './settings.ts'

type Text = (name: SettingName) => string
/** The variable that a setting came from. */
type Named = (name: SettingName) => string

const DATA_CREDENTIALS = ['POWGATE_REDIS_USER', 'POWGATE_REDIS_PASSWORD'] as const
const SENTINEL_CREDENTIALS = ['POWGATE_SENTINEL_USER', 'POWGATE_SENTINEL_PASSWORD'] as const
const TLS_SETTINGS = [
  'POWGATE_REDIS_TLS_CA',
  'POWGATE_REDIS_TLS_CERT',
  'POWGATE_REDIS_TLS_KEY',
  'POWGATE_REDIS_TLS_NAME',
] as const

/**
 * @param problems gets a line for each problem; none repeats a value that may be secret
 * @returns undefined if REDIS_URL is empty, or cannot be parsed
 */
export function checkedRedis(text: Text, named: Named, problems: string[]): RedisTarget | undefined {
  const url = text('REDIS_URL')
  if (url === '') {
    for (const name of [...DATA_CREDENTIALS, ...SENTINEL_CREDENTIALS, ...TLS_SETTINGS])
      if (text(name) !== '') problems.push(`${name}: of no use without REDIS_URL`)
    return undefined
  }
  const target = parseRedisUrl(url)
  // The URL can hold a password, so it is not repeated.
  if (target === undefined) {
    problems.push(`${named('REDIS_URL')}: expected ${SETTINGS.REDIS_URL.expects}`)
    return undefined
  }
  const before = problems.length
  const checked = {
    ...target,
    ...dataCredentials(target, text, problems),
    ...sentinelCredentials(target, text, problems),
    from: credentialsFrom(target, text, named),
    tls: checkedTls(target, text, problems),
  }
  // A target with problems is never used, but its presence decides which other settings are needed.
  return problems.length === before ? checked : target
}

function dataCredentials(target: RedisTarget, text: Text, problems: string[]) {
  const [userSetting, passwordSetting] = DATA_CREDENTIALS
  const isTwice = (setting: SettingName, inUrl: string | undefined) =>
    text(setting) !== '' && inUrl !== undefined && text(setting) !== inUrl
  if (isTwice(userSetting, target.username))
    problems.push(`${userSetting}: REDIS_URL names another user; expected one of the two`)
  if (isTwice(passwordSetting, target.password))
    problems.push(`${passwordSetting}: REDIS_URL has another password; expected one of the two`)
  const username = text(userSetting) || target.username
  const password = text(passwordSetting) || target.password
  if (username !== undefined && password === undefined)
    problems.push(`${passwordSetting}: needed with a user; expected ${SETTINGS[passwordSetting].expects}`)
  return { username, password }
}

function credentialsFrom({ username, password }: RedisTarget, text: Text, named: Named) {
  const [userSetting, passwordSetting] = DATA_CREDENTIALS
  const source = (setting: SettingName, inUrl: string | undefined) =>
    named(text(setting) === '' && inUrl !== undefined ? 'REDIS_URL' : setting)
  return {
    user: source(userSetting, username),
    password: source(passwordSetting, password),
    sentinel: named('POWGATE_SENTINEL_PASSWORD'),
  }
}

function sentinelCredentials(target: RedisTarget, text: Text, problems: string[]) {
  const [userSetting, passwordSetting] = SENTINEL_CREDENTIALS
  for (const name of SENTINEL_CREDENTIALS)
    if (text(name) !== '' && target.kind !== 'sentinel')
      problems.push(`${name}: of no use unless REDIS_URL is redis+sentinel:// or rediss+sentinel://`)
  const sentinelUsername = text(userSetting) || undefined
  const sentinelPassword = text(passwordSetting) || undefined
  if (sentinelUsername !== undefined && sentinelPassword === undefined)
    problems.push(`${passwordSetting}: needed with a user; expected ${SETTINGS[passwordSetting].expects}`)
  return { sentinelUsername, sentinelPassword }
}

function checkedTls(target: RedisTarget, text: Text, problems: string[]): RedisTls | undefined {
  if (target.tls === undefined) {
    for (const name of TLS_SETTINGS)
      if (text(name) !== '') problems.push(`${name}: REDIS_URL asks for no TLS; expected rediss://`)
    return undefined
  }
  const [caSetting, certSetting, keySetting, nameSetting] = TLS_SETTINGS
  const ca = pemFile(caSetting, text, problems, checkCertificates)
  const cert = pemFile(certSetting, text, problems, checkCertificates)
  const key = pemFile(keySetting, text, problems, pem => {
    createPrivateKey(pem)
  })
  if (text(certSetting) !== '' && text(keySetting) === '')
    problems.push(`${keySetting}: needed with ${certSetting}; expected ${SETTINGS[keySetting].expects}`)
  if (text(keySetting) !== '' && text(certSetting) === '')
    problems.push(`${certSetting}: needed with ${keySetting}; expected ${SETTINGS[certSetting].expects}`)
  if (cert !== undefined && key !== undefined && !isPair(cert, key))
    problems.push(`${keySetting}: this is not the key of the certificate in ${certSetting}`)
  return { ca, cert, key, name: text(nameSetting) || undefined }
}

/** undefined if the setting is empty or the file invalid. The file's content never gets into a problem. */
function pemFile(
  name: SettingName,
  text: Text,
  problems: string[],
  check: (pem: string) => void,
): string | undefined {
  const path = text(name)
  if (path === '') return undefined
  let pem: string
  try {
    pem = readFileSync(path, 'utf8')
  } catch (error) {
    problems.push(`${name}: cannot read ${path}: ${(error as Error).message}`)
    return undefined
  }
  try {
    check(pem)
    return pem
  } catch (error) {
    const isLocked =
      pem.includes('ENCRYPTED') || (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
    const what = isLocked
      ? 'is encrypted; expected a key without a passphrase'
      : `holds none; expected ${SETTINGS[name].expects}`
    problems.push(`${name}: ${path} ${what}`)
    return undefined
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** @throws if there is no certificate, or one that cannot be read */
function checkCertificates(pem: string): void {
  const certificates = pem.match(CERTIFICATE)
  if (certificates === null) throw new Error('no certificate')
  for (const certificate of certificates) new X509Certificate(certificate)
}

function isPair(cert: string, key: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
}
