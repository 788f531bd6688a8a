/**
 * A site's present load and its usual load: exponentially weighted means of challenges per second, over 10 seconds and over
 * an hour. The usual load follows the present load only up to twice its own value, so that an attack does not soon count
 * as usual.
 */

export interface LoadState {
  readonly atMs: number
  /** Challenges per second, mean over about 10 seconds. */
  readonly rate: number
  /** Challenges per second, mean over about an hour. */
  readonly usualRate: number
}

const FAST_MS = 10_000
const USUAL_MS = 3_600_000
/** The usual load may always grow towards this value, even from zero. */
const USUAL_MIN = 0.5
const USUAL_GROWTH = 2

/** @param count challenges since the last report */
export function addLoad(state: LoadState | undefined, nowMs: number, count: number): LoadState {
  const { atMs, rate: oldRate, usualRate } = state ?? { atMs: nowMs, rate: 0, usualRate: 0 }
  const elapsedMs = Math.max(0, nowMs - atMs)
  const rate = oldRate * Math.exp(-elapsedMs / FAST_MS) + (count * 1000) / FAST_MS
  const weight = 1 - Math.exp(-elapsedMs / USUAL_MS)
  const target = Math.min(rate, Math.max(USUAL_MIN, usualRate * USUAL_GROWTH))
  return { atMs: Math.max(nowMs, atMs), rate, usualRate: usualRate + (target - usualRate) * weight }
}

/** The present rate, `elapsedMs` after the last report. */
export function decayedRate(rate: number, elapsedMs: number): number {
  return rate * Math.exp(-Math.max(0, elapsedMs) / FAST_MS)
}
