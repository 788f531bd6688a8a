/** Where the master secrets come from when none are configured: a file in the data directory, made once. */

import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import type { SettingValues } from './gather-settings.ts'
import { SETTINGS, type Setting } from './settings.ts'
import { StoreSetupError } from './store/store.ts'

const SECRET_FILE = 'secret'

/** @throws StoreSetupError if the file cannot be read or made */
export function resolveSecrets(config: Config): readonly string[] {
  if (config.secrets.length > 0) return config.secrets
  const path = join(config.dataDir, SECRET_FILE)
  try {
    createOnce(path)
    const secret = readFileSync(path, 'utf8').trim()
    if (secret.length < 32) throw new Error('the secret in it is shorter than 32 characters')
    return [secret]
  } catch (error) {
    throw new StoreSetupError(
      `POWGATE_DATA_DIR: cannot use the secret in ${path}: ${(error as Error).message}`,
    )
  }
}

function createOnce(path: string): void {
  try {
    const file = openSync(path, 'wx', 0o600)
    writeSync(file, `${randomBytes(32).toString('base64url')}\n`)
    closeSync(file)
    chmodSync(path, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Every secret text that was configured: for whoever must not let one out. */
export function secretTexts({ secrets, redis }: Config, values: SettingValues): readonly string[] {
  const settings: Record<string, Setting> = SETTINGS
  const given = Object.entries(values).flatMap(([name, text]) => (settings[name]?.isSecret ? [text] : []))
  return [...given, ...secrets, ...(redis?.password === undefined ? [] : [redis.password])]
}
