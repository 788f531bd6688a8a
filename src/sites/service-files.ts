/** Files that the service leaves in its data directory for commands: its address, and the keys of the first start's site. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, localUrl } from '../config/config.ts'
import { SERVICE_URL } from '../store/embedded/data-dir.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'

const urlPath = (dataDir: string) => join(dataDir, SERVICE_URL)
export const firstKeysPath = (dataDir: string) => join(dataDir, 'first-keys')

/** Writes nothing with Redis, because powgate then has no data directory. */
export function writeServiceUrl(config: Config): void {
  try {
    if (config.redis === undefined) writeFileSync(urlPath(config.dataDir), localUrl(config))
  } catch {
    // On a full disk, say. Commands then take the address from the settings, and `hasServedFrom` does not know of this run.
  }
}

/** Returns the address in the file, or that of the settings if the file is missing or empty. */
export function serviceUrl(config: Config): string {
  return (config.redis === undefined && textOf(urlPath(config.dataDir))) || localUrl(config)
}

export interface FirstKeys {
  readonly siteKey: string
  readonly apiKey: string
}

/** Only the file's owner can read it. @throws OperatorError */
export function writeFirstKeys(dataDir: string, { siteKey, apiKey }: FirstKeys): void {
  const text = `POWGATE_SITE_KEY=${siteKey}\nPOWGATE_API_KEY=${apiKey}\n`
  const path = firstKeysPath(dataDir)
  try {
    writeFileSync(path, text, { mode: 0o600, flush: true })
  } catch (error) {
    throw new OperatorError(`POWGATE_DATA_DIR: cannot write ${path}: ${systemErrorText(error)}`)
  }
}

export function readFirstKeys(dataDir: string): FirstKeys | undefined {
  const keys = /^POWGATE_SITE_KEY=(\S+)\nPOWGATE_API_KEY=(\S+)\n$/.exec(textOf(firstKeysPath(dataDir)))
  return keys === null ? undefined : { siteKey: keys[1]!, apiKey: keys[2]! }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
