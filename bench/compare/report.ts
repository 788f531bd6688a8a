/** The paired measurements as a table, and the verdict on all of them. */

import { cpus } from 'node:os'
import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import type { Report } from '../report/report.ts'
import { left, right, spreadText } from '../report/report.ts'
import type { Case, Options } from './pairs.ts'
import { isRegression, type PairedRatio, pairedRatio, type Verdict, verdictOf } from './statistics.ts'

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
    cpu: cpus()[0]?.model ?? 'unknown CPU',
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

const COLUMNS = [
  ...['case', 'unit'].map(left),
  ...['old', 'new', 'new/old', '95 %'].map(right),
  left('verdict'),
]

function cells({ name, unit, old, new: now, ratio, ...rest }: CaseReport, { threshold }: Options): string[] {
  if (old === undefined || now === undefined || ratio === undefined) {
    return [name, unit, '-', '-', '-', '-', `${rest.verdict}: ${rest.problem}`]
  }
  const digits = unit === 'us' ? 2 : 0
  const verdict = rest.isRegression ? `SLOWER, beyond ${threshold}` : rest.verdict
  const interval = `${ratio.low.toFixed(3)}-${ratio.high.toFixed(3)}`
  return [
    name,
    unit,
    spreadText(old, digits),
    spreadText(now, digits),
    ratio.median.toFixed(3),
    interval,
    verdict,
  ]
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
  const rows = cases.map(one => cells(one, options))
  return {
    title: `powgate: this tree against ${revision}`,
    intro: legend(comparison),
    parts: [{ kind: 'table', title: 'Cases', columns: COLUMNS, rows }],
  }
}
