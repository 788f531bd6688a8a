/**
 * More visitors than can be served. What counts is how long requests wait. While they wait for less than POWGATE_OVERLOAD_MS,
 * none is refused, however many clients there are. Beyond it new visitors are refused, and cheaply.
 */

import { STORE_KINDS, type StoreKind } from '../../harness/service.ts'
import { bursts } from '../overload/bursts.ts'
import { closedLoops } from '../overload/closed-loops.ts'
import { gateCost } from '../overload/gate-cost.ts'
import { boundedOpenLoops, calmLoops, judgeOpenLoops, openLoops } from '../overload/open-loops.ts'
import { measureRefusals, type RefusalCosts } from '../overload/refusals.ts'
import { Rows } from '../overload/rows.ts'
import { SHORT_LIVES, startStage } from '../overload/stage.ts'
import type { Run, TortureCase } from '../run.ts'

export const overload: TortureCase = {
  number: 9,
  name: 'overload',
  aim: 'nobody refused in closed loops, bursts and below capacity; above it goodput at least 95 % of what refusals leave, admitted p50 at most POWGATE_OVERLOAD_MS and p99 three times that, nobody refused after a challenge, no refusal 1 s later; a refusal at most 1.3 times a bare answer; a visitor without overload at most 1.02 times one without the gate',
  fullSize:
    'one worker, both stores: closed loops of 64 to 2,000 connections at each endpoint; visitors (challenge, solution, token) at 0.5 and 0.9 times capacity, 60 s each, and at 1.5, 2 and 3 times, 10 s each, over kept and over short-lived connections; bursts of 5,000 requests; --repeat repeats it',
  async run(run) {
    const costs = await measureRefusals(run)
    for (const kind of STORE_KINDS) await onStore(run, kind, costs)
  },
}

/** In small the flood is short, and other tests use the machine: a much shorter wait counts as overload. */
const SHEDS_SOON = { POWGATE_OVERLOAD_MS: '10' }

async function onStore(run: Run, kind: StoreKind, costs: RefusalCosts): Promise<void> {
  const rows = new Rows()
  const closed = await startStage(run, kind, rows)
  for (let count = 0; count < run.repetitions; count++) {
    await closedLoops(closed)
    await bursts(closed)
  }
  await closed.end()
  const open = await startStage(run, kind, rows, run.isFull ? SHORT_LIVES : { ...SHORT_LIVES, ...SHEDS_SOON })
  try {
    if (run.isFull) await calmLoops(open)
    for (let count = 0; count < run.repetitions; count++)
      await (run.isFull ? openLoops(open, costs) : boundedOpenLoops(open, costs))
    if (run.isFull) judgeOpenLoops(open)
  } finally {
    rows.tell(run)
  }
  await open.end()
  await gateCost(open)
}
