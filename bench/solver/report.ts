/** The figures, from what was measured, and as tables with the aims. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { disturbanceNote } from '../disturbance.ts'
import { wantedVersions } from '../packages.ts'
import type { Aim, Cell } from '../report/report.ts'
import { aimsText, left, machine, reportText, right, spreadsOf, table, text } from '../report/report.ts'
import { CONTENDERS, type ContenderName, type GpuRun } from './contenders.ts'
import type { Rate, Sizes, Solves } from './runs.ts'

export type SolverFigures = ReturnType<typeof figuresOf> & { readonly gpu?: GpuFigures }
type RateRow = ReturnType<typeof rateRow>
type SolveRow = ReturnType<typeof solveRow>
type GpuFigures = ReturnType<typeof gpuFigures>

/** How many times as fast as @cap.js/wasm solvers must be at least, on one thread. */
const AIMS: readonly (readonly [contender: ContenderName, timesCapMin: number])[] = [
  ['simd', 4],
  ['scalar', 1],
]

/** @param where `loadAverage`: when the bench started */
export function figuresOf(
  where: { readonly browser: string; readonly loadAverage: number; readonly sizes: Sizes },
  rates: readonly Rate[],
  solves: readonly Solves[],
) {
  const rows = rates.map(rate => rateRow(rate, rates))
  const aims = AIMS.flatMap(([contender, least]): Aim[] => {
    const found = rows.find(row => row.contender === contender && row.threads === 1)?.timesCap?.median
    if (found === undefined) return []
    const about = `${CONTENDERS[contender].label} at least ${least} x @cap.js/wasm on one thread`
    return [{ about, isMet: found >= least, found: `${found.toFixed(2)} x` }]
  })
  const surroundings = { ...machine(), peers: wantedVersions(), ...where }
  return { surroundings, rates: rows, solves: solves.map(solveRow), aims }
}

export function gpuFigures(kind: string, runs: readonly GpuRun[]) {
  return { kind, ...spreadsOf(runs) }
}

function rateRow({ contender, threads, samples }: Rate, rates: readonly Rate[]) {
  // With as many threads. runs.ts measures all in each round, so samples at the same index are of the same round.
  const cap = rates.find(rate => rate.contender === 'cap' && rate.threads === threads)
  const { value: hashesPerSecond, othersBusy } = spreadsOf(samples)
  return {
    contender,
    label: CONTENDERS[contender].label,
    threads,
    hashesPerSecond,
    timesCap: cap && spreadOf(samples.map(({ value }, round) => value / cap.samples[round]!.value)),
    othersBusy,
  }
}

function solveRow({ puzzle, difficulty, results }: Solves) {
  const searchMs = results.map(({ value }) => value.searchMs)
  const { othersBusy } = spreadsOf(results.map(({ othersBusy }) => ({ othersBusy }))) // none where the system does not tell
  return {
    puzzle,
    difficulty,
    nonces: results.length,
    searchMs: { median: quantile(searchMs, 0.5), p95: quantile(searchMs, 0.95) },
    othersBusy,
  }
}

/** The smallest value that at least such a share of all do not exceed. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

export function reportOf(figures: SolverFigures): string {
  const { rates, solves, gpu, aims } = figures
  return reportText([
    table('Hashes', RATE_CELLS, rates),
    table('From a challenge to its counter', SOLVE_CELLS, solves),
    table('The GPU alone', GPU_CELLS, gpu === undefined ? [] : [gpu]),
    aimsText(aims),
    legend(figures),
  ])
}

function millions({ median, min, max }: Spread): string {
  return text({ median: median / 1e6, min: min / 1e6, max: max / 1e6 }, 2)
}

const GPU_CELLS: readonly Cell<GpuFigures>[] = [
  [left('GPU'), ({ kind }) => kind],
  [right('ms to the first answer'), ({ startMs }) => text(startMs, 0)],
  [right('million hashes/s'), ({ hashesPerSecond }) => millions(hashesPerSecond!)],
]

const RATE_CELLS: readonly Cell<RateRow>[] = [
  [left('solver'), ({ label }) => label],
  [right('threads'), ({ threads }) => String(threads)],
  [right('million hashes/s'), ({ hashesPerSecond }) => millions(hashesPerSecond!)],
  [right('x @cap.js/wasm'), ({ timesCap }) => text(timesCap, 2)],
  [left('notes'), ({ othersBusy }) => disturbanceNote(othersBusy?.median)],
]

const SOLVE_CELLS: readonly Cell<SolveRow>[] = [
  [left('puzzle'), ({ puzzle }) => puzzle],
  [right('bits'), ({ difficulty }) => String(difficulty)],
  [right('nonces'), ({ nonces }) => String(nonces)],
  [right('median ms'), ({ searchMs }) => searchMs.median.toFixed(0)],
  [right('95 % ms'), ({ searchMs }) => searchMs.p95.toFixed(0)],
  [left('notes'), ({ othersBusy }) => disturbanceNote(othersBusy?.median)],
]

function legend({ surroundings }: SolverFigures): string {
  const { cpu, cores, browser, loadAverage, peers, sizes } = surroundings
  const versions = Object.entries(peers).map(([name, version]) => `${name} ${version}`)
  return `${cpu}, ${cores} cores, ${browser}, ${versions.join(', ')}; load average at the start ${loadAverage.toFixed(1)}.
Rates: median (range) of ${sizes.repeat} x ${sizes.measureMs} ms in turn, each in fresh workers after ${sizes.warmUpMs} ms; ratios within a round.
Solving, by the widget's workers: from the puzzle to its counter.`
}
