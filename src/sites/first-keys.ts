/** The keys of the first site, in a file that only its owner can read, in the data directory; for `powgate try`. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'first-keys'

export interface FirstKeys {
  readonly siteKey: string
  /** The store has only its hash. */
  readonly apiKey: string
}

export function pathOfFirstKeys(dataDir: string): string {
  return join(dataDir, FILE)
}

/** Returns the path. */
export function writeFirstKeys(dataDir: string, { siteKey, apiKey }: FirstKeys): string {
  const path = pathOfFirstKeys(dataDir)
  const text = `POWGATE_SITE_KEY=${siteKey}\nPOWGATE_API_KEY=${apiKey}\n`
  writeFileSync(path, text, { mode: 0o600, flush: true })
  return path
}

/** undefined if the file is missing or unreadable. */
export function readFirstKeys(dataDir: string): FirstKeys | undefined {
  try {
    const text = readFileSync(pathOfFirstKeys(dataDir), 'utf8')
    const [, siteKey, apiKey] = /^POWGATE_SITE_KEY=(\S+)\nPOWGATE_API_KEY=(\S+)\n$/.exec(text) ?? []
    return siteKey === undefined || apiKey === undefined ? undefined : { siteKey, apiKey }
  } catch {
    return undefined
  }
}
