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
  /** Why the other workers do not reach the store. */
  readonly storeCauses: readonly StoreCause[]
  /** With API keys. */
  readonly sitesLost: number
  /** Sharing the store; empty with the embedded one. */
  readonly hosts: readonly HostView[]
  /** What other hosts do otherwise, one line each. */
  readonly differences: readonly string[]
  /** Near a redemption limit, or without their visitors' addresses. */
  readonly backends: readonly { readonly text: string; readonly isOver: boolean }[]
  readonly isProxyUntrusted: boolean
  /** Between host and store, at most. */
  readonly clockApartSeconds: number
  /** Since Redis started. */
  readonly evictedKeys: number
  /** True if the last SIGHUP took effect, and before the first. */
  readonly isReloadDone: boolean
  /** Since the start. */
  readonly crashes: number
  readonly inFlight: number
}

export interface DashboardData extends HistoryView {
  /** The chosen site is neither in the store nor in the range. */
  readonly isUnknown: boolean
  readonly service: ServiceState
}
