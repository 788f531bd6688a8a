/** The master secrets: configured, or one made in the data directory. */

import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemErrorText } from '../words/system-error.ts'
import { type Config, ConfigError, type SettingValues } from './config.ts'
import { SECRET_CHARACTERS_MIN, SETTINGS, type Setting } from './settings.ts'

const SECRET_FILE = 'secret'
/** U+FFFD stands for bytes that are not UTF-8, so it is refused. */
const PRINTABLE = /^[^\p{Cc}\ufffd]+$/u

/** @throws ConfigError */
export function resolveSecrets(config: Config): readonly string[] {
  if (config.secrets.length > 0) return config.secrets
  const path = join(config.dataDir, SECRET_FILE)
  try {
    createOnce(path)
    const secret = readFileSync(path, 'utf8').trim()
    if (secret.length < SECRET_CHARACTERS_MIN)
      throw new Error(`it is shorter than ${SECRET_CHARACTERS_MIN} characters`)
    if (!PRINTABLE.test(secret)) throw new Error('it is not printable text')
    return [secret]
  } catch (error) {
    throw new ConfigError([
      `POWGATE_DATA_DIR: cannot use the secret in ${path}: ${systemErrorText(error)}. Put back a copy; or remove it: a new one is made, and what was issued before is refused`,
    ])
  }
}

export function isSecretToBeMade({ secrets, dataDir }: Config): boolean {
  return secrets.length === 0 && !existsSync(join(dataDir, SECRET_FILE))
}

/** Writes the whole file or none, even on a full disk. */
function createOnce(path: string): void {
  if (existsSync(path)) return
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  const text = `${randomBytes(32).toString('base64url')}\n`
  const how = { mode: 0o600, flag: 'wx', flush: true } as const
  try {
    writeFileSync(draft, text, how)
    linkSync(draft, path) // a rename would replace another process's file
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'ENOSYS')
      writeFileSync(path, text, how) // no hard links on this file system
    else if (code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** The texts that the log must redact. */
export function secretTexts({ secrets, redis }: Config, values: SettingValues): readonly string[] {
  const settings: Record<string, Setting> = SETTINGS
  const given = Object.entries(values).flatMap(([name, text]) => (settings[name]?.isSecret ? [text] : []))
  return [...given, ...secrets, ...(redis?.password === undefined ? [] : [redis.password])]
}
