/** The address of the running service, in a file of its data directory, so that commands need not be told the port. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, localUrl } from '../config/config.ts'

const pathIn = (dataDir: string) => join(dataDir, 'service-url')

/** Hosts that share a Redis have no data directory: then commands go by the settings. */
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
