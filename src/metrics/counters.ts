/** Counts by the table of metrics. Counting makes no text: names are built when counts are read. */

import {
  BY_SITE,
  type BySiteKey,
  type Metric,
  metricOf,
  SERVICE_KEYS,
  type ServiceKey,
  type Values,
} from './table.ts'

/** A counter or histogram; with labels a tree, one level per label. */
export class Series {
  readonly #flatName: string
  readonly #metric: Pick<Metric, 'bounds' | 'parts'>
  /** A histogram's buckets, then the sum; a counter has only the sum. */
  readonly #numbers: number[]
  #below: Map<string | number, Series> | undefined = undefined

  constructor(flatName: string, metric: Pick<Metric, 'bounds' | 'parts'> = {}) {
    this.#flatName = flatName
    this.#metric = metric
    this.#numbers = new Array(metric.bounds === undefined ? 1 : metric.bounds.length + 2).fill(0)
  }

  /** The series of the next label's value. */
  at(value: string | number): Series {
    this.#below ??= new Map()
    let series = this.#below.get(value)
    if (series === undefined) {
      series = new Series(`${this.#flatName} ${value}`, this.#metric)
      this.#below.set(value, series)
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

  /** Leaves out zeros. */
  write(into: Values): void {
    const { bounds, parts = 1 } = this.#metric
    const sum = Math.round(this.#numbers.at(-1)! * parts)
    if (sum !== 0) into[bounds === undefined ? this.#flatName : `${this.#flatName} sum`] = sum
    if (bounds !== undefined) {
      for (let bucket = 0; bucket <= bounds.length; bucket++) {
        const count = this.#numbers[bucket]!
        if (count !== 0) into[`${this.#flatName} ${bounds[bucket] ?? Infinity}`] = count
      }
    }
    if (this.#below !== undefined) for (const series of this.#below.values()) series.write(into)
  }
}

export type Counts = Readonly<Record<ServiceKey, Series>>
export type SiteCounts = Readonly<Record<BySiteKey, Series>>

export const newCounts = (): Counts => seriesOf(SERVICE_KEYS)

export const newSiteCounts = (): SiteCounts => seriesOf(BY_SITE)

function seriesOf<Key extends string>(keys: readonly Key[]): Record<Key, Series> {
  return Object.fromEntries(keys.map(key => [key, new Series(key, metricOf(key))])) as Record<Key, Series>
}

export function valuesOf(counts: Counts | SiteCounts): Values {
  const values: Values = {}
  for (const series of Object.values<Series>(counts)) series.write(values)
  return values
}
