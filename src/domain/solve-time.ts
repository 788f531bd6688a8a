/**
 * The base of a site that sets a solving time instead of bits: 95 % of visitors wait at most that long on a quiet day.
 * docs/evidence/effect.md#a-time-instead-of-bits has the formula, test/harness/devices.ts the speeds of devices behind it.
 */

import type { PuzzleName } from '../protocol/proof.ts'

/** The mean number of hashes with which 5 % of visitors are not done after a second. For t seconds it is t times as many. */
const HASHES_A_SECOND = { sha256: 1.835e6, hashwx: 0.2747e6 } satisfies Record<PuzzleName, number>

/** Returns whole bits, rounded down. */
export function baseOf(
  { solveMs, min, max }: { solveMs: number; min: number; max: number },
  puzzle: PuzzleName = 'sha256',
): number {
  const bits = Math.floor(Math.log2(HASHES_A_SECOND[puzzle] * (solveMs / 1000)))
  return Math.max(min, Math.min(max, bits))
}
