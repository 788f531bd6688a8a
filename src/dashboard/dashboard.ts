/** Makes the dashboard's routes in the primary process, and adds to its history every ten seconds. */

import type { AdminRoute, Supervisor } from '../admin/admin-server.ts'
import type { Config } from '../config/config.ts'
import type { MetricKey } from '../metrics/table.ts'
import type { Totals } from '../metrics/totals.ts'
import type { Backends } from '../process/backends.ts'
import type { HostRegistry } from '../process/host-registry.ts'
import { viewOf } from '../store/hosts.ts'
import { STORE_CAUSES, type StoreCause } from '../words/reasons.ts'
import { dashboardRoutes } from './dashboard-routes.ts'
import type { ServiceState } from './data.ts'
import { ADD_MS, History } from './history.ts'
import { SiteNames, type SiteRecords } from './site-names.ts'

export function startDashboard(
  config: Config,
  totals: Totals,
  supervisor: Supervisor,
  records: SiteRecords,
  hosts: HostRegistry,
  backends: Backends,
): AdminRoute[] {
  if (config.adminPort === undefined) return []
  const siteNames = new SiteNames(records)
  // Unix time may be set, as by NTP after boot: measured by it, the history's steps would have a wrong length and age.
  const nowMs = () => Math.round(performance.now())
  const aheadMs = () => Date.now() - nowMs()
  const history = new History(nowMs(), siteKey => siteNames.get(siteKey), aheadMs)
  setInterval(async () => {
    await supervisor.askStats()
    history.add(nowMs(), { values: totals.values(), sites: totals.sites() })
  }, ADD_MS).unref()
  const stateNow = (): ServiceState => {
    const values = totals.values()
    const running = totals.workers()
    /** Each worker has a value of its own for such a gauge. */
    const farthestFromZero = (key: MetricKey) =>
      Math.max(0, ...running.map(({ values }) => Math.abs(values[key] ?? 0)))
    return {
      isHealthy: supervisor.isHealthy(),
      isReady: supervisor.isReady(),
      workers: supervisor.workersWanted(),
      workersRunning: running.length,
      storeCauses: (Object.keys(STORE_CAUSES) as StoreCause[]).filter(cause => values[`storeDown ${cause}`]),
      workersWithStore: running.filter(({ values }) => values.storeUp === 1).length,
      isStoreEmbedded: config.redis === undefined,
      sitesLost: values.sitesLost ?? 0,
      hosts: hosts.living.map(viewOf),
      differences: hosts.differencesToOthers,
      backends: [
        // Junk tokens have a limit of their own, so junk over it makes no good token refused.
        ...backends.limitsHalfUsed.map(({ text, perMinute, limit, isJunk }) => {
          return { text, isOverLimit: perMinute > limit && !isJunk }
        }),
        ...backends.unbound.map(({ text }) => ({ text, isOverLimit: false })),
      ],
      isProxyUntrusted: farthestFromZero('proxyUntrusted') > 0,
      clockApartSeconds: farthestFromZero('clockOffset'),
      evictedKeys: farthestFromZero('evictedKeys'),
      isReloadDone: (values.reloadDone ?? 1) !== 0,
      workerCrashes: (values['restarts crash'] ?? 0) + (values['restarts hang'] ?? 0),
    }
  }
  return dashboardRoutes(history, siteNames, stateNow)
}
