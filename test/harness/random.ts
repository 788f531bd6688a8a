/** Random choices that a seed repeats. */

import { createCipheriv, createHash } from 'node:crypto'
import { randomHex, seededRandom } from './values.ts'

export class Random {
  readonly seed: number
  readonly #next: () => number

  /**
   * @param seed 1 to 2^32-1
   * @param next unsigned 32-bit integers; by default a simple and fast generator
   */
  constructor(seed: number, next = seededRandom(seed)) {
    this.seed = seed
    this.#next = next
    // The first numbers of small seeds are small.
    for (let skipped = 0; skipped < 16; skipped++) this.#next()
  }

  below(end: number): number {
    return Math.floor((this.#next() / 2 ** 32) * end)
  }

  between(first: number, last: number): number {
    return first + this.below(last - first + 1)
  }

  chance(probability: number): boolean {
    return this.#next() / 2 ** 32 < probability
  }

  pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!
  }

  hex(characters: number): string {
    return randomHex(this.#next, characters)
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)))
  }

  /** A generator for a part with choices of its own, so that more choices in one part do not change those of another. */
  fork(): Random {
    // Seeded by a hash, because a number of this generator is its whole state: that seed would repeat the parent's numbers.
    const digest = createHash('sha256').update(`fork of ${this.#next()}`).digest()
    return new Random(digest.readUInt32LE(0) || 1)
  }

  /** A generator by a cipher, seeded by this one's state: for statistics, for which the simple generator is too weak. */
  strong(): Random {
    const cipher = createCipheriv('aes-128-ctr', this.bytes(16), this.bytes(16))
    const zeros = Buffer.alloc(16_384)
    let words = Buffer.alloc(0)
    let at = 0
    return new Random(this.seed, () => {
      if (at === words.length) {
        words = cipher.update(zeros)
        at = 0
      }
      at += 4
      return words.readUInt32LE(at - 4)
    })
  }
}
