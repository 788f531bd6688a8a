/**
 * The base of a site that sets a time instead of bits: 95 % of visitors wait at most that long on a quiet day, by the table of
 * devices below. It is rounded down to whole bits. docs/evidence/effect.md#a-time-instead-of-bits has the formula.
 */

import type { PuzzleName } from '../protocol/proof.ts'

/** A base of this many hashes, times t seconds, makes 5 % of visitors solve for longer than t. */
const WORK_A_SECOND = { sha256: 1.835e6, hashwx: 0.2747e6 } satisfies Record<PuzzleName, number>

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

/** Returns whole bits, rounded down. */
export function baseOf(
  { solveMs, min, max }: { solveMs: number; min: number; max: number },
  puzzle: PuzzleName = 'sha256',
): number {
  const bits = Math.floor(Math.log2(WORK_A_SECOND[puzzle] * (solveMs / 1000)))
  return Math.max(min, Math.min(max, bits))
}
