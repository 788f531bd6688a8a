/**
 * Rate limits as exact sliding windows: a request is admitted if fewer than `limit` were admitted in the 60 seconds before, so
 * no 60-second window ever holds more. Two records count so: address-log.ts the requests of visitors' addresses,
 * redemption-window.ts the redemptions of backends. This file has what they share; store/redis/lua/shared.lua computes the same.
 *
 * Times are milliseconds modulo 2^24 (4.6 hours), unambiguous because records expire within minutes. Requests of one step of a
 * fixed time grid share an entry, with the last one's time. Up to a limit of 256 a step is one millisecond and the window exact. Above,
 * it is 1/256 of the window, to bound memory: a request may wait up to 0.4 % of a window too long, and none is admitted early.
 */

export const WINDOW_MS = 60_000

/** The name of a limit in the RateLimit headers. */
export type Policy = 'address' | 'address-site' | 'api-key'

export interface Limited {
  readonly status: 'limited'
  /** A retry succeeds after this time if nothing else is admitted. */
  readonly retryAfterMs: number
  readonly policy: Policy
  /** The limit that refused is that of junk, which takes nothing from good tokens. Missing for other limits. */
  readonly isJunk?: boolean
}

export const EXACT_LIMIT_MAX = 256
/** The highest limit that can be set, in requests a minute. */
export const LIMIT_MAX = 1_000_000
/** The most requests that share an entry: its count has two bytes. */
export const COUNT_MAX = 0xffff

/** The length of a time step under a limit of so many requests a minute. */
export function stepMs(limit: number): number {
  return limit <= EXACT_LIMIT_MAX ? 1 : Math.ceil(WINDOW_MS / EXACT_LIMIT_MAX)
}

export function sharesStep(entryTime: number, time: number, step: number): boolean {
  return Math.floor(entryTime / step) === Math.floor(time / step)
}

/** Times modulo 2^24 are subtracted modulo 2^24 too; a difference above half of that is a step back. */
export const WRAP = 0x1000000
export const WRAP_MASK = WRAP - 1
export const HALF_WRAP = 0x800000

/** The time of a new entry: now, or the last entry's time if the clock stepped back, so entries expire late, but none is lost. */
export function heldTime(nowMs: number, lastTime: number | undefined): number {
  const time = nowMs % WRAP
  return lastTime !== undefined && ((time - lastTime) & WRAP_MASK) > HALF_WRAP ? lastTime : time
}

export function isLive(time: number, entryTime: number): boolean {
  return ((time - entryTime) & WRAP_MASK) < WINDOW_MS
}

/** The time until an entry leaves the window. */
export function waitMs(time: number, entryTime: number): number {
  return WINDOW_MS - ((time - entryTime) & WRAP_MASK)
}
