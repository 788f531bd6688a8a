/** Body of /dashboard/data.json. */

import type { HistoryView } from '../metrics/history.ts'
import type { HostView } from '../store/hosts.ts'
import type { StoreCause } from '../words/reasons.ts'

export interface ServiceState {
  readonly version: string
  readonly isHealthy: boolean
  readonly isReady: boolean
  readonly workers: number
  readonly workersRunning: number
  readonly workersWithStore: number
  /** Why the workers without the store do not reach it. */
  readonly storeCauses: readonly StoreCause[]
  /** Sites and API keys. */
  readonly sitesLost: number
  /** The hosts that share the store; empty with the embedded one. */
  readonly hosts: readonly HostView[]
  /** A line for each value in which another host differs. */
  readonly differences: readonly string[]
  /** Backends near a redemption limit, or that name no visitor's address. */
  readonly backends: readonly { readonly text: string; readonly isOver: boolean }[]
  readonly isProxyUntrusted: boolean
  /** The largest difference between the store's clock and this host's, as a worker found it. */
  readonly clockApartSeconds: number
  /** Keys that Redis has evicted since it started. */
  readonly evictedKeys: number
  /** True if the last SIGHUP took effect, and before the first. */
  readonly isReloadDone: boolean
  /** Workers that ended or hung since the start. */
  readonly crashes: number
  readonly inFlight: number
}

export interface DashboardData extends HistoryView {
  /** The chosen site is neither in the store nor in the range. */
  readonly isUnknown: boolean
  readonly service: ServiceState
}
