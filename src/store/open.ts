/** Which store a configuration asks for. */

import type { Config } from '../config.ts'
import { prepareDataDir } from './embedded/environment.ts'
import { EmbeddedStore } from './embedded/store.ts'
import { RedisStore } from './redis/store.ts'
import type { OnStoreCall, Store } from './store.ts'

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
