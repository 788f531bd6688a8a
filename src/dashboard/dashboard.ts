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

export function dashboard(
  config: Config,
  totals: Totals,
  supervisor: Supervisor,
  records: SiteRecords,
  hosts: HostRegistry,
  backends: Backends,
): AdminRoute[] {
  if (config.adminPort === undefined) return []
  const siteNames = new SiteNames(records)
  const history = new History(Date.now(), siteKey => siteNames.get(siteKey), totals.askedSites)
  setInterval(async () => {
    await supervisor.askStats()
    history.add(Date.now(), { values: totals.values(), sites: totals.sites() })
  }, ADD_MS).unref()
  return dashboardRoutes(history, siteNames, () => stateOf(config, totals, supervisor, hosts, backends))
}

function stateOf(
  config: Config,
  totals: Totals,
  supervisor: Supervisor,
  hosts: HostRegistry,
  { limitsHalfUsed, unbound }: Backends,
): ServiceState {
  const values = totals.values()
  const running = totals.workers()
  /** The greatest amount of a gauge that each worker has, whatever its sign. */
  const maxOfWorkers = (key: MetricKey) =>
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
      ...limitsHalfUsed.map(({ text, perMinute, limit, isJunk }) => {
        return { text, isOverLimit: perMinute > limit && !isJunk }
      }),
      ...unbound.map(({ text }) => ({ text, isOverLimit: false })),
    ],
    isProxyUntrusted: maxOfWorkers('proxyUntrusted') > 0,
    clockApartSeconds: maxOfWorkers('clockOffset'),
    evictedKeys: maxOfWorkers('evictedKeys'),
    isReloadDone: values.reloadDone !== 0,
    crashes: (values['restarts crash'] ?? 0) + (values['restarts hang'] ?? 0),
  }
}
