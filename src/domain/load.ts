/**
 * How busy a site is, against how busy it usually is. Two exponentially weighted means of challenges per second: one
 * over 10 seconds, one over an hour. The usual load follows the present one only up to twice itself, so that an attack
 * does not soon pass for normal.
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
/** From nothing, the usual load may grow towards this. */
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

/** The present rate of a site of which nothing was heard for a while. */
export function decayedRate(rate: number, elapsedMs: number): number {
  return rate * Math.exp(-Math.max(0, elapsedMs) / FAST_MS)
}
