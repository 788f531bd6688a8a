/** What the service and the dashboard's page share. The page runs in browsers, so this file imports types only. */

import type { HostView } from '../store/hosts.ts'
import type { StoreCause } from '../words/reasons.ts'

export const RANGES = ['30m', '24h'] as const
export type Range = (typeof RANGES)[number]

/** Stands for a site key where the sites beyond SITES_MAX (metrics/table.ts) are added up, which bounds the memory. */
export const OTHER_SITES = 'other'

/** Counts how often something happened: in each step of time, and in total. Lists start with the most frequent. */
export interface Tally {
  readonly name: string
  readonly total: number
  readonly counts: readonly number[]
}

/** A value for each step, null where nothing was measured. */
export type Curve = readonly (number | null)[]

/** Milliseconds. */
export interface Percentiles {
  readonly p50: Curve
  readonly p95: Curve
  readonly p99: Curve
}

export interface ServiceState {
  /** Every worker answers. */
  readonly isHealthy: boolean
  /** At least one worker answers, and its store too. */
  readonly isReady: boolean
  readonly workers: number
  readonly workersRunning: number
  readonly workersWithStore: number
  readonly isStoreEmbedded: boolean
  /** Why the store does not answer the workers that lack it. */
  readonly storeCauses: readonly StoreCause[]
  /** Sites and API keys that the store has lost; workers serve them from memory. */
  readonly sitesLost: number
  /** The hosts that share the store; empty with the embedded store. */
  readonly hosts: readonly HostView[]
  /** Why hosts refuse what others issue: a line for each value in which another host differs. */
  readonly differences: readonly string[]
  /** Warnings of backends that are near or over a redemption limit, or never send the visitor's address. */
  readonly backends: readonly { readonly text: string; readonly isOverLimit: boolean }[]
  /** Nearly all visitors have one private address: that of a proxy which POWGATE_TRUSTED_PROXIES does not name. */
  readonly isProxyUntrusted: boolean
  /** The largest difference between the store's clock and this host's, as a worker found it. */
  readonly clockApartSeconds: number
  /** Keys that Redis has evicted since it started. */
  readonly evictedKeys: number
  /** True if the last SIGHUP took effect, and before the first. */
  readonly isReloadDone: boolean
  /** Workers that ended or hung since the start. */
  readonly workerCrashes: number
}

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
