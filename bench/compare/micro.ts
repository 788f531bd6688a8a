/**
 * Measures the same steps with the modules of both trees. Each pair gets fresh processes: how a process was compiled and
 * laid out in memory stays with it, and would look like a difference.
 */

import { fileURLToPath } from 'node:url'
import { type Case, measurePair, type Side, SideError } from './cases.ts'
import type { Options } from './options.ts'
import { STEPS } from './steps.ts'
import { startTreeProcess } from './tree-process.ts'

export interface MicroOrder {
  readonly step: string
  readonly warmUpMs: number
  readonly measureMs: number
}

const CHILD = fileURLToPath(new URL('./micro-child.ts', import.meta.url))
/** Of an HTTP case's time: a step is tens of thousands of times shorter than a run. */
const TIME_SHARE = 0.1
/** Enough for the optimising compiler, whatever is measured after it. */
const WARM_UP_MS = 150

interface StepCase {
  readonly name: string
  readonly pairs: { readonly old: number; readonly new: number }[]
  problem?: { readonly side: Side; readonly text: string }
}

/** The names of all cases that the options ask for. */
export function microNames({ filter }: Options): string[] {
  return Object.keys(STEPS).filter(name => name.includes(filter))
}

export async function compareMicro(
  options: Options,
  roots: Readonly<Record<Side, string>>,
  signal: AbortSignal,
  tell: (line: string) => void,
): Promise<Case[]> {
  const cases = microNames(options).map((name): StepCase => ({ name, pairs: [] }))
  for (let pair = 0; cases.length > 0 && pair < options.repeat; pair++) {
    await measureSteps(cases, pair, options, roots, signal)
    tell(`steps in process: pair ${pair + 1} of ${options.repeat}`)
  }
  return cases.map(({ name, pairs, problem }) => {
    const head = { part: 'micro', name, unit: 'ns' } as const
    if (problem !== undefined) return { ...head, olds: [], news: [], problem }
    return { ...head, olds: pairs.map(pair => pair.old), news: pairs.map(pair => pair.new) }
  })
}

async function measureSteps(
  cases: readonly StepCase[],
  pair: number,
  { seconds }: Options,
  roots: Readonly<Record<Side, string>>,
  signal: AbortSignal,
): Promise<void> {
  const measureMs = seconds * 1000 * TIME_SHARE
  const start = (root: string) => startTreeProcess<MicroOrder, number>(CHILD, root)
  const sides = { old: start(roots.old), new: start(roots.new) }
  const stop = () => Promise.all([sides.old.stop(), sides.new.stop()])
  signal.addEventListener('abort', stop, { once: true })
  try {
    for (const step of cases) {
      signal.throwIfAborted()
      if (step.problem !== undefined) continue
      const order = { step: step.name, warmUpMs: WARM_UP_MS, measureMs }
      const ask = (side: Side) =>
        sides[side].ask(order).catch((error: Error) => {
          throw new SideError(side, error)
        })
      try {
        step.pairs.push(await measurePair(pair, ask))
      } catch (error) {
        if (!(error instanceof SideError)) throw error
        step.problem = { side: error.side, text: error.message }
      }
    }
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', stop)
    await stop()
  }
}
