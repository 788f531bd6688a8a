/** What a solver is. There are three, in the order in which they are chosen: WASM SIMD, scalar WASM, plain JavaScript. */

/** Tries the counters start to start + count - 1 in order. Returns the first that meets the difficulty, or -1. */
export type Search = (start: number, count: number) => number

/**
 * Makes a search for one challenge.
 *
 * @param nonce 32 lowercase hexadecimal characters
 * @param difficulty leading zero bits, 0 to 32
 */
export type Solver = (nonce: string, difficulty: number) => Search

/** Tries the counters of one block whose last four digits are `from` to `to` - 1. Returns the first that meets it, or -1. */
export type BlockScan = (from: number, to: number) => number
