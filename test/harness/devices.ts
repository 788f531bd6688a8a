/** Kinds of visitors' devices, for `npm run bench:effect` and for the base difficulty of a site with a solving time. */

import type { PuzzleName } from '../../src/protocol/proof.ts'

export interface DeviceClass {
  readonly name: string
  /** The part of all visitors who have such a device; all shares add up to 1. */
  readonly share: number
  /** Million hashes a second: WebAssembly where there is any, on all threads. */
  readonly medianMhs: Readonly<Record<PuzzleName, number>>
  /** Standard deviation of the speed's natural logarithm. */
  readonly sigma: number
}

/**
 * Estimates of November 2026 from the tables in Cap's repository (docs/guide/benchmark.md), pow-buster's README and mCaptcha's survey;
 * no phone was measured with this solver. Those of hashwx assume 1 MH/s a thread of a desktop, as three engines reach it on a
 * server's core, and on phones a sixth to an eighth of their SHA-256.
 */
export const DEVICE_CLASSES: readonly DeviceClass[] = [
  { name: 'low phone', share: 0.12, medianMhs: { sha256: 2.5, hashwx: 0.45 }, sigma: 0.5 },
  { name: 'mid phone', share: 0.35, medianMhs: { sha256: 10, hashwx: 1.3 }, sigma: 0.4 },
  { name: 'high phone', share: 0.18, medianMhs: { sha256: 18, hashwx: 2.2 }, sigma: 0.4 },
  { name: 'laptop', share: 0.25, medianMhs: { sha256: 40, hashwx: 3.2 }, sigma: 0.5 },
  { name: 'desktop', share: 0.08, medianMhs: { sha256: 90, hashwx: 5 }, sigma: 0.4 },
  { name: 'no WebAssembly', share: 0.02, medianMhs: { sha256: 0.8, hashwx: 0.06 }, sigma: 0.6 },
]
