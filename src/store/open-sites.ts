/** Opens the sites of the configured store. Only that store's code is loaded: a command does little else than loading. */

import type { Config } from '../config/config.ts'
import type { SiteStore } from './store.ts'

/** For calls that no visitor waits for. */
const [PATIENT_MS, OPEN_MS] = [2000, 5000]

/**
 * Sites and API keys alone, for commands that run beside the service. Of the embedded store only the durable part is opened;
 * in Redis no shard is used. Throws StoreSetupError.
 */
export async function openSiteStore(config: Config): Promise<SiteStore & { close(): Promise<void> }> {
  if (config.redis === undefined) {
    const { openEmbeddedSites } = await import('./embedded/sites.ts')
    return openEmbeddedSites(config.dataDir)
  }
  const { openRedisSites } = await import('./redis/sites.ts')
  return openRedisSites({
    target: config.redis,
    keyPrefix: config.redisPrefix,
    deadlineMs: PATIENT_MS,
    openMs: OPEN_MS,
  })
}
