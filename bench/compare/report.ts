/** The verdict on each case, from its pairs: the ratio new/old with its confidence interval, as a table and as an exit code. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { type Cell, left, machine, reportText, right, table, text } from '../report/report.ts'
import { type Measured, type Options, seriesOf } from './pairs.ts'
import { isRegression, type PairedRatio, pairedRatio, reachOf, verdictOf } from './statistics.ts'

interface CaseReport {
  readonly name: string
  readonly unit: string
  readonly pairs: number
  readonly verdict: ReturnType<typeof verdictOf> | 'not comparable' | 'FAILED'
  readonly isRegression: boolean
  /** What was measured, if it could be compared. */
  readonly old?: Spread
  readonly new?: Spread
  readonly ratio?: PairedRatio
  /** A change of this share, two reaches of the interval, would have shown in 39 runs of 40: luck lowers the measured ratio by over one reach in 1 of 40. */
  readonly couldSee?: number
  /** Why it could not be compared, or failed. */
  readonly problem?: string
}

type Comparison = ReturnType<typeof comparisonOf>

export function comparisonOf(options: Options, commit: string, measured: readonly Measured[]) {
  const { cpu, node } = machine()
  const { revision, threshold } = options
  // A job measures several costs, such as CPU time and garbage; each is a case.
  const cases = measured.flatMap(one => one.job.costs.map((_, index) => caseReport(one, index, threshold)))
  return { revision, commit, node, cpu, options, cases }
}

function caseReport(measured: Measured, costIndex: number, threshold: number): CaseReport {
  const { job, pairs, problem } = measured
  const common = { ...job.costs[costIndex]!, pairs: pairs.length, isRegression: false }
  // What only this tree cannot do is its fault; what the revision cannot do is no fault of this tree.
  if (problem?.side === 'new')
    return { ...common, verdict: 'FAILED', problem: `this tree: ${problem.problem}` }
  if (problem !== undefined || pairs.length === 0) {
    const why = problem === undefined ? 'stopped before the first pair' : `the revision: ${problem.problem}`
    return { ...common, verdict: 'not comparable', problem: why }
  }
  const { olds, news } = seriesOf(measured, costIndex)
  const ratio = pairedRatio(olds, news)
  return {
    ...common,
    verdict: verdictOf(ratio),
    isRegression: isRegression(ratio, threshold),
    old: spreadOf(olds),
    new: spreadOf(news),
    ratio,
    couldSee: 2 * reachOf(ratio),
  }
}

/** @returns 0 if something was compared, nothing is too slow and nothing failed in this tree */
export function exitCodeOf(cases: readonly CaseReport[]): 0 | 1 {
  const isBad = cases.some(one => one.isRegression || one.verdict === 'FAILED')
  const isEmpty = !cases.some(({ ratio }) => ratio !== undefined)
  return isBad || isEmpty ? 1 : 0
}

/** Bytes are neither fast nor slow, so these words replace the verdict's. */
const BYTES_WORDS: Readonly<Record<string, string>> = { slower: 'more', faster: 'less' }

function verdictText({ verdict, unit, problem, isRegression: isBad }: CaseReport, threshold: number): string {
  if (problem !== undefined) return `${verdict}: ${problem}`
  const word = unit === 'bytes' ? (BYTES_WORDS[verdict] ?? verdict) : verdict
  return isBad ? `${word.toUpperCase()}, beyond ${threshold}` : word
}

function caseTable(cases: readonly CaseReport[], threshold: number): string {
  const spread = (name: 'old' | 'new'): Cell<CaseReport> => [
    right(name),
    ({ [name]: of, unit }) => text(of, unit === 'us' ? 2 : 0),
  ]
  const ofRatio = (title: string, words: (ratio: PairedRatio) => string): Cell<CaseReport> => [
    right(title),
    ({ ratio }) => (ratio === undefined ? '-' : words(ratio)),
  ]
  const cells: Cell<CaseReport>[] = [
    [left('case'), ({ name }) => name],
    [left('unit'), ({ unit }) => unit],
    spread('old'),
    spread('new'),
    ofRatio('new/old', ({ median }) => median.toFixed(3)),
    ofRatio('95 %', ({ low, high }) => `${low.toFixed(3)}-${high.toFixed(3)}`),
    [right('pairs'), ({ pairs }) => String(pairs)],
    [
      right('could see'),
      ({ couldSee }) => (couldSee === undefined ? '-' : `${(100 * couldSee).toFixed(1)}%`),
    ],
    [left('verdict'), one => verdictText(one, threshold)],
  ]
  return table('Cases', cells, cases)
}

/** One in twenty intervals leaves out the truth. */
const MISS_RATE = 0.05

function legend({ revision, commit, node, cpu, options, cases }: Comparison): string {
  const compared = cases.filter(({ ratio }) => ratio !== undefined).length
  const byChance = (compared * MISS_RATE).toFixed(1)
  return `old: ${revision} (${commit.slice(0, 12)}); new: this tree. Medians (ranges); requests of ${options.seconds} s a pair after ${options.warmup} s; ${cpu}, Node.js ${node}.
CPU time, or bytes of garbage, of one request or one step. new/old: median over the pairs, each measured side by side; 95 %: its
confidence interval. A difference is shown if the interval does not hold 1; of ${compared} cases that are the same, about ${byChance} would seem
different. could see: the change that would have been shown 39 times of 40. Pairs were added until intervals were within ${options.within} %, for
${options.minutes} minutes at most.`
}

export function reportOf(comparison: Comparison): string {
  return reportText([caseTable(comparison.cases, comparison.options.threshold), legend(comparison)])
}
