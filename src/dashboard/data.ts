/** What the service and the dashboard's page share. The page runs in browsers. */

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

/** Curves in milliseconds. */
export type Percentiles = Readonly<Record<'p50' | 'p95' | 'p99', Curve>>

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
