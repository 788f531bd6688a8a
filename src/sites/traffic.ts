/** What is known of a site's visitors, for operators. */

import { DAY_MS, siteRates } from '../domain/meters.ts'
import type { SiteRecord } from '../domain/site.ts'
import { baseOf } from '../domain/solve-time.ts'
import type { SiteStore } from '../store/store.ts'

/** What the store's meters say of a site. */
export interface SiteTraffic {
  /** Proofs a second of repeat sources, as `--usual-rate` has it; undefined before the first proof. */
  readonly usualRate: number | undefined
  /** Unix milliseconds until which what is usual is not known well; undefined afterwards, and before the first proof. */
  readonly firstDayUntil: number | undefined
  /** Of a site with a solving time. */
  readonly timing?: {
    readonly solveMs: number
    readonly exactBase: number
    /** Share of the last day's solutions at the base that came within the time; undefined without any. */
    readonly inTime: number | undefined
  }
}

export async function findTraffic(
  store: Pick<SiteStore, 'readSiteMeters'>,
  { siteKey, usualRate: expected = 0, difficulty: { solveMs, min, max } }: SiteRecord,
): Promise<SiteTraffic> {
  const meters = await store.readSiteMeters(siteKey)
  const { repeat, first, timed, late } = meters
  const hasLearned = repeat.slow + first.slow > 0
  const sinceMs = Math.min(repeat.sinceMs, first.sinceMs)
  const isFirstDay = hasLearned && Date.now() < sinceMs + DAY_MS
  const inTime = timed !== undefined && timed.slow > 0 ? 1 - (late?.slow ?? 0) / timed.slow : undefined
  return {
    usualRate: hasLearned ? Math.max(siteRates(meters).repeat.usual / 60, expected) : undefined,
    firstDayUntil: isFirstDay ? sinceMs + DAY_MS : undefined,
    ...(solveMs === undefined
      ? {}
      : { timing: { solveMs, exactBase: baseOf({ solveMs, min, max }), inTime } }),
  }
}
