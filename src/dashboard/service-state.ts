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
  /** The whole service's: also those of workers that leave, and of the start, which waits for the store before any worker runs. */
  const ofService = totals.values()
  const all = totals.workers()
  const staying = all.filter(({ worker }) => worker.isLeaving !== true)
  const running = staying.length > 0 ? staying : all // at a stop all leave
  /** The largest absolute value among the workers. Each tells the same thing as it sees it, so a sum would count it several times. */
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
    workerCrashes: (ofService['restarts crash'] ?? 0) + (ofService['restarts hang'] ?? 0),
    storeCauses: (Object.keys(STORE_CAUSES) as StoreCause[]).filter(cause => ofService[`storeDown ${cause}`]),
    isStoreEmbedded: config.redis === undefined,
    sitesLost: ofService.sitesLost ?? 0,
    /** Empty with the embedded store. */
    hosts: hosts.living.map(viewOf),
    /** Why this host and others of its store refuse each other's challenges and tokens, a line each. */
    differences: hosts.differencesToOthers,
    /** What to warn of about backends. One over its limit is refused already. */
    backends: [
      // Junk tokens have a limit of their own, so junk over it makes no good token refused.
      ...backends.limitsHalfUsed.map(({ text, perMinute, limit, isJunk }) => {
        return { text, isOverLimit: perMinute > limit && !isJunk }
      }),
      // Their redemptions name no visitor's address.
      ...backends.unbound.map(({ text }) => ({ text, isOverLimit: false })),
    ],
    isProxyUntrusted: farthestFromZero('proxyUntrusted') > 0,
    /** The distance of the host's clock from that of Redis, as the worker that is farthest off sees it. */
    clockApartSeconds: farthestFromZero('clockOffset'),
    evictedKeys: farthestFromZero('evictedKeys'),
    /** True before the start is done too, when the gauge is not set. */
    isReloadDone: (ofService.reloadDone ?? 1) !== 0,
  }
}
