/** Counts by the table of metrics (table.ts). Flat names are put together once per label value, and when they are read: counting makes no garbage. */

import {
  COUNTED_KEYS,
  type CountedKey,
  METRICS,
  type Metric,
  SITE_COUNTED_KEYS,
  type SiteCountedKey,
  type Values,
} from './table.ts'

/** A counter or histogram. One with labels is a tree: each level has a series for each value of the next label. */
export class Series {
  readonly #flatName: string
  readonly #metric: Pick<Metric, 'bounds' | 'scale'>
  /** A histogram's buckets, then the sum; a counter has only the sum. */
  readonly #numbers: number[]
  #byLabel: Map<string | number, Series> | undefined

  constructor(flatName: string, metric: Pick<Metric, 'bounds' | 'scale'>) {
    this.#flatName = flatName
    this.#metric = metric
    this.#numbers = new Array(metric.bounds === undefined ? 1 : metric.bounds.length + 2).fill(0)
  }

  /** The series with this value of the next label. */
  at(value: string | number): Series {
    this.#byLabel ??= new Map()
    let series = this.#byLabel.get(value)
    if (series === undefined) {
      series = new Series(`${this.#flatName} ${value}`, this.#metric)
      this.#byLabel.set(value, series)
    }
    return series
  }

  add(value = 1): void {
    const numbers = this.#numbers
    numbers[numbers.length - 1]! += value
    const { bounds } = this.#metric
    if (bounds === undefined) return
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    numbers[bucket]!++
  }

  /** Writes all numbers of the tree but zeros. */
  writeTo(values: Values): void {
    const { bounds, scale = 1 } = this.#metric
    const sum = Math.round(this.#numbers.at(-1)! * scale)
    if (sum !== 0) values[bounds === undefined ? this.#flatName : `${this.#flatName} sum`] = sum
    if (bounds !== undefined) {
      for (let bucket = 0; bucket <= bounds.length; bucket++) {
        const count = this.#numbers[bucket]!
        if (count !== 0) values[`${this.#flatName} ${bounds[bucket] ?? Infinity}`] = count
      }
    }
    if (this.#byLabel !== undefined) for (const series of this.#byLabel.values()) series.writeTo(values)
  }
}

export type Counts = Readonly<Record<CountedKey, Series>>
export type SiteCounts = Readonly<Record<SiteCountedKey, Series>>

export const newCounts = (): Counts => seriesOf(COUNTED_KEYS)

export const newSiteCounts = (): SiteCounts => seriesOf(SITE_COUNTED_KEYS)

function seriesOf<Key extends CountedKey>(keys: readonly Key[]): Record<Key, Series> {
  return Object.fromEntries(keys.map(key => [key, new Series(key, METRICS[key])])) as Record<Key, Series>
}

export function valuesOf(counts: Counts | SiteCounts): Values {
  const values: Values = {}
  for (const series of Object.values<Series>(counts)) series.writeTo(values)
  return values
}
