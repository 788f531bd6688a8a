/** Sites, API keys and the audit log alone, for commands and the dashboard; limits and used nonces stay closed. */

import { openSites, prepareDataDir } from './environment.ts'
import { checkSites } from './inspection.ts'
import { EmbeddedRecords } from './records.ts'

/** Throws StoreSetupError. */
export function openEmbeddedSites(dataDir: string): EmbeddedRecords {
  prepareDataDir(dataDir, false)
  checkSites(dataDir)
  return new EmbeddedRecords(openSites(dataDir))
}
