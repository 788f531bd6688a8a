/**
 * Which counters a widget tries: only those of 16 digits (widget/solver/block.ts says why), each of its threads a range of
 * its own. A range belongs to one thread of one number of threads, so a counter tells how many hashes were made to find it.
 */

/** Counters in a block. */
export const BLOCK_SIZE = 10_000
/** The first counter of 16 digits. */
export const FIRST_COUNTER = 1e15
/** Counters in a range: no thread reaches the end. 80 ranges lie below COUNTER_MAX, enough for up to 12 threads. */
const RANGE_SIZE = 1e14
const RANGES = 80

/** The first counter of thread `index`. The only thread has range 0, two threads have 1 and 2, three have 3 to 5 ... */
export function rangeStart(index: number, threads: number): number {
  return FIRST_COUNTER + ((threads * (threads - 1)) / 2 + index) * RANGE_SIZE
}

/**
 * Hashes of all threads until the counter was found, if the other threads were as fast as the one that found the counter.
 *
 * @returns undefined for a counter that no widget tries
 */
export function triesOf(counter: number): number | undefined {
  const range = Math.floor((counter - FIRST_COUNTER) / RANGE_SIZE)
  if (range < 0 || range >= RANGES) return undefined
  const threads = Math.floor((1 + Math.sqrt(1 + 8 * range)) / 2)
  return threads * (counter - FIRST_COUNTER - range * RANGE_SIZE + 1)
}
