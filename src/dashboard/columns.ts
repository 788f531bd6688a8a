/**
 * Reads columns out of the counters' rings (steps.ts). A column is an array with a number for each step of time, oldest first.
 * Counters have the flat names of metrics/table.ts. A histogram's series is such a name without its last word, a bucket or `sum`.
 */

import { type FlatName, type MetricKey, metricOf } from '../metrics/table.ts'
import { type Curve, type Percentiles, sum, type Tally } from './data.ts'

export class Columns {
  readonly #rings: ReadonlyMap<string, Uint32Array>
  readonly #ringIndexes: readonly number[]

  /**
   * @param rings by flat name
   * @param ringIndexes where the steps are in each ring, oldest first
   */
  constructor(rings: ReadonlyMap<string, Uint32Array>, ringIndexes: readonly number[]) {
    this.#rings = rings
    this.#ringIndexes = ringIndexes
  }

  /** One counter; zeros if nothing was counted. */
  counter(flatName: FlatName): number[] {
    const ring = this.#rings.get(flatName)
    return this.#ringIndexes.map(index => ring?.[index] ?? 0)
  }

  /** Adds up all series of a metric, or those whose labels the filter accepts, as one tally; zeros if nothing was counted. */
  sumOf(metricKey: MetricKey, filter: (...labels: string[]) => boolean = () => true): readonly number[] {
    const [all] = this.tallies(metricKey, (...labels) => (filter(...labels) ? 'all' : undefined))
    return all?.counts ?? this.#ringIndexes.map(() => 0)
  }

  /** @param nameOf names a series by its labels; series of the same name are added up; undefined leaves a series out */
  tallies(
    metricKey: MetricKey,
    nameOf: (...labels: string[]) => string | undefined = (...labels) => labels.join(' '),
  ): Tally[] {
    const byName = new Map<string, number[]>()
    for (const [flatName, ring] of this.#rings) {
      const [key, ...labels] = flatName.split(' ')
      const name = key === metricKey ? nameOf(...labels) : undefined
      if (name === undefined) continue
      const sums = byName.get(name) ?? []
      for (const [step, index] of this.#ringIndexes.entries()) sums[step] = (sums[step] ?? 0) + ring[index]!
      byName.set(name, sums)
    }
    return [...byName]
      .map(([name, counts]) => ({ name, total: sum(counts), counts }))
      .filter(({ total }) => total > 0)
      .sort((one, other) => other.total - one.total)
  }

  /** What each bucket of a histogram counted in all steps together. */
  bucketTotals(series: FlatName): number[] {
    return this.#buckets(series).map(sum)
  }

  /** A histogram's mean in each step, in the metric's unit. */
  means(series: FlatName): Curve {
    const sums = this.counter(`${series} sum`)
    const scale = metricOf(series)?.scale ?? 1
    return this.#perStep(series, (counts, step) => rounded(sums[step]! / scale / sum(counts)))
  }

  /** The upper bound of the highest bucket with a count. The last bucket has no upper bound, so it counts as the one before. */
  highestBound(series: FlatName): Curve {
    const bounds = boundsOf(series)
    return this.#perStep(series, counts => bounds[counts.findLastIndex(count => count > 0)] ?? bounds.at(-1)!)
  }

  /** Curves of a histogram of seconds, in milliseconds. */
  percentiles(series: FlatName): Percentiles {
    const bounds = boundsOf(series)
    const curve = (share: number) =>
      this.#perStep(series, counts => milliseconds(quantile(bounds, counts, share)))
    return { p50: curve(0.5), p95: curve(0.95), p99: curve(0.99) }
  }

  /** A quantile over all steps, of a histogram of seconds. */
  quantileMs(series: FlatName, share: number): number | null {
    return milliseconds(quantile(boundsOf(series), this.bucketTotals(series), share))
  }

  #buckets(series: FlatName): number[][] {
    return [...boundsOf(series), Infinity].map(bound => this.counter(`${series} ${bound}`))
  }

  /** @param figure computes a step's value from its buckets; not called for steps without a count, whose value is null */
  #perStep(series: FlatName, figure: (counts: readonly number[], step: number) => number | null): Curve {
    const buckets = this.#buckets(series)
    return this.#ringIndexes.map((_, step) => {
      const counts = buckets.map(bucket => bucket[step]!)
      return counts.some(count => count > 0) ? figure(counts, step) : null
    })
  }
}

function boundsOf(series: FlatName): readonly number[] {
  return metricOf(series)?.bounds ?? []
}

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : rounded(seconds * 1000)
}

/** Rounds to the digits that a screen shows. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

/**
 * Interpolates linearly within a bucket, like Prometheus' histogram_quantile().
 *
 * @param bounds upper bounds of the buckets, above 0 and ascending; one more bucket follows
 * @param counts of each bucket, not cumulative
 * @returns in the unit of `bounds`; null if nothing was counted; the last bound if the quantile lies beyond
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const total = sum(counts)
  if (total === 0 || bounds.length === 0) return null
  const rank = share * total
  let below = 0
  for (const [index, upper] of bounds.entries()) {
    const count = counts[index] ?? 0
    if (count > 0 && below + count >= rank) {
      const lower = bounds[index - 1] ?? 0
      return lower + ((upper - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1)!
}
