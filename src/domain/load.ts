/**
 * A site's present load and its usual load, in accepted proofs per second: exponentially weighted means over 10 seconds and
 * over an hour. Load is what sources bring that come again (difficulty.ts). All others come once. They say how much busier
 * the site is than usual: on a good day, load may grow as much as they do.
 *
 * While the load is an attack, the usual load hardly follows: a day at any rate raises it by less than a quarter. A new site
 * learns its first hour as it comes, and on its first day a quarter in an hour.
 */

import { DEFAULT_POLICY } from './policy.ts'

export interface LoadState {
  /** Of the first report. */
  readonly sinceMs: number
  readonly atMs: number
  /** Per second, mean over about 10 seconds. */
  readonly rate: number
  /** Per second, mean over about an hour. */
  readonly usualRate: number
  /** Of sources that come once: per second, mean over about a minute. */
  readonly onceRate: number
  /** The same over about an hour. */
  readonly onceUsual: number
}

/** What one worker accepted at a site since its last report. */
export interface LoadCounts {
  /** Proofs of sources that come again, and of all others. */
  readonly again: number
  readonly once: number
  /** The usual rate that the site's operator expects. */
  readonly expected?: number
}

const FAST_MS = 10_000
const ONCE_MS = 60_000
const USUAL_MS = 3_600_000
/** How much the usual load grows in a day of attack. Growth towards `usualRateMin` is free, since that changes nothing. */
const ATTACK_GROWTH = 0.2
const DAY_MS = 86_400_000
const { usualRateMin } = DEFAULT_POLICY

const NO_LOAD = { rate: 0, usualRate: 0, onceRate: 0, onceUsual: 0 }

export function addLoad(state: LoadState | undefined, nowMs: number, counts: LoadCounts): LoadState {
  const { again, once, expected = 0 } = counts
  const before = { ...NO_LOAD, sinceMs: nowMs, atMs: nowMs, ...state }
  const elapsedMs = Math.max(0, nowMs - before.atMs)
  const ageMs = nowMs - before.sinceMs
  const isNew = ageMs < USUAL_MS
  // In its first hour, the usual load is the mean since its first report.
  const weight = isNew
    ? Math.min(1, elapsedMs / Math.max(FAST_MS, ageMs))
    : 1 - Math.exp(-elapsedMs / USUAL_MS)
  const rate = before.rate * Math.exp(-elapsedMs / FAST_MS) + (again * 1000) / FAST_MS
  const onceRate = before.onceRate * Math.exp(-elapsedMs / ONCE_MS) + (once * 1000) / ONCE_MS
  const onceUsual = before.onceUsual + (onceRate - before.onceUsual) * weight
  const followed = before.usualRate + (rate - before.usualRate) * weight
  const load = loadOf({ ...before, rate, onceRate }, expected)
  const floor = Math.max(usualRateMin, load.usualRate)
  const growthMs = ageMs < DAY_MS ? USUAL_MS : DAY_MS
  const most = floor * (1 + (ATTACK_GROWTH * elapsedMs) / growthMs)
  const isHeld = !isNew && isAttack(load)
  return {
    sinceMs: before.sinceMs,
    atMs: nowMs, // also if the clock was set back: a later time would stop the fading until then
    rate,
    usualRate: isHeld ? Math.min(followed, most) : followed,
    onceRate,
    onceUsual,
  }
}

/** When the first day ends, whose loads are learned quickly. */
export function firstDayUntil({ sinceMs }: Pick<LoadState, 'sinceMs'>): number {
  return sinceMs + DAY_MS
}

/** Less than expected is not usual: a site that was made long before its first crowd has learned next to nothing. */
export function loadOf({ rate, usualRate, onceRate, onceUsual }: LoadState, expected = 0): Load {
  return { rate, usualRate: Math.max(expected, usualRate), growth: growthOf(onceRate, onceUsual) }
}

/** How many times as many people come once as usually; at least 1. */
function growthOf(onceRate: number, onceUsual: number): number {
  return Math.max(1, onceRate / Math.max(usualRateMin, onceUsual))
}

export interface Load {
  readonly rate: number
  readonly usualRate: number
  readonly growth: number
}

/** The load over what is tolerated. Above 1, it makes challenges harder. */
export function excessOf({ rate, usualRate, growth }: Load, policy = DEFAULT_POLICY): number {
  return rate / (Math.max(policy.usualRateMin, usualRate) * growth * policy.loadTolerated)
}

export function isAttack(load: Load): boolean {
  return excessOf(load) > 1
}

/** The present rate, `elapsedMs` after the last report. */
export function decayedRate(rate: number, elapsedMs: number): number {
  return rate * Math.exp(-Math.max(0, elapsedMs) / FAST_MS)
}
