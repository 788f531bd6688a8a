/**
 * A site's present load and its usual load: exponentially weighted means over 10 seconds and over an hour, of accepted proofs
 * per second from networks that come again (sources.ts). While the present load is an attack, the usual load hardly follows:
 * a day at any rate raises it by less than a quarter.
 */

import { DEFAULT_POLICY } from './policy.ts'

export interface LoadState {
  readonly atMs: number
  /** Per second, mean over about 10 seconds. */
  readonly rate: number
  /** Per second, mean over about an hour. */
  readonly usualRate: number
}

const FAST_MS = 10_000
const USUAL_MS = 3_600_000
/** How much the usual load grows in a day of attack. Growth towards `usualRateMin` is free, since that changes nothing. */
const ATTACK_GROWTH = 0.2
const DAY_MS = 86_400_000
const { loadTolerated, usualRateMin } = DEFAULT_POLICY

/** @param count proofs since the last report */
export function addLoad(state: LoadState | undefined, nowMs: number, count: number): LoadState {
  const { atMs, rate: oldRate, usualRate } = state ?? { atMs: nowMs, rate: 0, usualRate: 0 }
  const elapsedMs = Math.max(0, nowMs - atMs)
  const rate = oldRate * Math.exp(-elapsedMs / FAST_MS) + (count * 1000) / FAST_MS
  const weight = 1 - Math.exp(-elapsedMs / USUAL_MS)
  const followed = usualRate + (rate - usualRate) * weight
  const floor = Math.max(usualRateMin, usualRate)
  const most = floor * (1 + (ATTACK_GROWTH * elapsedMs) / DAY_MS)
  return {
    atMs: Math.max(nowMs, atMs),
    rate,
    usualRate: isAttack(rate, usualRate) ? Math.min(followed, most) : followed,
  }
}

/** Whether the load makes challenges harder. */
export function isAttack(rate: number, usualRate: number): boolean {
  return rate > loadTolerated * Math.max(usualRateMin, usualRate)
}

/** The present rate, `elapsedMs` after the last report. */
export function decayedRate(rate: number, elapsedMs: number): number {
  return rate * Math.exp(-Math.max(0, elapsedMs) / FAST_MS)
}
