/**
 * The proofs of work of both puzzles, and the counters that a widget tries: one definition for server, solvers, tests and benches.
 * Browsers use it too, so this folder imports nothing. The nonce is 32 lowercase hex characters, as sent; numbers are decimal ASCII
 * without leading zeros.
 *
 *   sha256  input  = nonce ++ counter, at most 48 bytes, so SHA-256 has one block (up to 55 bytes)
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
/** The 41 bits that a nonce starts with are its issue time, in milliseconds after this one (domain/nonce.ts). */
export const NONCE_TIME_ZERO_MS = Date.UTC(2024, 0, 1)
export const PROOF_INPUT_MAX = NONCE_LENGTH + 16 // bytes, the counter's 16 digits included

// The contract's range (docs/reference/contract.md).
export const DIFFICULTY_MIN = 16
export const DIFFICULTY_MAX = 28

/** The counters of one block of widget/solver/block.ts, whose digits differ in the last four alone. */
export const BLOCK_SIZE = 10_000
export const FIRST_COUNTER = 1e15 // the first of 16 digits
/** A thread has this many counters, more than it can try. */
const RANGE_SIZE = 1e14
/** A GPU starts after the ranges of 78 threads; a pool (widget/solver/pool.ts) has 8 at most. Two ranges are left for it below 2^53. */
export const GPU_START = 8.8e15

/** Number.MAX_SAFE_INTEGER, by another name because bundlers keep an unused constant that reads a property. JSON carries it exactly. */
export const COUNTER_MAX = 2 ** 53 - 1

export function proofInput(nonce: string, counter: number): string {
  return nonce + String(counter)
}

/** Making a HashWX function takes a browser as long as 500 hashes, under 1 % of the work of so many counters. */
export const COUNTERS_PER_FUNCTION = 65_536

export function seedInput(nonce: string, counter: number): string {
  return nonce + String(Math.floor(counter / COUNTERS_PER_FUNCTION))
}

export function isNonceText(text: string): boolean {
  return text.length === NONCE_LENGTH && /^[0-9a-f]*$/.test(text)
}

export function rangeStart(threadIndex: number): number {
  return FIRST_COUNTER + threadIndex * RANGE_SIZE
}
