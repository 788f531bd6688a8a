/**
 * The proof of work, and the counters that a widget tries; one definition for server, solvers, tests and benches.
 *
 *   input  = nonce (32 lowercase hex characters, as sent) ++ counter (decimal ASCII, no leading zeros)
 *   digest = SHA-256(input)
 *   valid  = digest starts with at least `difficulty` zero bits, most significant bit of byte 0 first
 *
 * The input's 33 to 48 bytes always fit one 64-byte SHA-256 block, which takes up to 55.
 *
 * Widgets try only 16-digit counters (widget/solver/block.ts says why). Each thread has its own range, which also depends on
 * the number of threads, so a counter tells how many hashes it took.
 *
 * This folder imports nothing, because the browser uses it too.
 */

export const NONCE_LENGTH = 32
/** A counter has 1 to 16 digits. */
export const PROOF_INPUT_MAX = 48

export const DIFFICULTY_MIN = 16
export const DIFFICULTY_MAX = 28

export const BLOCK_SIZE = 10_000
/** The first counter of 16 digits. */
export const FIRST_COUNTER = 1e15
/** Counters; no thread reaches the end. 80 ranges fit below COUNTER_MAX: for up to 12 threads, then a GPU. */
const RANGE_SIZE = 1e14
const RANGES = 80
export const GPU_START = FIRST_COUNTER + 78 * RANGE_SIZE

/** 2^53 - 1, the last integer that JSON and JavaScript carry exactly (16 digits). */
export const COUNTER_MAX = Number.MAX_SAFE_INTEGER

/** As text; ASCII codes are its bytes. */
export function proofInput(nonce: string, counter: number): string {
  return nonce + String(counter)
}

/** 32 lowercase hexadecimal characters, as the service writes it. */
export function isNonceText(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text)
}

/** Most significant bit of byte 0 first. */
export function leadingZeroBits(digest: ArrayLike<number>): number {
  let bits = 0
  for (let index = 0; index < digest.length; index++) {
    const byte = digest[index]!
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

/** One thread has range 0, two threads 1 and 2, three 3 to 5 ... */
export function rangeStart(index: number, threads: number): number {
  return FIRST_COUNTER + ((threads * (threads - 1)) / 2 + index) * RANGE_SIZE
}

/**
 * Hashes until the counter was found: by all threads, if the others were as fast as its finder, or by the GPU alone.
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
