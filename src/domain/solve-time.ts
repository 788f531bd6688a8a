/**
 * The base of a site that names a time instead of bits: on a quiet day 95 of 100 visitors wait for the solver at most this
 * time. Also the classes of visitors' devices, and how long they take.
 *
 * With the mean work W, a device of h hashes a second is still at work after t seconds with probability e^(-t h / W). Speeds
 * of devices are about log-normal. With the spread of DEVICE_CLASSES (as wide as sigma of ln h = 1.2), the mean of e^(-t h / W)
 * over all devices is 0.05 where W = 0.1224 t times the median speed. So one number a site is learned, the median
 * (calibrator.ts). The spread is not learned, because few liars would decide it.
 *
 * The base has fractions of a bit, the difficulty of a challenge has none. With a base of b, a challenge has floor(b) bits or
 * one more. It has one more with probability 2^(b - floor(b)) - 1, so that the mean work is 2^b. The draw is a keyed hash of
 * site, address and minute. So whoever asks again within the minute, at any worker or host, gets the same.
 */

import { writeText } from './bytes.ts'
import type { DifficultyBounds } from './difficulty.ts'
import type { Hmac } from './keyring.ts'

/** Hashes a second of the median device until anything is learned: an estimate from public tables of November 2026. */
export const SPEED_ASSUMED = 12e6
const WORK_SHARE = 0.1224
/** Steps of a base in a bit. */
const BASE_STEPS = 256
const MINUTE_MS = 60_000

interface TimedDifficulty {
  readonly solveMs: number
  readonly min: number
  readonly max: number
}

/** Where the base of a challenge comes from, for logs. */
interface Timing {
  readonly solveMs: number
  /** Bits, with a fraction. */
  readonly exactBase: number
  /** Hashes a second of the median device. */
  readonly medianSpeed: number
}

/** The base of a challenge is a whole number of bits. */
export interface ChallengeBounds extends DifficultyBounds {
  /** undefined where the site sets its base in bits. */
  readonly timing?: Timing
  /** How much of the base comes from a raise of the site; undefined without one. */
  readonly raise?: number
}

/** @param lead how much faster than SPEED_ASSUMED the median device is, in bits */
export function timingFor({ solveMs, min, max }: TimedDifficulty, lead: number): Timing {
  const medianSpeed = SPEED_ASSUMED * 2 ** lead
  const bits = Math.log2(WORK_SHARE * medianSpeed * (solveMs / 1000))
  const exactBase = Math.max(min, Math.min(max, Math.round(bits * BASE_STEPS) / BASE_STEPS))
  return { solveMs, exactBase, medianSpeed }
}

export function speedText(hashesPerSecond: number): string {
  return `${(hashesPerSecond / 1e6).toPrecision(3)} MH/s`
}

/** The base that a site's record shows, and that is used where the time is not known: nothing is learned yet. */
export function baseAssumed(difficulty: TimedDifficulty): number {
  return Math.round(timingFor(difficulty, 0).exactBase)
}

/** @param draw 0 to 1, evenly distributed */
export function wholeBits(base: number, draw: number): number {
  const floor = Math.floor(base)
  return draw < 2 ** (base - floor) - 1 ? floor + 1 : floor
}

/**
 * @param mac of the keyring; only texts of ASCII are signed with it
 * @param addressKey from limitKey
 * @returns 0 to 1: evenly distributed, the same within a minute
 */
export function drawOf(mac: Hmac, siteKey: string, addressKey: string, nowMs: number): number {
  return drawOfText(mac, `${siteKey} ${addressKey} ${Math.floor(nowMs / MINUTE_MS)}`)
}

/** @returns 0 to 1: evenly distributed, the same for the same text */
export function drawOfText(mac: Hmac, text: string): number {
  writeText(mac.message, 0, text)
  const hash = mac.innerHash(text.length)
  let draw = 0
  for (let index = 3; index >= 0; index--) draw = (draw + hash.charCodeAt(index)) / 256
  return draw
}

/**
 * A class of visitors' devices. The speeds are estimates of November 2026 for SHA-256 in WebAssembly on all threads, from the
 * public tables of Cap (docs/guide/benchmark.md), pow-buster (README) and mCaptcha's survey. No phone was measured with this
 * solver. `npm run bench:effect` and `powgate policy replay` read them here.
 */
export interface DeviceClass {
  readonly name: string
  /** Of all visitors, 0 to 1. */
  readonly share: number
  /** Million hashes a second. */
  readonly medianMhs: number
  /** Standard deviation of the speed's natural logarithm. */
  readonly sigma: number
}

export const DEVICE_CLASSES: readonly DeviceClass[] = [
  { name: 'low phone', share: 0.12, medianMhs: 2.5, sigma: 0.5 },
  { name: 'mid phone', share: 0.35, medianMhs: 10, sigma: 0.4 },
  { name: 'high phone', share: 0.18, medianMhs: 18, sigma: 0.4 },
  { name: 'laptop', share: 0.25, medianMhs: 40, sigma: 0.5 },
  { name: 'desktop', share: 0.08, medianMhs: 90, sigma: 0.4 },
  { name: 'no WebAssembly', share: 0.02, medianMhs: 0.8, sigma: 0.6 },
]

/** Mean seconds of so many hashes: a log-normal speed's inverse has the mean exp(sigma^2 / 2) / median. */
export function meanSeconds({ medianMhs, sigma }: DeviceClass, hashes: number): number {
  return (hashes * Math.exp((sigma * sigma) / 2)) / (medianMhs * 1e6)
}
