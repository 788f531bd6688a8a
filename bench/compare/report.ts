/** Which of two paired series is larger, how sure that is, and the verdict on all of them. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { left, machine, type Report, right, spreadText, table } from '../report/report.ts'
import type { Case, Options } from './pairs.ts'

export interface PairedRatio {
  /** Median of new/old over the pairs. */
  readonly median: number
  /** Bounds of the 95 % confidence interval; infinitely wide with fewer than two pairs. */
  readonly low: number
  readonly high: number
}

export type Verdict = 'faster' | 'slower' | 'no difference shown'

/** Student's t, two-sided 95 %, for 1, 2, 3, ... degrees of freedom. */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const

/**
 * Each new measurement against the old one beside it in time: what slows the machine for minutes befalls both, and
 * leaves their ratio alone.
 *
 * The interval is Student's t on the logarithms of the ratios. Logarithms, because 2 and 1/2 are the same distance from no
 * difference. A bootstrap would give intervals that are too narrow for five to ten pairs, because resamples never exceed the
 * range of the pairs. An outlier widens this one, so a disturbed run says that it cannot tell.
 *
 * @param olds,news as many of each, all above 0; the nth of one was measured beside the nth of the other
 */
export function pairedRatio(olds: readonly number[], news: readonly number[]): PairedRatio {
  if (olds.length !== news.length || olds.length === 0) throw new RangeError('measurements come in pairs')
  const ratios = news.map((value, index) => value / olds[index]!)
  if (!ratios.every(ratio => ratio > 0 && Number.isFinite(ratio))) {
    throw new RangeError('measurements are finite and above 0')
  }
  const { median } = spreadOf(ratios)
  const count = ratios.length
  if (count < 2) return { median, low: 0, high: Number.POSITIVE_INFINITY }
  const logs = ratios.map(Math.log)
  const mean = logs.reduce((sum, log) => sum + log, 0) / count
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (count - 1)
  const halfWidth = T_95[Math.min(count - 1, T_95.length) - 1]! * Math.sqrt(variance / count)
  return { median, low: Math.exp(mean - halfWidth), high: Math.exp(mean + halfWidth) }
}

/** A ratio of costs: above 1, the new one costs more. */
export function verdictOf({ low, high }: PairedRatio): Verdict {
  if (low > 1) return 'slower'
  return high < 1 ? 'faster' : 'no difference shown'
}

/** Slower beyond doubt, and by more than is let pass. */
export function isRegression({ median, low }: PairedRatio, threshold: number): boolean {
  return low > 1 && median > threshold
}

export interface CaseReport {
  readonly part: Case['part']
  readonly name: string
  readonly unit: Case['unit']
  readonly verdict: Verdict | 'not comparable' | 'FAILED'
  readonly isRegression: boolean
  /** Of what could be compared. */
  readonly old?: Spread
  readonly new?: Spread
  readonly ratio?: PairedRatio
  /** new/old of each pair. */
  readonly ratios?: readonly number[]
  /** Why it could not. */
  readonly problem?: string
}

export interface Comparison {
  readonly revision: string
  readonly commit: string
  readonly node: string
  readonly cpu: string
  readonly options: Options
  readonly cases: readonly CaseReport[]
}

export function comparisonOf(options: Options, commit: string, cases: readonly Case[]): Comparison {
  return {
    revision: options.revision,
    commit,
    node: process.version,
    cpu: machine().cpu,
    options,
    cases: cases.map(one => caseReport(one, options.threshold)),
  }
}

function caseReport({ part, name, unit, olds, news, problem }: Case, threshold: number): CaseReport {
  const head = { part, name, unit }
  if (problem !== undefined) {
    // What only this tree cannot do is its fault; what the revision cannot do is no fault of this tree.
    const verdict = problem.side === 'new' ? 'FAILED' : 'not comparable'
    const where = problem.side === 'new' ? 'this tree' : 'the revision'
    return { ...head, verdict, isRegression: false, problem: `${where}: ${problem.text}` }
  }
  const ratio = pairedRatio(olds, news)
  return {
    ...head,
    verdict: verdictOf(ratio),
    isRegression: isRegression(ratio, threshold),
    old: spreadOf(olds),
    new: spreadOf(news),
    ratio,
    ratios: news.map((value, index) => value / olds[index]!),
  }
}

/** 0: nothing is too slow. */
export function exitCodeOf(cases: readonly CaseReport[]): 0 | 1 {
  const isBad = cases.some(one => one.isRegression || one.verdict === 'FAILED')
  const isEmpty = !cases.some(({ ratio }) => ratio !== undefined)
  return isBad || isEmpty ? 1 : 0
}

function caseTable(cases: readonly CaseReport[], threshold: number) {
  const spread = (of: Spread | undefined, unit: string) =>
    of === undefined ? '-' : spreadText(of, unit === 'us' ? 2 : 0)
  return table<CaseReport>(
    'Cases',
    [
      [left('case'), ({ name }) => name],
      [left('unit'), ({ unit }) => unit],
      [right('old'), ({ old, unit }) => spread(old, unit)],
      [right('new'), ({ new: now, unit }) => spread(now, unit)],
      [right('new/old'), ({ ratio }) => ratio?.median.toFixed(3) ?? '-'],
      [
        right('95 %'),
        ({ ratio }) => (ratio === undefined ? '-' : `${ratio.low.toFixed(3)}-${ratio.high.toFixed(3)}`),
      ],
      [
        left('verdict'),
        ({ verdict, problem, isRegression: isBad }) => {
          if (problem !== undefined) return `${verdict}: ${problem}`
          return isBad ? `SLOWER, beyond ${threshold}` : verdict
        },
      ],
    ],
    cases,
  )
}

/** One in twenty intervals leaves out the truth. */
const MISS_RATE = 0.05

function legend({ revision, commit, node, cpu, options, cases }: Comparison): string {
  const compared = cases.filter(({ ratio }) => ratio !== undefined).length
  const byChance = (compared * MISS_RATE).toFixed(1)
  return `old: ${revision} (${commit.slice(0, 12)}); new: this tree. Median (range) of ${options.repeat} pairs, HTTP cases of ${options.seconds} s; ${cpu}, Node.js ${node}.
CPU time of one request or one step. new/old: median over the pairs, each measured side by side; 95 %: its confidence
interval. A difference is shown if the interval does not hold 1; of ${compared} cases that are the same, about ${byChance} would seem different.`
}

export function reportOf(comparison: Comparison): Report {
  const { cases, options, revision } = comparison
  return {
    title: `powgate: this tree against ${revision}`,
    intro: legend(comparison),
    parts: [caseTable(cases, options.threshold)],
  }
}
