import { SiteCounters } from '../../src/observe/site-counters.ts'
import type { SiteStats, StatsSnapshot } from '../../src/observe/snapshot.ts'
import { Stats } from '../../src/observe/stats.ts'

/** The statistics of a worker without requests. */
export const EMPTY_STATS: StatsSnapshot = new Stats({
  isStoreUp: () => true,
  underWay: () => 0,
  connections: () => ({ open: 0, max: 0, refused: 0 }),
  siteNamedBy: () => undefined,
}).snapshot()

/** Of a site that nobody has asked for yet. */
export const EMPTY_SITE: SiteStats = new SiteCounters().snapshot()
