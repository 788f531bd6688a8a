/** The data of the dashboard page: one array for each curve, with a number for each step of time. */

import type { EndpointName } from '../domain/endpoint.ts'
import type { HostView } from '../domain/hosts.ts'
import type { StoreCause } from '../domain/reason-words.ts'

export const RANGES = ['30m', '24h'] as const
export type Range = (typeof RANGES)[number]

/** The site key that stands for all sites that have no numbers of their own. */
export const OTHER_SITES = 'other'

export interface HistoryView {
  readonly range: Range
  /** Unix milliseconds, by the clock of the service. */
  readonly nowMs: number
  readonly startedAtMs: number
  /** The chosen site; null: all. */
  readonly site: string | null
  /** Sites with requests within the range, busiest first. */
  readonly sites: readonly SiteEntry[]
  /** Requests of the busiest sites, over time. */
  readonly busiest: readonly Tally[]
  readonly lastMinute: LastMinute
  /** End of each step, Unix milliseconds; oldest first. */
  readonly times: readonly number[]
  /** Length of each step, seconds. */
  readonly seconds: readonly number[]
  readonly traffic: Traffic
  readonly limits: readonly Tally[]
  readonly latencies: Readonly<Record<EndpointName, Percentiles>>
  readonly store: StoreHistory
  readonly workers: WorkerHistory
}

export interface SiteEntry {
  readonly siteKey: string
  readonly name: string
  readonly requests: number
}

/** Figures of the chosen site, or of all. */
export interface Traffic {
  readonly challenges: readonly number[]
  readonly passed: readonly number[]
  readonly failed: readonly number[]
  readonly redeemed: readonly number[]
  readonly refused: readonly number[]
  /** Why verifications failed or lost score; one verification can have several. */
  readonly failureReasons: readonly Tally[]
  readonly refusals: readonly Tally[]
  /** Difficulty, in bits, of the challenges issued in a step; null where there were none. */
  readonly difficulty: { readonly mean: Gaps; readonly max: Gaps }
  /** Verifications of the whole range by score: tenths from 0 on, the last is 1. */
  readonly scores: readonly number[]
}

/** How often something happened: most frequent first in a list of these. */
export interface Tally {
  readonly name: string
  readonly total: number
  readonly counts: readonly number[]
}

/** null: nothing was measured in that step. */
export type Gaps = readonly (number | null)[]

/** Milliseconds. */
export interface Percentiles {
  readonly p50: Gaps
  readonly p95: Gaps
  readonly p99: Gaps
}

export interface StoreHistory {
  readonly callMs: Percentiles
  /** Mean number of operations in a call. */
  readonly batch: Gaps
  readonly outages: readonly number[]
  /** 1 if the store was up for all workers throughout the step. */
  readonly up: readonly (0 | 1)[]
}

export interface WorkerHistory {
  readonly running: readonly number[]
  /** Workers that were replaced because they ended or hung. */
  readonly crashes: readonly number[]
  /** Workers that were replaced on purpose. */
  readonly rolls: readonly number[]
  /** Lag of the event loop, 99th percentile, of the worker with the greatest lag. */
  readonly lagMs: readonly number[]
  /** Of all workers. */
  readonly residentBytes: readonly number[]
  /** Requests that ended in an exception. */
  readonly faults: readonly number[]
  /** Requests whose client went away before the answer. */
  readonly aborted: readonly number[]
  /** Of the log, by all processes. */
  readonly linesLost: readonly number[]
}

/** Sums over the last full minute, of the chosen site or of all. */
export interface LastMinute {
  /** Length of the minute that was counted. */
  readonly seconds: number
  readonly challenges: number
  readonly passed: number
  readonly failed: number
  readonly redeemed: number
  readonly refused: number
  /** Refused redemptions, a part of `refused`. */
  readonly redemptionsRefused: number
  /** Of all sites. */
  readonly faults: number
  /** Milliseconds, of all sites; null without requests. */
  readonly p99: Readonly<Record<EndpointName, number | null>>
  readonly storeP99: number | null
}

export interface ServiceState {
  readonly version: string
  readonly isHealthy: boolean
  readonly isReady: boolean
  readonly workers: number
  readonly workersRunning: number
  /** How many of the running workers reach the store. */
  readonly workersWithStore: number
  /** Sites and API keys that the store has lost, by the worker that misses most. */
  readonly sitesLost: number
  /** Those that share the store; empty with the embedded store. */
  readonly hosts: readonly HostView[]
  /** Between this host and the others, one line each. */
  readonly differences: readonly string[]
  /** Of backends that near a limit of redemptions. */
  readonly limitsNear: readonly { readonly text: string; readonly isOver: boolean }[]
  /** The clocks of this host and of the store, by the worker that finds most. */
  readonly clockApartSeconds: number
  /** By Redis, since it started. */
  readonly evictedKeys: number
  /** Whether the last SIGHUP renewed all workers; true before the first. */
  readonly isReloadDone: boolean
  /** Why the others do not. */
  readonly storeCauses: readonly StoreCause[]
  /** Workers that ended or hung and were replaced, since the start of the service. */
  readonly crashes: number
  readonly underWay: number
}

/** The body of /dashboard/data.json. */
export interface DashboardData extends HistoryView {
  readonly service: ServiceState
}
