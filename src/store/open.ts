/** Opens the configured store, or only its sites. */

import type { Config } from '../config/config.ts'
import { socketTarget } from '../config/redis.ts'
import type { BridgeOptions } from './client/bridge.ts'
import { StoreClient } from './client/store.ts'
import { prepareDataDir, socketPath } from './embedded/data-dir.ts'
import { socketSites } from './embedded/socket-sites.ts'
import type { SiteStore, StoreListener } from './store.ts'

interface OpenOptions extends StoreListener {
  readonly deadlineMs: number
  /** `open` gives up then; the default is OPEN_MS. */
  readonly openMs?: number
  readonly bridge?: BridgeOptions | undefined
}

const OPEN_MS = 5000

/** Makes the store's client, which begins to connect; its `open` waits until the store answers. @throws StoreSetupError */
export function createStore(config: Config, options: OpenOptions): StoreClient {
  const defaults = {
    keyPrefix: config.redisPrefix,
    clusterShards: config.redisShards,
    openMs: OPEN_MS,
    ...options,
  }
  if (config.redis !== undefined) return new StoreClient({ target: config.redis, ...defaults })
  return new StoreClient({
    target: socketTarget(socketPath(config.dataDir)),
    sitesOf: socketSites,
    ...defaults,
  })
}

/**
 * Opens the sites for a command that runs beside the service.
 *
 * @throws StoreSetupError
 */
export async function openSiteStore(config: Config): Promise<SiteStore & { close(): Promise<void> }> {
  if (config.redis === undefined) {
    prepareDataDir(config.dataDir, false)
    const { openEmbeddedSites } = await import('./embedded/open-sites.ts')
    return openEmbeddedSites(config)
  }
  const { openRedisSites } = await import('./redis/records.ts')
  return openRedisSites(config.redis, config.redisPrefix, config.redisShards)
}
