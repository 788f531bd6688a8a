/** Two kinds of counters: of values, in the buckets of a histogram, and of names. */

import type { Histogram } from './snapshot.ts'

/** Finest between 0.1 and 50 ms, where most answers are. */
export const LATENCY_BOUNDS_SECONDS: readonly number[] = [
  0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02,
  0.03, 0.05, 0.1, 0.2, 0.5, 1, 2,
]
/** Operations in one call; a call to Redis has at most 128. */
export const BATCH_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128]

export class Buckets {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array(bounds.length + 1).fill(0)
  }

  add(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  snapshot(): Histogram {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum }
  }
}

/** Counts by name; the names come from closed lists. */
export class Tally<Name extends string> {
  readonly #counts = new Map<Name, number>()

  add(name: Name): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  snapshot(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [name, count] of this.#counts) counts[name] = count
    return counts
  }
}
