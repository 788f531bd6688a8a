/** The running service's address, in a file of its data directory: commands need not be told the port. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, localUrl } from '../config/config.ts'

const pathIn = (dataDir: string) => join(dataDir, 'service-url')

/** With Redis, commands go by the settings. */
export function writeServiceUrl(config: Config): void {
  if (config.redis === undefined) writeFileSync(pathIn(config.dataDir), localUrl(config))
}

/** Where the service listens, or would by the settings. */
export function serviceUrl(config: Config): string {
  try {
    if (config.redis === undefined) return readFileSync(pathIn(config.dataDir), 'utf8')
  } catch {
    // It never ran here.
  }
  return localUrl(config)
}
