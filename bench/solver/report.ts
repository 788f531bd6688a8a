/** The figures, from what was measured, and as tables with the aims. */

import { triesOf } from '../../src/protocol/proof.ts'
import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { disturbanceNote, type Measured } from '../disturbance.ts'
import { wantedVersions } from '../packages.ts'
import { aimsText, left, machine, type Report, right, spreadText, table, text } from '../report/report.ts'
import { CONTENDERS, type ContenderName, type GpuRun } from './contenders.ts'
import type { Rate, Sizes, Solves } from './runs.ts'

export interface Surroundings {
  readonly cpu: string
  readonly cores: number
  readonly chromium: string
  /** Processes that wanted a core when the bench started, averaged over a minute. */
  readonly loadAverage: number
  /** By package name. */
  readonly peers: Readonly<Record<string, string>>
  readonly sizes: Sizes
}

export interface RateRow {
  readonly contender: ContenderName
  readonly label: string
  readonly threads: number
  readonly hashesPerSecond: Spread
  /** Against @cap.js/wasm with as many threads, in the same round. */
  readonly timesCap?: Spread
  /** Cores that others used meanwhile, by median. */
  readonly othersBusy: number | undefined
}

export interface SolveRow {
  readonly difficulty: number
  readonly nonces: number
  readonly searchMs: { readonly median: number; readonly p95: number; readonly mean: number }
  /** 2^difficulty tries, at the rate measured between these puzzles. */
  readonly expectedMs: { readonly median: number; readonly p95: number; readonly mean: number }
  /** Tries against 2^difficulty: above 1, these nonces took more than others would. */
  readonly luck: number
  /** With the workers' start and all that the pool waits for. */
  readonly totalMs: { readonly median: number; readonly p95: number }
  readonly othersBusy: number | undefined
}

export interface Aim {
  readonly about: string
  readonly timesCapMin: number
  readonly timesCap: number
  readonly isMet: boolean
}

export interface SolverFigures {
  readonly surroundings: Surroundings
  readonly rates: readonly RateRow[]
  readonly solves: readonly SolveRow[]
  readonly aims: readonly Aim[]
  /** Only if asked for. */
  readonly gpu?: GpuFigures | undefined
}

export interface GpuFigures {
  readonly kind: string
  readonly startMs: Spread
  readonly hashesPerSecond: Spread
}

/** On one thread. */
const AIMS: readonly { readonly contender: ContenderName; readonly timesCapMin: number }[] = [
  { contender: 'simd', timesCapMin: 4 },
  { contender: 'scalar', timesCapMin: 1 },
]

export function figuresOf(
  where: Pick<Surroundings, 'chromium' | 'loadAverage' | 'sizes'>,
  rates: readonly Rate[],
  solves: readonly Solves[],
  gpu?: GpuFigures,
): SolverFigures {
  const rows = rates.map(rate => rateRow(rate, rates))
  const aims = AIMS.flatMap(({ contender, timesCapMin }) => {
    const timesCap = rows.find(row => row.contender === contender && row.threads === 1)?.timesCap?.median
    if (timesCap === undefined) return []
    return [{ about: CONTENDERS[contender].label, timesCapMin, timesCap, isMet: timesCap >= timesCapMin }]
  })
  const surroundings = { ...machine(), peers: wantedVersions(), ...where }
  return { surroundings, rates: rows, solves: solves.map(solveRow), aims, gpu }
}

export function gpuFigures(kind: string, runs: readonly GpuRun[]): GpuFigures {
  const spread = (name: keyof GpuRun) => spreadOf(runs.map(run => run[name]))
  return { kind, startMs: spread('startMs'), hashesPerSecond: spread('hashesPerSecond') }
}

function rateRow({ contender, threads, samples }: Rate, rates: readonly Rate[]): RateRow {
  const row = {
    contender,
    label: CONTENDERS[contender].label,
    threads,
    hashesPerSecond: spreadOf(samples.map(({ value }) => value)),
    othersBusy: medianOthersBusy(samples),
  }
  const cap = rates.find(rate => rate.contender === 'cap' && rate.threads === threads)
  if (cap === undefined) return row
  return { ...row, timesCap: spreadOf(samples.map(({ value }, round) => value / cap.samples[round]!.value)) }
}

function medianOthersBusy(samples: readonly Measured<unknown>[]): number | undefined {
  const known = samples.flatMap(({ othersBusy }) => othersBusy ?? [])
  return known.length === 0 ? undefined : spreadOf(known).median
}

function solveRow({ difficulty, results, rates }: Solves): SolveRow {
  const searchMs = results.map(({ value }) => value.searchMs)
  const totalMs = results.map(({ value }) => value.totalMs)
  const tries = meanOf(results.map(({ value }) => triesOf(value.counter)!))
  const expectedMeanMs = (1000 * 2 ** difficulty) / spreadOf(rates).median
  return {
    difficulty,
    nonces: results.length,
    searchMs: { median: quantile(searchMs, 0.5), p95: quantile(searchMs, 0.95), mean: meanOf(searchMs) },
    // Tries are geometric: a share q of puzzles takes at most -ln(1 - q) times the mean.
    expectedMs: {
      median: Math.LN2 * expectedMeanMs,
      p95: Math.log(20) * expectedMeanMs,
      mean: expectedMeanMs,
    },
    luck: tries / 2 ** difficulty,
    totalMs: { median: quantile(totalMs, 0.5), p95: quantile(totalMs, 0.95) },
    othersBusy: medianOthersBusy(results),
  }
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The smallest value that at least such a share of all do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

export function reportOf(figures: SolverFigures): Report {
  const aims = figures.aims.map(({ about, timesCapMin, timesCap, isMet }) => ({
    about: `${about} at least ${timesCapMin} x @cap.js/wasm on one thread`,
    isMet,
    found: `${timesCap.toFixed(2)} x`,
  }))
  const gpus = figures.gpu === undefined ? [] : [figures.gpu]
  const tables = [rateTable(figures.rates), solveTable(figures.solves), gpuTable(gpus)].filter(
    ({ rows }) => rows.length > 0,
  )
  return {
    title: 'powgate: the solvers in a browser',
    intro: legend(figures),
    parts: [...tables, aimsText(aims)],
  }
}

const millions = ({ median, min, max }: Spread) =>
  spreadText({ median: median / 1e6, min: min / 1e6, max: max / 1e6 }, 2)

function gpuTable(gpus: readonly GpuFigures[]) {
  return table(
    'The GPU alone',
    [
      [left('GPU'), ({ kind }) => kind],
      [right('ms to the first answer'), ({ startMs }) => spreadText(startMs, 0)],
      [right('million hashes/s'), ({ hashesPerSecond }) => millions(hashesPerSecond)],
    ],
    gpus,
  )
}

function rateTable(rates: readonly RateRow[]) {
  return table(
    'Hashes',
    [
      [left('solver'), ({ label }) => label],
      [right('threads'), ({ threads }) => String(threads)],
      [right('million hashes/s'), ({ hashesPerSecond }) => millions(hashesPerSecond)],
      [right('x @cap.js/wasm'), ({ timesCap }) => text(timesCap, 2)],
      [left('notes'), ({ othersBusy }) => disturbanceNote(othersBusy)],
    ],
    rates,
  )
}

function solveTable(solves: readonly SolveRow[]) {
  return table(
    'From a challenge to its counter',
    [
      [right('bits'), ({ difficulty }) => String(difficulty)],
      [right('nonces'), ({ nonces }) => String(nonces)],
      ...(['median', 'p95', 'mean'] as const).flatMap(name => [
        [right(`${name} ms`), ({ searchMs }: SolveRow) => searchMs[name].toFixed(0)] as const,
        [right('expected'), ({ expectedMs }: SolveRow) => expectedMs[name].toFixed(0)] as const,
      ]),
      [right('tries / 2^bits'), ({ luck }) => luck.toFixed(2)],
      [right('all: median ms'), ({ totalMs }) => totalMs.median.toFixed(0)],
      [right('p95 ms'), ({ totalMs }) => totalMs.p95.toFixed(0)],
      [left('notes'), ({ othersBusy }) => disturbanceNote(othersBusy)],
    ],
    solves,
  )
}

function legend({ surroundings }: SolverFigures): string {
  const { cpu, cores, chromium, loadAverage, peers, sizes } = surroundings
  const versions = Object.entries(peers).map(([name, version]) => `${name} ${version}`)
  return `${cpu}, ${cores} cores, Chromium ${chromium}, ${versions.join(', ')}; load average at the start ${loadAverage.toFixed(1)}.
Rates: median (range) of ${sizes.repeat} x ${sizes.measureMs} ms in turn, each in fresh workers after ${sizes.warmUpMs} ms; ratios within a round.
WebCrypto with 64 calls under way. Solving, by the widget's workers: from the puzzle to its counter; expected at the
rate measured in between; all: also until the workers run, and until the pool has what else it waits for.`
}
