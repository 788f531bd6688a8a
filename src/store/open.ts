/** Which store a configuration asks for. Only that one's code is loaded: ioredis takes a tenth of a worker's start. */

import type { Config } from '../config.ts'
import type { EmbeddedStore } from './embedded/store.ts'
import type { RedisStore } from './redis/store.ts'
import type { OnStoreCall } from './store.ts'

export interface OpenOptions {
  /** Whether this process removes what has expired; one per machine is enough. */
  readonly sweeps: boolean
  readonly deadlineMs: number
  readonly onChange?: (up: boolean, cause: string) => void
  /** Told when a store that was up has lost its memory in so many of its shards, or may have. */
  readonly onForgotten?: (shards: number, of: number) => void
  readonly onCall?: OnStoreCall
  /** How long `open` tries before it gives up; a few seconds if undefined. */
  readonly openMs?: number
  /** Told again and again while `open` tries. */
  readonly onWaiting?: (cause: string) => void
}

const OPEN_MS = 5000

/** Not open yet. Throws StoreSetupError if what is configured cannot work. */
export async function createStore(config: Config, options: OpenOptions): Promise<EmbeddedStore | RedisStore> {
  if (config.redis !== undefined) {
    const { RedisStore } = await import('./redis/store.ts')
    return new RedisStore({
      target: config.redis,
      keyPrefix: config.redisPrefix,
      clusterShards: config.redisShards,
      openMs: OPEN_MS,
      ...options,
    })
  }
  const [{ prepareDataDir }, { EmbeddedStore }] = await Promise.all([
    import('./embedded/environment.ts'),
    import('./embedded/store.ts'),
  ])
  prepareDataDir(config.dataDir)
  return new EmbeddedStore({ dataDir: config.dataDir, bytesMax: config.stateBytesMax, ...options })
}
