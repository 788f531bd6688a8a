/** Tells commands where the service listens, by a file of its data directory. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, localUrl } from '../config/config.ts'

const pathIn = (dataDir: string) => join(dataDir, 'service-url')

/** Writes nothing with Redis, because commands then go by the settings. */
export function writeServiceUrl(config: Config): void {
  try {
    if (config.redis === undefined) writeFileSync(pathIn(config.dataDir), localUrl(config))
  } catch {
    // The disk is full: commands go by the settings.
  }
}

/** Goes by the settings if the file is missing or empty. */
export function serviceUrl(config: Config): string {
  try {
    if (config.redis === undefined) return readFileSync(pathIn(config.dataDir), 'utf8') || localUrl(config)
  } catch {
    // The service never ran here.
  }
  return localUrl(config)
}

/** True if a service with the embedded store ever ran in this data directory. */
export function hasServed({ redis, dataDir }: Config): boolean {
  return redis === undefined && existsSync(pathIn(dataDir))
}
