/** Which counters are tried: only those of 16 digits (block.ts says why), by each thread a range of its own. */

import { COUNTER_MAX } from '../../protocol/proof.ts'

/** Counters in a block. */
export const BLOCK_SIZE = 10_000
/** The first counter of 16 digits. */
export const FIRST_COUNTER = 1e15

/** The first counter of thread `index`. No thread reaches the end of its range, which is 10^15 wide with 8 threads. */
export function rangeStart(index: number, threads: number): number {
  const blocks = Math.floor((COUNTER_MAX - FIRST_COUNTER) / threads / BLOCK_SIZE)
  return FIRST_COUNTER + index * blocks * BLOCK_SIZE
}
