/**
 * The base of a site that names a time instead of bits: on a quiet day 95 of 100 visitors wait for the solver at most this
 * long. It follows from the table of devices below.
 *
 * With the mean work W, a device of h hashes a second is still at work after t seconds with probability e^(-t h / W). The mean
 * of that over the table is 0.05 where W is 1.835 million hashes for each second (test/domain/solve-time.test.ts).
 *
 * The base has fractions of a bit, the difficulty of a challenge has none. With a base of b, a challenge has floor(b) bits or
 * one more: one more with probability 2^(b - floor(b)) - 1, so that the mean work is 2^b. A keyed hash of site, address and
 * minute decides, so whoever asks again within the minute, at any worker or host, gets the same.
 */

import { writeText } from './bytes.ts'
import type { DifficultyBounds } from './difficulty.ts'
import type { Hmac } from './keyring.ts'

const WORK_A_SECOND = 1.835e6
/** Steps of a base in a bit. */
const BASE_STEPS = 256
const MINUTE_MS = 60_000

/** A class of visitors' devices. No phone was measured with this solver. */
export interface DeviceClass {
  readonly name: string
  /** Of all visitors, 0 to 1. */
  readonly share: number
  /** Million hashes a second, of SHA-256 in WebAssembly on all threads. */
  readonly medianMhs: number
  /** Standard deviation of the speed's natural logarithm. */
  readonly sigma: number
}

/**
 * Estimates of November 2026, from the public tables of Cap (docs/guide/benchmark.md), pow-buster (README) and mCaptcha's
 * survey. `npm run bench:effect` reads them here.
 */
export const DEVICE_CLASSES: readonly DeviceClass[] = [
  { name: 'low phone', share: 0.12, medianMhs: 2.5, sigma: 0.5 },
  { name: 'mid phone', share: 0.35, medianMhs: 10, sigma: 0.4 },
  { name: 'high phone', share: 0.18, medianMhs: 18, sigma: 0.4 },
  { name: 'laptop', share: 0.25, medianMhs: 40, sigma: 0.5 },
  { name: 'desktop', share: 0.08, medianMhs: 90, sigma: 0.4 },
  { name: 'no WebAssembly', share: 0.02, medianMhs: 0.8, sigma: 0.6 },
]

/** @returns bits, with a fraction, within the bounds */
export function baseOf({ solveMs, min, max }: { solveMs: number; min: number; max: number }): number {
  const bits = Math.log2(WORK_A_SECOND * (solveMs / 1000))
  return Math.max(min, Math.min(max, Math.round(bits * BASE_STEPS) / BASE_STEPS))
}

/** @param draw 0 to 1, evenly distributed */
export function wholeBits(base: number, draw: number): number {
  const floor = Math.floor(base)
  return draw < 2 ** (base - floor) - 1 ? floor + 1 : floor
}

/**
 * @param mac of the keyring; only texts of ASCII are signed with it
 * @param addressKey from `AddressTags.keyOf`
 * @returns 0 to 1: evenly distributed, the same within a minute
 */
export function drawOf(mac: Hmac, siteKey: string, addressKey: string, nowMs: number): number {
  const text = `${siteKey} ${addressKey} ${Math.floor(nowMs / MINUTE_MS)}`
  writeText(mac.message, 0, text)
  const hash = mac.innerHash(text.length)
  let draw = 0
  for (let index = 3; index >= 0; index--) draw = (draw + hash.charCodeAt(index)) / 256
  return draw
}

/** As a site sets them; with a solving time, the base follows from it. */
interface SiteBounds extends DifficultyBounds {
  readonly solveMs?: number
}

/** The bounds of a challenge; the base is a whole number of bits. */
export interface ChallengeBounds extends DifficultyBounds {
  /** How much of the base comes from a raise of the site; undefined without one. */
  readonly raise?: number
  /** Of a site with a solving time: that time, and the base with its fraction. */
  readonly solveMs?: number | undefined
  readonly exactBase?: number
}

/**
 * The site's bounds; with a raise, the base is higher by its bits, up to the maximum.
 *
 * @param issuedAtMs the minute of this time decides a base that has a fraction
 * @param raisedBits of the site now
 */
export function boundsOf(
  mac: Hmac,
  { siteKey, difficulty }: { readonly siteKey: string; readonly difficulty: SiteBounds },
  addressKey: string,
  issuedAtMs: number,
  raisedBits: number,
): ChallengeBounds {
  const usual = usualBounds(mac, siteKey, difficulty, addressKey, issuedAtMs)
  if (raisedBits === 0) return usual
  const base = Math.min(usual.max, usual.base + raisedBits)
  return { ...usual, base, raise: base - usual.base }
}

function usualBounds(
  mac: Hmac,
  siteKey: string,
  difficulty: SiteBounds,
  addressKey: string,
  issuedAtMs: number,
): ChallengeBounds {
  const { solveMs, min, max } = difficulty
  if (solveMs === undefined) return difficulty
  const exactBase = baseOf({ solveMs, min, max })
  const base = Number.isInteger(exactBase)
    ? exactBase
    : wholeBits(exactBase, drawOf(mac, siteKey, addressKey, issuedAtMs))
  return { base, min, max, solveMs, exactBase }
}
