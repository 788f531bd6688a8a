/**
 * For a site that sets a time instead of bits: the base with which 95 % of visitors wait for the solver at most that long on a
 * quiet day, by the device table below. docs/evidence/effect.md#a-time-instead-of-bits has the formula.
 *
 * This base b is fractional, a challenge has whole bits: floor(b), or one more with probability 2^(b - floor(b)) - 1, so the
 * mean work is 2^b. A keyed hash of site, address and minute decides, so asking again within the minute, anywhere, gives the
 * same answer.
 */

import type { PuzzleName } from '../protocol/proof.ts'
import { writeText } from './bytes.ts'
import type { DifficultyBounds } from './difficulty.ts'
import type { Hmac } from './keyring.ts'

/** With a base of so many hashes for each second of t, 5 % of visitors solve for longer than t. */
const WORK_A_SECOND = { sha256: 1.835e6, hashwx: 0.2747e6 } satisfies Record<PuzzleName, number>
const BASE_STEPS = 256
const MINUTE_MS = 60_000

export interface DeviceClass {
  readonly name: string
  readonly share: number
  /** Million hashes a second, WebAssembly on all threads. */
  readonly medianMhs: Readonly<Record<PuzzleName, number>>
  /** Standard deviation of the speed's logarithm. */
  readonly sigma: number
}

/**
 * Estimates of November 2026, also for `npm run bench:effect`, from the tables of Cap (docs/guide/benchmark.md), pow-buster
 * (README) and mCaptcha's survey; no phone was measured with this solver. Those of hashwx assume 1 MH/s a thread of a desktop, as
 * three engines reach it on a server's core, and on phones a sixth of their SHA-256.
 */
export const DEVICE_CLASSES: readonly DeviceClass[] = [
  { name: 'low phone', share: 0.12, medianMhs: { sha256: 2.5, hashwx: 0.45 }, sigma: 0.5 },
  { name: 'mid phone', share: 0.35, medianMhs: { sha256: 10, hashwx: 1.3 }, sigma: 0.4 },
  { name: 'high phone', share: 0.18, medianMhs: { sha256: 18, hashwx: 2.2 }, sigma: 0.4 },
  { name: 'laptop', share: 0.25, medianMhs: { sha256: 40, hashwx: 3.2 }, sigma: 0.5 },
  { name: 'desktop', share: 0.08, medianMhs: { sha256: 90, hashwx: 5 }, sigma: 0.4 },
  { name: 'no WebAssembly', share: 0.02, medianMhs: { sha256: 0.8, hashwx: 0.06 }, sigma: 0.6 },
]

/** Fractional bits. */
export function baseOf(
  { solveMs, min, max }: { solveMs: number; min: number; max: number },
  puzzle: PuzzleName = 'sha256',
): number {
  const bits = Math.log2(WORK_A_SECOND[puzzle] * (solveMs / 1000))
  return Math.max(min, Math.min(max, Math.round(bits * BASE_STEPS) / BASE_STEPS))
}

/** @param draw evenly distributed, 0 to 1 */
export function wholeBits(base: number, draw: number): number {
  const floor = Math.floor(base)
  return draw < 2 ** (base - floor) - 1 ? floor + 1 : floor
}

/**
 * @param mac that signs only ASCII texts
 * @param addressKey from `AddressTags.keyOf`
 * @returns evenly distributed, 0 to 1
 */
export function drawOf(mac: Hmac, siteKey: string, addressKey: string, nowMs: number): number {
  const text = `${siteKey} ${addressKey} ${Math.floor(nowMs / MINUTE_MS)}`
  writeText(mac.message, 0, text)
  const hash = mac.innerHash(text.length)
  let draw = 0
  for (let index = 3; index >= 0; index--) draw = (draw + hash.charCodeAt(index)) / 256
  return draw
}

interface SiteBounds {
  readonly siteKey: string
  readonly puzzle?: PuzzleName
  readonly difficulty: DifficultyBounds & { readonly solveMs?: number }
}

/** For one challenge: the base is whole. */
export interface ChallengeBounds extends DifficultyBounds {
  /** The part of the operator's temporary raise in the base. */
  readonly raise?: number
  /** The site's time, and its fractional base. */
  readonly solveMs?: number | undefined
  readonly exactBase?: number
}

/**
 * @param issuedAtMs its minute decides how a fractional base is rounded
 * @param raisedBits added up to the maximum
 */
export function boundsOf(
  mac: Hmac,
  site: SiteBounds,
  addressKey: string,
  issuedAtMs: number,
  raisedBits: number,
): ChallengeBounds {
  const usual = usualBounds(mac, site, addressKey, issuedAtMs)
  if (raisedBits === 0) return usual
  const base = Math.min(usual.max, usual.base + raisedBits)
  return { ...usual, base, raise: base - usual.base }
}

function usualBounds(
  mac: Hmac,
  { siteKey, puzzle, difficulty }: SiteBounds,
  addressKey: string,
  issuedAtMs: number,
): ChallengeBounds {
  const { solveMs, min, max } = difficulty
  if (solveMs === undefined) return difficulty
  const exactBase = baseOf({ solveMs, min, max }, puzzle)
  const base = Number.isInteger(exactBase)
    ? exactBase
    : wholeBits(exactBase, drawOf(mac, siteKey, addressKey, issuedAtMs))
  return { base, min, max, solveMs, exactBase }
}
