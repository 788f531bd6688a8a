/** Choices that a seed repeats. */

import { randomHex, seededRandom } from '../../bench/micro/random.ts'

export class Random {
  readonly seed: number
  readonly #next: () => number

  /** @param seed 1 to 2^32-1 */
  constructor(seed: number) {
    this.seed = seed
    this.#next = seededRandom(seed)
    // The first numbers of small seeds are small.
    for (let skipped = 0; skipped < 16; skipped++) this.#next()
  }

  /** 0 to below `end`. */
  below(end: number): number {
    return Math.floor((this.#next() / 2 ** 32) * end)
  }

  /** Both ends included. */
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

  /** For a part with choices of its own, so that more of one do not change those of another. */
  fork(): Random {
    return new Random(this.#next() || 1)
  }
}
