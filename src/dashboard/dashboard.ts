/** Makes the dashboard's routes in the primary process, and adds to its history every ten seconds. */

import type { AdminRoute, Supervisor } from '../admin/admin-server.ts'
import type { Config } from '../config/config.ts'
import type { Totals } from '../metrics/totals.ts'
import type { Backends } from '../process/backends.ts'
import type { HostRegistry } from '../process/host-registry.ts'
import { dashboardRoutes } from './dashboard-routes.ts'
import { ADD_MS, History } from './history.ts'
import { serviceState } from './service-state.ts'
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
  return dashboardRoutes(history, siteNames, () => serviceState(config, totals, supervisor, hosts, backends))
}
