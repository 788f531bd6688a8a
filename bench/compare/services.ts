/**
 * Measures the service of both trees under the same load. Both run at once and are warm and seeded as in bench:http; then the load
 * goes to one and the other in turn, so that only one of them works at a time.
 */

import { leftovers, OrderProcess } from '../../test/harness/processes.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import type { RunResult } from '../http/prebuilt.ts'
import type { Problem } from '../micro/child.ts'
import { THIS_TREE } from '../micro/processes.ts'
import { sumOf } from '../report/report.ts'
import type { Order, StartOrder } from './child.ts'

export type Side = 'old' | 'new'
export type Roots = Readonly<Record<Side, string>>
/** What one measurement of both trees tells: for each tree, a value of each cost of the job (pairs.ts), in their order. */
export type Pair = Readonly<Record<Side, readonly number[]>>
/** Why there is nothing to compare, and on whose side. */
export interface SideProblem extends Problem {
  readonly side: Side
}

const SIDES: readonly Side[] = ['old', 'new']
const TURN_MS = 500
/** Ends with the side that it began with, so that a machine that gets slower all the time favours neither. */
const TURNS: readonly (readonly Side[])[] = [
  ['old', 'new', 'new', 'old'],
  ['new', 'old', 'old', 'new'],
]

function startTree(root: string): OrderProcess<Order> {
  const entry = new URL('./child.ts', import.meta.url)
  return new OrderProcess(entry, [root], { cwd: THIS_TREE, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
}

/** A value of each tree for each cost: CPU us a request of the service, and of Redis if that is the store. */
export async function measureServices(
  { endpoint, store, warmUpMs, measureMs }: Omit<StartOrder, 'type'>,
  roots: Roots,
  pair: number,
): Promise<Pair | SideProblem> {
  const trees = { old: startTree(roots.old), new: startTree(roots.new) }
  const running = { stop: () => Promise.all(SIDES.map(side => trees[side].stop())).then(() => {}) }
  leftovers.add(running)
  const start = { type: 'start', endpoint, store, warmUpMs, measureMs } as const
  let asked: Side = 'old' // if a step throws, this side has the problem
  const ask = <Result>(side: Side, order: Order) => {
    asked = side
    return trees[side].ask<Result>(order)
  }
  try {
    for (const side of SIDES) await ask(side, start)
    const results: Record<Side, RunResult[]> = { old: [], new: [] }
    const rounds = Math.max(1, Math.round(measureMs / TURN_MS / 2)) // each has two turns of each side
    const ms = Math.min(TURN_MS, measureMs / 2)
    for (let round = 0; round < rounds; round++)
      for (const side of TURNS[(pair + round) % 2]!) results[side].push(await ask(side, { type: 'load', ms }))
    return { old: costsOf(results.old, store), new: costsOf(results.new, store) }
  } catch (error) {
    return { side: asked, problem: (error as Error).message }
  } finally {
    leftovers.delete(running)
    await running.stop()
  }
}

/** CPU time over requests, of all turns of a side. Redis, if it is the store, is the last of the processes. */
function costsOf(results: readonly RunResult[], store: StoreKind): number[] {
  const answers = sumOf(results.map(result => result.answers))
  const cpuMs = results[0]!.usages.map((_, index) => sumOf(results.map(({ usages }) => usages[index]!.cpuMs)))
  const redisMs = store === 'redis' ? [cpuMs.pop()!] : []
  return [sumOf(cpuMs), ...redisMs].map(ms => (ms / answers) * 1000)
}
