/** Random choices that a seed repeats. */

import { createHash } from 'node:crypto'
import { randomHex, seededRandom } from './values.ts'

export class Random {
  readonly #next: () => number

  /** @param seed 1 to 2^32-1 */
  constructor(seed: number) {
    this.#next = seededRandom(seed)
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
}
