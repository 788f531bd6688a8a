/** What the primary process does with a data directory before any worker opens it. */

import { discardStaleState, prepareDataDir } from './environment.ts'
import { checkRoom, checkSites, discardDamagedLocks, discardDamagedState } from './inspection.ts'

/** Returns what was wrong with a damaged state that was deleted. Throws StoreSetupError for what cannot be repaired here. */
export function prepareFiles(dataDir: string): string | undefined {
  prepareDataDir(dataDir, true)
  checkRoom(dataDir)
  discardDamagedLocks(dataDir)
  checkSites(dataDir)
  discardStaleState(dataDir)
  return discardDamagedState(dataDir)
}
