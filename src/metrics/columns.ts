/** Counters by name, each with a number for each step of time; and figures computed from several counters. */

import type { Gaps, Percentiles, Tally } from './history-view.ts'

/** Selects names that start with a text, or match. The key is what follows the text, or the first group. */
type Selection = string | RegExp

export class Columns {
  readonly #length: number
  readonly #columns = new Map<string, number[]>()

  constructor(length: number) {
    this.#length = length
  }

  add(name: string, index: number, count: number): void {
    let column = this.#columns.get(name)
    if (column === undefined) this.#columns.set(name, (column = this.#zeros()))
    column[index]! += count
  }

  /** Zeros if there is no such counter. */
  column(name: string): number[] {
    return this.#columns.get(name) ?? this.#zeros()
  }

  /** The sum of the selected counters, step by step. */
  matching(selection: Selection): number[] {
    const sums = this.#zeros()
    for (const [, column] of this.#select(selection)) addTo(sums, column)
    return sums
  }

  /** The selected counters by key, most frequent first. */
  tallies(selection: Selection): Tally[] {
    const byKey = new Map<string, number[]>()
    for (const [key, column] of this.#select(selection)) {
      let sums = byKey.get(key)
      if (sums === undefined) byKey.set(key, (sums = this.#zeros()))
      addTo(sums, column)
    }
    return [...byKey]
      .map(([name, counts]) => ({ name, total: counts.reduce((sum, count) => sum + count, 0), counts }))
      .sort((one, other) => other.total - one.total)
  }

  /** Mean and greatest key, for counters whose keys are numbers. */
  meanAndMax(prefix: string): { mean: Gaps; max: Gaps } {
    const counts = this.#zeros()
    const sums = this.#zeros()
    const max: (number | null)[] = Array.from({ length: this.#length }, () => null)
    for (const [key, column] of this.#select(prefix)) {
      const value = Number(key)
      column.forEach((count, index) => {
        if (count === 0) return
        counts[index]! += count
        sums[index]! += count * value
        max[index] = Math.max(max[index] ?? value, value)
      })
    }
    return {
      mean: sums.map((sum, index) => (counts[index] === 0 ? null : rounded(sum / counts[index]!))),
      max,
    }
  }

  /** Percentiles of a histogram of seconds, in milliseconds. */
  percentiles(histogram: string, bounds: readonly number[]): Percentiles {
    const buckets = this.#buckets(histogram, bounds)
    const curve = (share: number) =>
      Array.from({ length: this.#length }, (_, index) => {
        const counts = buckets.map(bucket => bucket[index]!)
        return milliseconds(quantile(bounds, counts, share))
      })
    return { p50: curve(0.5), p95: curve(0.95), p99: curve(0.99) }
  }

  quantile(histogram: string, bounds: readonly number[], share: number): number | null {
    const counts = this.#buckets(histogram, bounds).map(bucket =>
      bucket.reduce((sum, count) => sum + count, 0),
    )
    return milliseconds(quantile(bounds, counts, share))
  }

  #buckets(histogram: string, bounds: readonly number[]): number[][] {
    return [...bounds, Infinity].map((_, index) => this.column(`${histogram}/counts/${index}`))
  }

  *#select(selection: Selection): Generator<[key: string, column: readonly number[]]> {
    for (const [name, column] of this.#columns) {
      if (typeof selection === 'string') {
        if (name.startsWith(selection)) yield [name.slice(selection.length), column]
      } else {
        const match = selection.exec(name)
        if (match !== null) yield [match[1] ?? name, column]
      }
    }
  }

  #zeros(): number[] {
    return new Array<number>(this.#length).fill(0)
  }
}

function addTo(sums: number[], column: readonly number[]): void {
  column.forEach((count, index) => {
    sums[index]! += count
  })
}

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : rounded(seconds * 1000)
}

/** Rounds to as many digits as a screen shows. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

/**
 * A quantile of a histogram, computed like histogram_quantile() of Prometheus: linear within a bucket.
 *
 * @param bounds upper bounds of the buckets, ascending; the last bucket has none
 * @param counts of each bucket, not cumulative
 * @param share 0 to 1
 * @returns null if nothing was counted; the greatest bound if the quantile is beyond it
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0 || bounds.length === 0) return null
  const rank = share * total
  let below = 0
  for (const [index, upper] of bounds.entries()) {
    const count = counts[index] ?? 0
    if (count > 0 && below + count >= rank) {
      const lower = index === 0 ? Math.min(0, upper) : bounds[index - 1]!
      return lower + ((upper - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1)!
}
