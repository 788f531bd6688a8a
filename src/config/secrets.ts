/** The master secrets (the first signs, all verify): configured, or one made in the data directory. */

import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'
import type { Config, SettingValues } from './config.ts'
import { PRINTABLE, SECRET_CHARACTERS_MIN, SETTINGS, type Setting } from './settings.ts'

export const secretPath = ({ dataDir }: Config) => join(dataDir, 'secret')
export const IF_GONE =
  'it is gone. Put back a copy; or restart the service: a new one is made, and what was issued before is refused'
const IF_DAMAGED = 'Put back a copy; or remove it: a new one is made, and what was issued before is refused'

/**
 * Returns the configured secrets; if there are none, that of the data directory.
 *
 * @param makes whether a missing one is made: by the start alone, because a worker that made one would refuse what the others issue
 * @throws OperatorError
 */
export function resolveSecrets(config: Config, { makes } = { makes: false }): readonly string[] {
  if (config.secrets.length > 0) return config.secrets
  const path = secretPath(config)
  try {
    if (makes) createOnce(path)
    const secret = readFileSync(path, 'utf8').trim()
    if (secret.length < SECRET_CHARACTERS_MIN)
      throw new Error(`it is shorter than ${SECRET_CHARACTERS_MIN} characters. ${IF_DAMAGED}`)
    if (!PRINTABLE.test(secret)) throw new Error(`it is not printable text. ${IF_DAMAGED}`)
    return [secret]
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? IF_GONE : systemErrorText(error)
    throw new OperatorError(`POWGATE_DATA_DIR: cannot use the secret in ${path}: ${why}`)
  }
}

export function isSecretToBeMade(config: Config): boolean {
  return config.secrets.length === 0 && !existsSync(secretPath(config))
}

/** Makes the file whole or not at all, even on a full disk. `linkSync` replaces no file, nor a link whose target is not mounted yet. */
function createOnce(path: string): void {
  if (existsSync(path)) return
  const draft = `${path}.new`
  try {
    rmSync(draft, { force: true }) // left by a start that was killed
    const text = `${randomBytes(32).toString('base64url')}\n`
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Returns what the log must redact: secret settings as they were given, and what was parsed from them. Workers add the data directory's. */
export function secretTexts({ secrets, redis }: Config, values: SettingValues): readonly string[] {
  const settings: Record<string, Setting> = SETTINGS
  const given = Object.entries(values).flatMap(([name, text]) => (settings[name]?.isSecret ? [text] : []))
  return [...given, ...secrets, ...(redis?.password === undefined ? [] : [redis.password])]
}
