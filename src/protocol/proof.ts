/**
 * The layout of the proof of work, and the counters that a widget tries. Server, solvers, tests and benches all use this one
 * definition.
 *
 *   input  = nonce (32 lowercase hex characters, as sent) ++ counter (decimal ASCII, no leading zeros)
 *   digest = SHA-256(input)
 *   valid  = digest starts with at least `difficulty` zero bits, most significant bit of byte 0 first
 *
 * The input is 33 to 48 bytes, so it always pads to exactly one 64-byte SHA-256 block (at most 55 bytes fit).
 *
 * A widget tries only counters of 16 digits (widget/solver/block.ts says why), each of its threads a range of its own. A range
 * belongs to one thread of one number of threads, so a counter tells how many hashes were made to find it.
 *
 * This folder imports nothing: it is shared with the browser.
 */

/** Length of a nonce in characters. */
export const NONCE_LENGTH = 32
/** Longest proof input in bytes: a counter has 1 to 16 digits. */
export const PROOF_INPUT_MAX = 48

export const DIFFICULTY_MIN = 16
export const DIFFICULTY_MAX = 28

/** Counters in a block. */
export const BLOCK_SIZE = 10_000
/** The first counter of 16 digits. */
export const FIRST_COUNTER = 1e15
/** Counters in a range: no thread reaches the end. 80 ranges lie below COUNTER_MAX: those of up to 12 threads, then a GPU's. */
const RANGE_SIZE = 1e14
const RANGES = 80
/** The first counter of the visitor's GPU. */
export const GPU_START = FIRST_COUNTER + 78 * RANGE_SIZE

/** Largest counter: 2^53 - 1, the last integer that JSON and JavaScript carry exactly (16 digits). */
export const COUNTER_MAX = Number.MAX_SAFE_INTEGER

/** The proof input as text; its bytes are its ASCII codes. */
export function proofInput(nonce: string, counter: number): string {
  return nonce + String(counter)
}

/** Whether a string is a nonce as the service writes it: 32 lowercase hexadecimal characters. */
export function isNonceText(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text)
}

/** Number of zero bits at the start of a digest, most significant bit of byte 0 first. */
export function leadingZeroBits(digest: ArrayLike<number>): number {
  let bits = 0
  for (let index = 0; index < digest.length; index++) {
    const byte = digest[index]!
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

/** The first counter of thread `index`. The only thread has range 0, two threads have 1 and 2, three have 3 to 5 ... */
export function rangeStart(index: number, threads: number): number {
  return FIRST_COUNTER + ((threads * (threads - 1)) / 2 + index) * RANGE_SIZE
}

/**
 * Hashes of all threads until the counter was found, if the other threads were as fast as the one that found the counter. Of a
 * counter that a GPU found, the hashes of the GPU alone.
 *
 * @returns undefined for a counter that no widget tries
 */
export function triesOf(counter: number): number | undefined {
  const range = Math.floor((counter - FIRST_COUNTER) / RANGE_SIZE)
  if (range < 0 || range >= RANGES) return undefined
  if (counter >= GPU_START) return counter - GPU_START + 1
  const threads = Math.floor((1 + Math.sqrt(1 + 8 * range)) / 2)
  return threads * (counter - FIRST_COUNTER - range * RANGE_SIZE + 1)
}
