/**
 * The proofs of work of both puzzles, and the counters that a widget tries: one definition for server, solvers, tests and benches.
 * Browsers use it too, so this folder imports nothing. The nonce is 32 lowercase hex characters, as sent; numbers are decimal ASCII
 * without leading zeros.
 *
 *   sha256  input  = nonce ++ counter, which always fits one SHA-256 block of up to 55 bytes
 *           digest = SHA-256(input)
 *           valid  = digest starts with at least `difficulty` zero bits, most significant bit of byte 0 first
 *
 *   hashwx  seed   = SHA-256(nonce ++ floor(counter / 65536))
 *           hash   = HashWX(seed)(counter), 64 bits (hashwx/machine.ts)
 *           valid  = hash starts with at least `difficulty` zero bits
 *
 * Widgets try only 16-digit counters (widget/solver/block.ts says why).
 */

export const PUZZLES = ['sha256', 'hashwx'] as const
export type PuzzleName = (typeof PUZZLES)[number]

export const NONCE_LENGTH = 32
export const PROOF_INPUT_MAX = NONCE_LENGTH + 16

export const DIFFICULTY_MIN = 16
export const DIFFICULTY_MAX = 28

/** Counters whose digits differ in the last four alone: solvers hash them as one block. */
export const BLOCK_SIZE = 10_000
export const FIRST_COUNTER = 1e15
/** Counters of one thread, more than it can try. */
const RANGE_SIZE = 1e14
/** The first counter of a GPU, beyond those of 78 threads. */
export const GPU_START = FIRST_COUNTER + 78 * RANGE_SIZE

/** 2^53 - 1, the last that JSON and JavaScript carry exactly. */
export const COUNTER_MAX = Number.MAX_SAFE_INTEGER

export function proofInput(nonce: string, counter: number): string {
  return nonce + String(counter)
}

/** Counters of one HashWX function: making one takes a browser as long as 500 hashes. */
export const FUNCTION_COUNTERS = 65_536

export function seedInput(nonce: string, counter: number): string {
  return nonce + String(Math.floor(counter / FUNCTION_COUNTERS))
}

export function isNonceText(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text)
}

/** The first counter of a thread, by its index. */
export function rangeStart(thread: number): number {
  return FIRST_COUNTER + thread * RANGE_SIZE
}
