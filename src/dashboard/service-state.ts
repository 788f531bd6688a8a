/** The state of the whole service, which the dashboard shows beside its history. */

import type { Supervisor } from '../admin/admin-server.ts'
import type { Config } from '../config/config.ts'
import type { MetricKey } from '../metrics/table.ts'
import type { Totals } from '../metrics/totals.ts'
import type { Backends } from '../process/backends.ts'
import type { HostRegistry } from '../process/host-registry.ts'
import { viewOf } from '../store/hosts.ts'
import { STORE_CAUSES, type StoreCause } from '../words/reasons.ts'

export type ServiceState = ReturnType<typeof serviceState>

export function serviceState(
  config: Config,
  totals: Totals,
  supervisor: Supervisor,
  hosts: HostRegistry,
  backends: Backends,
) {
  const values = totals.values()
  const all = totals.workers()
  const staying = all.filter(({ worker }) => worker.isLeaving !== true)
  const running = staying.length > 0 ? staying : all // at a stop all leave
  /** The largest absolute value among the workers, each of which has its own. */
  const farthestFromZero = (key: MetricKey) =>
    Math.max(0, ...running.map(({ values }) => Math.abs(values[key] ?? 0)))
  return {
    /** Every worker answers. */
    isHealthy: supervisor.isHealthy(),
    /** At least one worker answers, and its store too. */
    isReady: supervisor.isReady(),
    workers: supervisor.workersWanted(),
    workersRunning: running.length,
    workersWithStore: running.filter(({ values }) => values.storeUp === 1).length,
    /** Workers that ended or hung since the start. */
    workerCrashes: (values['restarts crash'] ?? 0) + (values['restarts hang'] ?? 0),
    storeCauses: (Object.keys(STORE_CAUSES) as StoreCause[]).filter(cause => values[`storeDown ${cause}`]),
    isStoreEmbedded: config.redis === undefined,
    sitesLost: values.sitesLost ?? 0,
    /** Empty with the embedded store. */
    hosts: hosts.living.map(viewOf),
    differences: hosts.differencesToOthers,
    backends: [
      // Junk tokens have a limit of their own, so junk over it makes no good token refused.
      ...backends.limitsHalfUsed.map(({ text, perMinute, limit, isJunk }) => {
        return { text, isOverLimit: perMinute > limit && !isJunk }
      }),
      // Their redemptions name no visitor's address.
      ...backends.unbound.map(({ text }) => ({ text, isOverLimit: false })),
    ],
    isProxyUntrusted: farthestFromZero('proxyUntrusted') > 0,
    clockApartSeconds: farthestFromZero('clockOffset'),
    evictedKeys: farthestFromZero('evictedKeys'),
    /** True before the start is done too, when the gauge is not set. */
    isReloadDone: (values.reloadDone ?? 1) !== 0,
  }
}
