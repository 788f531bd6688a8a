/** The dashboard page's data: an array per curve, a number per step of time. */

import type { EndpointName } from '../domain/endpoint.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import type { HostView } from '../store/hosts.ts'
import type { StoreCause } from '../words/reasons.ts'

export const RANGES = ['30m', '24h'] as const
export type Range = (typeof RANGES)[number]

/** Site key of all sites without numbers of their own. */
export const OTHER_SITES = 'other'

export interface HistoryView {
  readonly range: Range
  /** Unix milliseconds, as all times here. */
  readonly nowMs: number
  readonly startedAtMs: number
  /** null: all sites. */
  readonly site: string | null
  /** If false, the chosen site's figures so far are among OTHER_SITES. */
  readonly isApart: boolean
  /** Sites with requests in the range, busiest first. */
  readonly sites: readonly SiteEntry[]
  /** Requests over time. */
  readonly busiest: readonly Tally[]
  readonly lastMinute: LastMinute
  /** End and length of each step, oldest first. */
  readonly times: readonly number[]
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

export interface Traffic {
  readonly challenges: readonly number[]
  readonly passed: readonly number[]
  readonly failed: readonly number[]
  readonly redeemed: readonly number[]
  readonly refused: readonly number[]
  /** A verification can have several. */
  readonly failureReasons: readonly Tally[]
  readonly refusals: readonly Tally[]
  readonly difficulty: Readonly<Record<PuzzleName, Bits>>
  /** Verifications by score, in tenths from 0 to 1. */
  readonly scores: readonly number[]
}

export interface Bits {
  readonly mean: Gaps
  readonly max: Gaps
}

/** Counts how often something happened. Lists start with the most frequent. */
export interface Tally {
  readonly name: string
  readonly total: number
  readonly counts: readonly number[]
}

/** null: nothing measured in that step. */
export type Gaps = readonly (number | null)[]

/** Milliseconds. */
export interface Percentiles {
  readonly p50: Gaps
  readonly p95: Gaps
  readonly p99: Gaps
}

export interface StoreHistory {
  readonly callMs: Percentiles
  /** Mean operations per call. */
  readonly batch: Gaps
  readonly outages: readonly number[]
  /** 1 if all workers had the store all the time. */
  readonly up: readonly (0 | 1)[]
}

export interface WorkerHistory {
  readonly running: readonly number[]
  /** Replaced because they ended or hung. */
  readonly crashes: readonly number[]
  /** Replaced on purpose. */
  readonly rolls: readonly number[]
  /** p99 of the event loop's lag, of the worst worker. */
  readonly lagMs: readonly number[]
  /** All workers together. */
  readonly residentBytes: readonly number[]
  readonly faults: readonly number[]
  readonly aborted: readonly number[]
  readonly linesLost: readonly number[]
}

/** The last minute of the chosen site, or of all together. */
export interface LastMinute {
  readonly seconds: number
  readonly challenges: number
  readonly passed: number
  readonly failed: number
  readonly redeemed: number
  readonly refused: number
  /** Part of `refused`. */
  readonly redemptionsRefused: number
  /** All sites together. */
  readonly faults: number
  /** Milliseconds, all sites together. */
  readonly p99: Readonly<Record<EndpointName, number | null>>
  readonly storeP99: number | null
}

export interface ServiceState {
  readonly version: string
  readonly isHealthy: boolean
  readonly isReady: boolean
  readonly workers: number
  readonly workersRunning: number
  readonly workersWithStore: number
  /** Why the other workers do not reach the store. */
  readonly storeCauses: readonly StoreCause[]
  /** Lost sites that have API keys. */
  readonly sitesLost: number
  /** Sharing the store; empty with the embedded one. */
  readonly hosts: readonly HostView[]
  /** Lines, one for each difference from another host. */
  readonly differences: readonly string[]
  /** Near a redemption limit, or without their visitors' addresses. */
  readonly backends: readonly { readonly text: string; readonly isOver: boolean }[]
  readonly isProxyUntrusted: boolean
  /** The largest difference between the clocks of host and store. */
  readonly clockApartSeconds: number
  /** Keys that Redis has evicted since it started. */
  readonly evictedKeys: number
  /** True if the last SIGHUP took effect, or there was none. */
  readonly isReloadDone: boolean
  readonly crashes: number
  readonly inFlight: number
}

/** Body of /dashboard/data.json. */
export interface DashboardData extends HistoryView {
  /** The chosen site is neither in the store nor in the range. */
  readonly isUnknown: boolean
  readonly service: ServiceState
}
