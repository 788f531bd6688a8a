/** The dashboard's figures, per step of time or over all steps. */

import type { Gaps, Percentiles, Tally } from './history-view.ts'
import type { Rings } from './steps.ts'
import { metricOf } from './table.ts'

export class Columns {
  readonly #rings: Rings
  readonly #places: readonly number[]

  constructor(rings: Rings, places: readonly number[]) {
    this.#rings = rings
    this.#places = places
  }

  /** Returns zeros if there is no such counter. */
  column(name: string): number[] {
    const ring = this.#rings.get(name)
    return this.#places.map(place => ring?.[place] ?? 0)
  }

  sum(key: string, isMeant: (...labels: string[]) => boolean = () => true): readonly number[] {
    const [all] = this.tallies(key, (...labels) => (isMeant(...labels) ? 'all' : undefined))
    return all?.counts ?? this.#places.map(() => 0)
  }

  /** @param nameOf series of the same name are added up; undefined leaves a series out */
  tallies(
    key: string,
    nameOf: (...labels: string[]) => string | undefined = (...labels) => labels.join(' '),
  ): Tally[] {
    const byName = new Map<string, number[]>()
    for (const [flat, ring] of this.#rings) {
      const [ownKey, ...labels] = flat.split(' ')
      const name = ownKey === key ? nameOf(...labels) : undefined
      if (name === undefined) continue
      const sums = byName.get(name) ?? []
      for (const [step, place] of this.#places.entries()) sums[step] = (sums[step] ?? 0) + ring[place]!
      byName.set(name, sums)
    }
    return [...byName]
      .map(([name, counts]) => ({ name, total: sum(counts), counts }))
      .filter(({ total }) => total > 0)
      .sort((one, other) => other.total - one.total)
  }

  buckets(series: string): number[] {
    return this.#buckets(series).map(sum)
  }

  means(series: string): Gaps {
    const sums = this.column(`${series} sum`)
    return this.#perStep(series, (counts, step) => rounded(sums[step]! / sum(counts)))
  }

  highest(series: string): Gaps {
    const bounds = boundsOf(series)
    return this.#perStep(series, counts => bounds[counts.findLastIndex(count => count > 0)] ?? bounds.at(-1)!)
  }

  /** Returns milliseconds; the histogram has seconds. */
  percentiles(series: string): Percentiles {
    const bounds = boundsOf(series)
    const curve = (share: number) =>
      this.#perStep(series, counts => milliseconds(quantile(bounds, counts, share)))
    return { p50: curve(0.5), p95: curve(0.95), p99: curve(0.99) }
  }

  quantile(series: string, share: number): number | null {
    return milliseconds(quantile(boundsOf(series), this.buckets(series), share))
  }

  #buckets(series: string): number[][] {
    return [...boundsOf(series), Infinity].map(bound => this.column(`${series} ${bound}`))
  }

  /** null for steps without a count. */
  #perStep(series: string, figure: (counts: readonly number[], step: number) => number | null): Gaps {
    const buckets = this.#buckets(series)
    return this.#places.map((_, step) => {
      const counts = buckets.map(bucket => bucket[step]!)
      return counts.some(count => count > 0) ? figure(counts, step) : null
    })
  }
}

function boundsOf(series: string): readonly number[] {
  return metricOf(series)?.bounds ?? []
}

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
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
 * @param bounds ascending; the last bucket has none
 * @param counts of each bucket, not cumulative
 * @returns null if nothing was counted; the last bound if the quantile lies beyond
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const total = sum(counts)
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
