/**
 * `npm run bench:http -- --puzzles`: what the check of HashWX adds to a /verify. Proofs of HashWX for a whole load would take hours
 * to find, so both puzzles get counters that are wrong: these are checked as right ones are, and the answer is that they failed.
 * The difference is added to a /verify that passes.
 */

import type { PuzzleName } from '../../src/protocol/proof.ts'
import { tell } from '../../test/harness/command-line.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import {
  type Aim,
  aimsText,
  type Cell,
  figure,
  left,
  reportText,
  type Spreads,
  spreadsOf,
  table,
  text,
} from '../report/report.ts'
import { failureOf, figuresOf } from './figures.ts'
import { onService, type Rig } from './target.ts'

const OVER_SHA256_MAX = 1.4
/** As many as come in a second. */
const REQUESTS_PER_SECOND_MAX = 40_000

interface Costs {
  /** CPU us of a /verify that passes, of SHA-256. */
  readonly passing: number
  readonly sha256: number
  readonly hashwx: number
  readonly ratio: number
}

export interface PuzzleCosts {
  readonly store: StoreKind
  readonly figures: Spreads<Costs>
}

/** @throws Error if an answer is not the expected one */
export async function measurePuzzles(rig: Rig): Promise<PuzzleCosts[]> {
  const { store: stores, repeat } = rig.options
  const runs = stores.map(store => ({ store, all: [] as Costs[] }))
  for (let repetition = 0; repetition < repeat; repetition++) {
    for (const { store, all } of runs) {
      const passing = await costOf(rig, store)
      const sha256 = await costOf(rig, store, 'sha256')
      const hashwx = await costOf(rig, store, 'hashwx')
      all.push({ passing, sha256, hashwx, ratio: 1 + (hashwx - sha256) / passing })
      tell(`${store}: ${repetition + 1} of ${repeat}`)
    }
  }
  return runs.map(({ store, all }) => ({ store, figures: spreadsOf(all) }))
}

function costOf(rig: Rig, store: StoreKind, wrong?: PuzzleName): Promise<number> {
  const { seconds, warmup } = rig.options
  const count = Math.ceil((seconds + warmup) * REQUESTS_PER_SECOND_MAX)
  const wanted = {
    endpoint: 'verify',
    store,
    count,
    seedMsMax: 1000 * (seconds + warmup + 1),
    wrong,
  } as const
  return onService(rig, wanted, async target => {
    const result = await target.load(seconds * 1000, warmup * 1000)
    const failure = failureOf(result)
    if (failure !== undefined) throw new Error(failure)
    return figuresOf(result, target.pids.length).cpuUs
  })
}

export function aimsOfPuzzles(costs: readonly PuzzleCosts[]): Aim[] {
  return costs.map(({ store, figures: { ratio } }) => ({
    about: `/verify of HashWX on ${store}: at most ${OVER_SHA256_MAX} times one of SHA-256`,
    isMet: ratio!.median <= OVER_SHA256_MAX,
    found: text(ratio, 2),
  }))
}

export function puzzlesReport(costs: readonly PuzzleCosts[]): string {
  const cells: Cell<PuzzleCosts>[] = [
    [left('store'), ({ store }) => store],
    figure('CPU us, it passes', 'passing', 1),
    figure('wrong, SHA-256', 'sha256', 1),
    figure('wrong, HashWX', 'hashwx', 1),
    figure('HashWX / SHA-256', 'ratio', 2),
  ]
  const legend = `Median (range) of CPU time of all processes of the service. The ratio, taken within a repetition: one that passes and what a wrong
counter of HashWX takes more than one of SHA-256, over one that passes.`
  return reportText([table('A /verify by puzzle', cells, costs), aimsText(aimsOfPuzzles(costs)), legend])
}
