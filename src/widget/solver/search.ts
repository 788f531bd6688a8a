/** What a solver is. Three of them, in the order in which they are chosen: WASM SIMD, scalar WASM, plain JavaScript. */

/** Looks at the counters start, start + 1, ... start + count - 1 in order: the first that meets the difficulty, or -1. */
export type Search = (start: number, count: number) => number

/**
 * Makes a search for one challenge.
 *
 * @param nonce 32 lowercase hexadecimal characters
 * @param difficulty leading zero bits, 0 to 32
 */
export type Solver = (nonce: string, difficulty: number) => Search

/** Looks at the counters of one block, `from` to `to` - 1 in its last four digits; the first that does, or -1. */
export type BlockScan = (from: number, to: number) => number
