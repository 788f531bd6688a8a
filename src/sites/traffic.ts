/** What operators see of a site's visitors. */

import { DAY_MS, siteRates } from '../domain/meters.ts'
import type { SiteRecord } from '../domain/site.ts'
import { baseOf } from '../domain/solve-time.ts'
import type { SiteStore } from '../store/store.ts'

export interface SiteTraffic {
  /** Proofs of repeat sources a second; undefined before the first proof. */
  readonly usualRate: number | undefined
  /** Unix milliseconds; until then the usual rate is not well known. */
  readonly firstDayUntil: number | undefined
  /** Only with a target solve time. */
  readonly timing?: {
    readonly solveMs: number
    readonly exactBase: number
    /** Share of the last day's solutions at the base that met it. */
    readonly inTime: number | undefined
  }
}

export async function findTraffic(
  store: Pick<SiteStore, 'readSiteMeters'>,
  { siteKey, usualRate: expected = 0, puzzle, difficulty: { solveMs, min, max } }: SiteRecord,
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
      : { timing: { solveMs, exactBase: baseOf({ solveMs, min, max }, puzzle), inTime } }),
  }
}
