/** Opens the configured store, or only its sites. Loads only that store's code: ioredis takes a tenth of a worker's start. */

import type { Config } from '../config/config.ts'
import type { EmbeddedStore } from './embedded/store.ts'
import type { RedisStore } from './redis/store.ts'
import type { SiteStore, StoreListener } from './store.ts'

interface OpenOptions extends StoreListener {
  /** Whether to remove expired entries; one process a machine is enough. */
  readonly sweeps: boolean
  readonly deadlineMs: number
  readonly openMs?: number
}

const OPEN_MS = 5000

/** Not open yet. @throws StoreSetupError */
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
  prepareDataDir(config.dataDir, true)
  return new EmbeddedStore({ dataDir: config.dataDir, bytesMax: config.stateBytesMax, ...options })
}

/**
 * For commands that run beside the service.
 *
 * @throws StoreSetupError
 */
export async function openSiteStore(config: Config): Promise<SiteStore & { close(): Promise<void> }> {
  if (config.redis === undefined) {
    const { openEmbeddedSites } = await import('./embedded/records.ts')
    return openEmbeddedSites(config.dataDir)
  }
  const { openRedisSites } = await import('./redis/records.ts')
  return openRedisSites(config.redis, config.redisPrefix, config.redisShards)
}
