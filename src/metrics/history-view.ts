/** Parts of the numbers that the dashboard shows (history.ts, dashboard/data.ts). */

export const RANGES = ['30m', '24h'] as const
export type Range = (typeof RANGES)[number]

/** Site key of all sites without numbers of their own. */
export const OTHER_SITES = 'other'

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
