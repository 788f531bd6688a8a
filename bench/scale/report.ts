/** Computes medians, ranges and ratios, and tells whether costs stay flat. */

import { spreadsOf } from '../http/report.ts'
import { type Spread, spreadOf } from '../support/statistics.ts'
import type { Cost, Measured } from './measure.ts'
import type { Options } from './options.ts'
import type { Point, Series } from './points.ts'

/** What a point costs against the first of its series in the same turn. */
export interface Ratios {
  readonly requestsPerSecond: Spread
  readonly workerUs: Spread
  readonly redisUs?: Spread
}

export interface PointReport extends Point {
  readonly isOk: boolean
  /** Why the figures are worth less than others, or nothing. */
  readonly notes: readonly string[]
  readonly figures: Readonly<Partial<Record<keyof Cost, Spread>>>
  /** undefined if never both were measured in the same turn. */
  readonly ratios: Ratios | undefined
}

export interface Verdict {
  readonly process: 'worker' | 'Redis'
  /** The median ratio that is farthest from 1. */
  readonly worstRatio: number
  readonly isFlat: boolean
}

export interface SeriesReport extends Omit<Series, 'points'> {
  readonly points: readonly PointReport[]
  /** Only of what should stay flat: addresses and sites. */
  readonly verdicts: readonly Verdict[]
}

/** So much more or less than at the first point still is flat. */
export const FLAT_WITHIN = 0.15
const OTHERS_BUSY_MAX = 0.15

/** @param turns for each turn, the measurements of the points in their order */
export function reportSeries(series: Series, turns: readonly (readonly Measured[])[]): SeriesReport {
  const points = series.points.map((point, index) =>
    reportPoint(
      point,
      turns.map(turn => turn[index]!),
      turns.map(turn => turn[0]!),
    ),
  )
  const isGrowth = series.part === 'addresses' || series.part === 'sites'
  return { ...series, points, verdicts: isGrowth ? verdictsOf(points) : [] }
}

function reportPoint(point: Point, all: readonly Measured[], firsts: readonly Measured[]): PointReport {
  const figures = spreadsOf(all.flatMap(({ cost }) => cost ?? []))
  const failures = all.flatMap(({ failure }) => failure ?? [])
  const notes: string[] = []
  if (failures.length > 0) notes.push(`FAILED: ${failures[0]}`)
  const { othersBusy } = figures
  if (othersBusy !== undefined && othersBusy.median > OTHERS_BUSY_MAX) {
    notes.push(`others used ${(othersBusy.median * 100).toFixed(0)}% of a core`)
  }
  if (all.some(({ ranOut }) => ranOut)) notes.push('requests ran out early')
  return { ...point, isOk: failures.length === 0, notes, figures, ratios: ratiosOf(all, firsts) }
}

function ratiosOf(all: readonly Measured[], firsts: readonly Measured[]): Ratios | undefined {
  const ratios = (name: 'requestsPerSecond' | 'workerUs' | 'redisUs') =>
    all.flatMap(({ cost }, turn) => {
      const [value, first] = [cost?.[name], firsts[turn]!.cost?.[name]]
      return value === undefined || first === undefined ? [] : [value / first]
    })
  const [requestsPerSecond, workerUs, redisUs] = [
    ratios('requestsPerSecond'),
    ratios('workerUs'),
    ratios('redisUs'),
  ]
  if (workerUs.length === 0) return undefined
  return {
    requestsPerSecond: spreadOf(requestsPerSecond),
    workerUs: spreadOf(workerUs),
    ...(redisUs.length > 0 && { redisUs: spreadOf(redisUs) }),
  }
}

/** Empty if a point is missing. */
function verdictsOf(points: readonly PointReport[]): Verdict[] {
  return [
    ...verdictOf(
      'worker',
      points.map(({ ratios }) => ratios?.workerUs),
    ),
    ...verdictOf(
      'Redis',
      points.map(({ ratios }) => ratios?.redisUs),
    ),
  ]
}

function verdictOf(process: Verdict['process'], ratios: readonly (Spread | undefined)[]): Verdict[] {
  const medians = ratios.flatMap(ratio => ratio?.median ?? [])
  if (medians.length < ratios.length) return []
  const worstRatio = medians.reduce((worst, median) =>
    Math.abs(median - 1) > Math.abs(worst - 1) ? median : worst,
  )
  return [{ process, worstRatio, isFlat: Math.abs(worstRatio - 1) <= FLAT_WITHIN }]
}

/** One line for each measurement, while people wait. */
export function progressLine({ part, endpoint }: Series, point: Point, { cost, failure }: Measured): string {
  const name = `${part} ${point.size}: ${endpoint} on ${point.server}`
  if (failure !== undefined) return `${name}: FAILED: ${failure}`
  if (cost === undefined) return `${name}: nothing measured`
  const redis = cost.redisUs === undefined ? '' : `, Redis ${cost.redisUs.toFixed(2)} us`
  return `${name}: ${cost.requestsPerSecond.toFixed(0)}/s, ${cost.workerUs.toFixed(2)} us${redis}`
}

export function jsonText(all: readonly SeriesReport[], options: Options): string {
  return JSON.stringify({ node: process.version, options, series: all }, undefined, 2)
}
