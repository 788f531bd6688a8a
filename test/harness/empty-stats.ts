import { SiteCounters } from '../../src/metrics/counters.ts'
import type { SiteStats, StatsSnapshot } from '../../src/metrics/snapshot.ts'
import { Stats } from '../../src/metrics/stats.ts'

/** The statistics of a worker without requests. */
export const EMPTY_STATS: StatsSnapshot = new Stats({
  isStoreUp: () => true,
  underWay: () => 0,
  connections: () => ({ open: 0, max: 0, refused: 0 }),
  siteNamedBy: () => undefined,
}).snapshot()

/** Of a site that nobody has asked for yet. */
export const EMPTY_SITE: SiteStats = new SiteCounters().snapshot()
