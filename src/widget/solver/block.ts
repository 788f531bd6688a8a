/**
 * Widgets try counters of 16 digits, so the proof input is always 48 bytes. A block, here, is 10,000 counters that differ only in
 * their last four digits, which are one whole word of the message:
 *
 *   word   0 ........ 7 | 8 ....... 10 | 11          | 12         13  14  15
 *          nonce        | first 12     | last four   | 80000000   0   0   384 (length in bits)
 *                       | digits       | digits      |
 *
 * Rounds 0 to 11 of 64 are computed once a block (round 11 without its word), and so are the terms of a schedule word that word 11
 * does not change:
 *
 *   W[t] = sigma1(W[t-2]) + W[t-7] + sigma0(W[t-15]) + W[t-16]
 */

import { BLOCK_SIZE, COUNTER_MAX, FIRST_COUNTER, proofInput } from '../../protocol/proof.ts'
import { digestWords, INITIAL_STATE, paddedWords, ROUND_CONSTANTS, round, sigma0, sigma1 } from './sha256.ts'

/** Tries `count` counters from `start` on. Returns the first that meets the difficulty, or -1. */
export type Search = (start: number, count: number) => number

/** @param difficulty leading zero bits, 0 to 32 */
export type Solver = (nonce: string, difficulty: number) => Search

/**
 * Tries the last four digits `from` to `to` - 1 in one block. Returns the first whose digest has no bit of the mask in its first word,
 * or -1.
 */
export type BlockScan = (from: number, to: number, mask: number) => number

/** The message word that changes within a block. */
export const VARYING_WORD = 11

/** True if schedule word t is the same in the whole block. */
export const isConstant: boolean[] = []
for (let t = 0; t < 64; t++)
  isConstant.push(t < 16 ? t !== VARYING_WORD : [2, 7, 15, 16].every(back => isConstant[t - back]))

const BLOCK_BYTES = 544 // 8 + 64 + 64 words
/** Layout of the memory of ../build/kernel.ts, in bytes: a `Block`, 64 round constants, and the words of 10,000 last four digits. */
export const MEMORY = {
  state: 0,
  roundInputs: 32,
  scheduleSums: 288,
  roundConstants: BLOCK_BYTES,
  digits: 1024,
} as const

export class Block {
  /** The values a to h after round 11, without word 11, which is still to be added to a and e. */
  readonly state: Int32Array
  /** Each round's constant, plus its schedule word if that is constant. */
  readonly roundInputs: Int32Array
  /** What is constant in the block of each schedule word: the whole word, the sum of some of its terms, or 0. */
  readonly scheduleSums: Int32Array

  constructor(memory = new ArrayBuffer(BLOCK_BYTES)) {
    this.state = new Int32Array(memory, MEMORY.state, 8)
    this.roundInputs = new Int32Array(memory, MEMORY.roundInputs, 64)
    this.scheduleSums = new Int32Array(memory, MEMORY.scheduleSums, 64)
  }

  /** @param start the block's first counter */
  set(nonce: string, start: number): void {
    const { state, roundInputs, scheduleSums } = this
    scheduleSums.set(paddedWords(proofInput(nonce, start)))
    scheduleSums[VARYING_WORD] = 0
    /** Schedule word t, or 0 if it varies: sigma0 and sigma1 of 0 are 0. */
    const fixed = (t: number) => (isConstant[t] ? scheduleSums[t]! : 0)
    for (let t = 16; t < 64; t++) {
      scheduleSums[t] = sigma1(fixed(t - 2)) + fixed(t - 7) + sigma0(fixed(t - 15)) + fixed(t - 16)
    }
    for (let t = 0; t < 64; t++) roundInputs[t] = ROUND_CONSTANTS[t]! + fixed(t)
    state.set(INITIAL_STATE)
    for (let t = 0; t <= VARYING_WORD; t++) round(state, roundInputs[t]!)
  }
}

/** The message words of the last four digits, 0000 to 9999, in ASCII. */
export function lastFourDigits(): Int32Array {
  const words = new Int32Array(BLOCK_SIZE)
  for (let value = 0; value < BLOCK_SIZE; value++) {
    for (let rest = value, shift = 0; shift < 32; shift += 8, rest = Math.floor(rest / 10)) {
      words[value]! |= (0x30 + (rest % 10)) << shift
    }
  }
  return words
}

/** The bits of a digest's first word that must be zero. */
export function difficultyMask(difficulty: number): number {
  if (!(difficulty >= 0 && difficulty <= 32)) throw new RangeError(`difficulty: expected 0 to 32 bits`)
  return difficulty === 0 ? 0 : -1 << (32 - difficulty)
}

/** A scan of several lanes takes a multiple of this many counters. */
const LANES = 4

/**
 * Makes a solver that searches block by block. Counters of fewer than 16 digits, and a rest that does not fill the lanes, are tried one
 * by one.
 *
 * @param scan reads the block, which is set anew before each scan, so searches may take turns
 */
export function blockSolver(block: Block, scan: BlockScan): Solver {
  return (nonce, difficulty) => {
    const mask = difficultyMask(difficulty)
    const isProof = (counter: number) => (digestWords(proofInput(nonce, counter))[0]! & mask) === 0
    return (start, count) => {
      const end = Math.min(start + count, COUNTER_MAX + 1)
      for (let counter = start; counter < end; ) {
        const from = counter % BLOCK_SIZE
        const blockStart = counter - from
        const length = Math.min(BLOCK_SIZE - from, end - counter)
        const scanned = counter < FIRST_COUNTER ? 0 : length - (length % LANES)
        if (scanned === 0) {
          if (isProof(counter)) return counter
          counter++
          continue
        }
        block.set(nonce, blockStart)
        const found = scan(from, from + scanned, mask)
        if (found >= 0) return blockStart + found
        counter += scanned
      }
      return -1
    }
  }
}
