/** The sites of whichever store a configuration asks for. Of the stores it loads no more than it opens. */

import type { Config } from '../config.ts'
import { openSites, prepareDataDir } from './embedded/environment.ts'
import { checkSites } from './embedded/inspection.ts'
import { EmbeddedRecords } from './embedded/records.ts'
import type { SiteStore } from './store.ts'

/** For calls that no visitor waits for. */
const PATIENT_MS = 2000

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
  const { createStore } = await import('./open.ts')
  const store = createStore(config, { sweeps: false, deadlineMs: PATIENT_MS })
  try {
    await store.open()
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}
