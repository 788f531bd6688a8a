/** The first site's keys, for `powgate try`: in a file that only its owner can read. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface FirstKeys {
  readonly siteKey: string
  readonly apiKey: string
}

export const pathOfFirstKeys = (dataDir: string) => join(dataDir, 'first-keys')

export function writeFirstKeys(dataDir: string, { siteKey, apiKey }: FirstKeys): string {
  const path = pathOfFirstKeys(dataDir)
  const text = `POWGATE_SITE_KEY=${siteKey}\nPOWGATE_API_KEY=${apiKey}\n`
  writeFileSync(path, text, { mode: 0o600, flush: true })
  return path
}

export function readFirstKeys(dataDir: string): FirstKeys | undefined {
  try {
    const text = readFileSync(pathOfFirstKeys(dataDir), 'utf8')
    const [, siteKey, apiKey] = /^POWGATE_SITE_KEY=(\S+)\nPOWGATE_API_KEY=(\S+)\n$/.exec(text) ?? []
    return siteKey === undefined || apiKey === undefined ? undefined : { siteKey, apiKey }
  } catch {
    return undefined
  }
}
