/** Which store a configuration asks for. */

import type { Config } from '../config.ts'
import { openSites, prepareDataDir } from './embedded/environment.ts'
import { checkSites } from './embedded/inspection.ts'
import { EmbeddedRecords } from './embedded/records.ts'
import { EmbeddedStore } from './embedded/store.ts'
import { RedisStore } from './redis/store.ts'
import type { OnStoreCall, SiteStore, Store } from './store.ts'

export interface OpenOptions {
  /** Whether this process removes what has expired; one per machine is enough. */
  readonly sweeps: boolean
  readonly deadlineMs: number
  readonly onChange?: (up: boolean, cause: string) => void
  readonly onCall?: OnStoreCall
  /** How long `open` tries before it gives up; a few seconds if undefined. */
  readonly openMs?: number
  /** Told again and again while `open` tries. */
  readonly onWaiting?: (cause: string) => void
}

const OPEN_MS = 5000
/** For calls that no visitor waits for. */
const PATIENT_MS = 2000

/** @throws StoreSetupError if what is configured cannot work */
export function createStore(config: Config, options: OpenOptions): Store {
  if (config.redis !== undefined) {
    return new RedisStore({
      target: config.redis,
      keyPrefix: config.redisPrefix,
      clusterShards: config.redisShards,
      openMs: OPEN_MS,
      ...options,
    })
  }
  prepareDataDir(config.dataDir)
  return new EmbeddedStore({ dataDir: config.dataDir, bytesMax: config.stateBytesMax, ...options })
}

/**
 * Sites and API keys alone, for commands that run beside the service: of the embedded store only the durable part is
 * opened. Throws StoreSetupError.
 */
export async function openSiteStore(config: Config): Promise<SiteStore & { close(): Promise<void> }> {
  if (config.redis === undefined) {
    prepareDataDir(config.dataDir)
    checkSites(config.dataDir)
    return new EmbeddedRecords(openSites(config.dataDir))
  }
  const store = createStore(config, { sweeps: false, deadlineMs: PATIENT_MS })
  try {
    await store.open()
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}
