/** What the primary does with a data directory before any worker opens it. */

import { discardStaleState, prepareDataDir } from './environment.ts'
import { checkRoom, checkSites, discardDamagedLocks, discardDamagedState } from './inspection.ts'

/** Returns what was wrong with a state that was thrown away. Throws StoreSetupError if nothing can be done about it. */
export function prepareFiles(dataDir: string): string | undefined {
  prepareDataDir(dataDir)
  checkRoom(dataDir)
  discardDamagedLocks(dataDir)
  checkSites(dataDir)
  discardStaleState(dataDir)
  return discardDamagedState(dataDir)
}
