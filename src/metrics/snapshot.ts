/** What a worker has counted, as sent to the primary process: plain numbers that can be added up. */

/**
 * Counts since the start, in fixed buckets: `counts[i]` are the values up to `bounds[i]` and above the bound before it. The
 * last bucket has no bound, so there is one more count than bounds.
 */
export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

export interface SiteStats {
  readonly challenges: number
  readonly passed: number
  readonly failed: number
  readonly redeemed: number
  /** By outcome reason of refusals, at all endpoints. */
  readonly refused: Readonly<Record<string, number>>
  /** Why verifications failed or lost score. */
  readonly reasons: Readonly<Record<string, number>>
  /** Challenges issued, by bits. */
  readonly difficulties: Readonly<Record<string, number>>
  /** Scored verifications in tenths: [0,0.1) ... [0.9,1), 1. */
  readonly scores: readonly number[]
}

/**
 * Everything that a worker has counted since its start, so that a lost message loses no count. Difficulties, scores and reasons
 * are those of all sites together.
 */
export interface StatsSnapshot extends Pick<SiteStats, 'difficulties' | 'scores' | 'reasons'> {
  /** `<part> <status> <outcome>` -> answers. */
  readonly answers: Readonly<Record<string, number>>
  /** Seconds from the request's headers to its answer, by part. */
  readonly latencies: Readonly<Record<string, Histogram>>
  /** Clients that left before their answer, by part. */
  readonly aborted: Readonly<Record<string, number>>
  /** Exceptions, by part. */
  readonly faults: Readonly<Record<string, number>>
  /** Seconds from the first operation of a turn to its reply. */
  readonly storeLatency: Histogram
  /** Operations in one call. */
  readonly storeBatch: Histogram
  /** How often the store became unavailable. */
  readonly storeOutages: number
  /** Connections closed because there were too many. */
  readonly connectionsRefused: number
  /** Processor time of the process, user and system. */
  readonly cpuMicroseconds: number
  readonly scoreSum: number
  /** `<endpoint> <policy>` -> requests refused by that limit. */
  readonly limited: Readonly<Record<string, number>>
  /** Challenges that a shadow policy would have made `harder`, `easier` or the `same`. */
  readonly shadowChallenges: Readonly<Record<string, number>>
  /** By how many bits, all together. */
  readonly shadowBits: Readonly<Record<string, number>>
  /** By site key, at most SITES_MAX; further sites are counted under ''. Only sites that exist. */
  readonly sites: Readonly<Record<string, SiteStats>>
  readonly gauges: Gauges
}

/** Values at this moment. */
export interface Gauges {
  readonly storeUp: 0 | 1
  /** Requests that are not answered yet. */
  readonly underWay: number
  readonly connections: number
  readonly connectionsMax: number
  readonly residentBytes: number
  readonly heapBytes: number
  /** How late the event loop ran its timers, over the last seconds. */
  readonly eventLoopLagSeconds: { readonly mean: number; readonly p99: number; readonly max: number }
}

/** Sites that are counted separately; further sites share the key ''. */
export const SITES_MAX = 1000
/** Buckets of scores: tenths, and 1. */
export const SCORE_BUCKETS = 11

/** Why workers are replaced. crash: ended by itself, or killed from outside; hang: killed for silence; roll: by SIGHUP. */
export const RESTART_CAUSES = ['crash', 'hang', 'roll'] as const

export type RestartCause = (typeof RESTART_CAUSES)[number]

/** Since the start of the primary process. */
export type Restarts = Readonly<Record<RestartCause, number>>
