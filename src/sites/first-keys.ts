/** The keys of a first start's site, in a file of the data directory that only its owner can read: `powgate try` uses them. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'first-keys'

export interface FirstKeys {
  readonly siteKey: string
  /** The secret. The store has only its hash. */
  readonly apiKey: string
}

/** Returns the path. */
export function writeFirstKeys(dataDir: string, { siteKey, apiKey }: FirstKeys): string {
  const path = join(dataDir, FILE)
  const text = `POWGATE_SITE_KEY=${siteKey}\nPOWGATE_API_KEY=${apiKey}\n`
  writeFileSync(path, text, { mode: 0o600, flush: true })
  return path
}

/** undefined if there was no first start, or the file was removed. */
export function readFirstKeys(dataDir: string): FirstKeys | undefined {
  try {
    const text = readFileSync(join(dataDir, FILE), 'utf8')
    const [, siteKey, apiKey] = /^POWGATE_SITE_KEY=(\S+)\nPOWGATE_API_KEY=(\S+)\n$/.exec(text) ?? []
    return siteKey === undefined || apiKey === undefined ? undefined : { siteKey, apiKey }
  } catch {
    return undefined
  }
}
