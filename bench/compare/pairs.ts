/**
 * Measures the same jobs in both trees, in pairs. Each pair gets fresh processes: how a process was compiled and laid out in
 * memory stays with it, and would look like a difference.
 */

import { choices, integer, number, text, UsageError, type Values } from '../../test/harness/command-line.ts'
import type { LoadResult } from '../../test/harness/load/loops.ts'
import { ENDPOINTS } from '../../test/harness/load/traffic.ts'
import { OrderProcess } from '../../test/harness/processes.ts'
import { STORE_KINDS } from '../../test/harness/service.ts'
import { OUTPUT } from '../report/publish.ts'
import type { Order } from './child.ts'
import { STEPS } from './steps.ts'
import { THIS_TREE } from './tree.ts'

const PARTS = ['http', 'micro'] as const
export type Part = (typeof PARTS)[number]

export const OPTIONS = {
  only: choices(PARTS, 'Only these parts'),
  endpoint: choices(ENDPOINTS, 'Only these endpoints'),
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server on the path)'),
  filter: text('TEXT', 'Only cases whose name holds it, such as token or Redis.'),
  repeat: integer(7, 2, 100, 'Pairs of each case'),
  seconds: number(2, 0.1, 60, 'Measured time of an HTTP case; a step in process takes a tenth of it'),
  threshold: number(1.05, 1, 10, 'Ratio new/old above which a case is too slow'),
  ...OUTPUT,
}

export type Options = Values<typeof OPTIONS> & {
  /** As it was given: a branch, tag, commit or HEAD~3. */
  readonly revision: string
}

export type Side = 'old' | 'new'
export type Roots = Readonly<Record<Side, string>>

/** A cost of one thing, measured in pairs; less is better. */
export interface Case {
  readonly part: Part
  readonly name: string
  readonly unit: 'us' | 'ns'
  /** The nth of each were measured beside each other. */
  readonly olds: readonly number[]
  readonly news: readonly number[]
  /** Why there is nothing to compare, and on whose side. */
  readonly problem?: { readonly side: Side; readonly text: string }
}

/** One measurement, which tells one cost or two. */
export interface Job {
  readonly part: Part
  readonly order: Exclude<Order, { type: 'check' }>
  readonly costs: readonly {
    readonly name: string
    readonly of: (answer: LoadResult | number) => number
  }[]
}

const UNITS = { http: 'us', micro: 'ns' } as const
/** Load before what is measured, as a share of it. */
const WARM_UP_SHARE = 0.5
/** Of an HTTP case's time: a step is tens of thousands of times shorter than a run. */
const STEP_SHARE = 0.1
/** Enough for the optimising compiler, whatever is measured after it. */
const STEP_WARM_UP_MS = 150

/** Those that the options ask for. */
export function jobsOf({ only, endpoint: endpoints, store: stores, seconds, filter = '' }: Options): Job[] {
  const measureMs = seconds * 1000
  const loads = endpoints.flatMap(endpoint =>
    stores.map((store): Job => {
      const name = `/${endpoint} on ${store}`
      // Redis, if it is the store, is the last of the processes.
      const own = store === 'redis' ? -1 : undefined
      const service = (answer: LoadResult) => answer.usages.slice(0, own)
      const redis = (answer: LoadResult) => answer.usages.slice(-1)
      const costs = [
        { name: `${name}, service`, of: cpuUs(service) },
        ...(store === 'redis' ? [{ name: `${name}, Redis`, of: cpuUs(redis) }] : []),
      ]
      const times = { warmUpMs: measureMs * WARM_UP_SHARE, measureMs }
      return { part: 'http', order: { type: 'load', endpoint, store, ...times }, costs }
    }),
  )
  const steps = Object.keys(STEPS).map((step): Job => {
    const times = { warmUpMs: STEP_WARM_UP_MS, measureMs: measureMs * STEP_SHARE }
    const costs = [{ name: step, of: (answer: LoadResult | number) => answer as number }]
    return { part: 'micro', order: { type: 'step', step, ...times }, costs }
  })
  return [...loads, ...steps]
    .filter(({ part }) => only.includes(part))
    .map(job => ({ ...job, costs: job.costs.filter(({ name }) => name.includes(filter)) }))
    .filter(({ costs }) => costs.length > 0)
}

function cpuUs(processes: (answer: LoadResult) => LoadResult['usages']) {
  return (answer: LoadResult | number) => {
    const load = answer as LoadResult
    return (processes(load).reduce((sum, { cpuMs }) => sum + cpuMs, 0) / load.answers) * 1000
  }
}

function startProcess(root: string): OrderProcess<Order> {
  const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
  return new OrderProcess(new URL('./child.ts', import.meta.url), [root], {
    cwd: THIS_TREE,
    stdio: [...stdio],
  })
}

/** Throws UsageError if the service of a revision cannot be loaded. */
export async function checkLoadGenerator(root: string, revision: string): Promise<void> {
  const tree = startProcess(root)
  try {
    await tree.ask({ type: 'check' })
  } catch (error) {
    const problem = 'has no load generator to compare with (--only micro does without)'
    throw new UsageError(`${revision} ${problem}: ${(error as Error).message.replaceAll('\n', ' ')}`)
  } finally {
    await tree.stop()
  }
}

interface Measured {
  readonly job: Job
  readonly pairs: { readonly old: LoadResult | number; readonly new: LoadResult | number }[]
  problem?: NonNullable<Case['problem']>
}

/** @param signal ends it; then it rejects with the signal's reason */
export async function compareJobs(
  jobs: readonly Job[],
  roots: Roots,
  repeat: number,
  { signal, tell }: { readonly signal: AbortSignal; readonly tell: (line: string) => void },
): Promise<Case[]> {
  const all = jobs.map((job): Measured => ({ job, pairs: [] }))
  for (let pair = 0; pair < repeat; pair++) {
    const sides = { old: startProcess(roots.old), new: startProcess(roots.new) }
    const stop = () => Promise.all([sides.old.stop(), sides.new.stop()])
    signal.addEventListener('abort', stop, { once: true })
    try {
      for (const one of all) {
        signal.throwIfAborted()
        if (one.problem !== undefined) continue
        await measureJob(one, pair, side => sides[side].ask(one.job.order))
        signal.throwIfAborted()
        tell(`${progress(one)}, pair ${pair + 1} of ${repeat}`)
      }
    } finally {
      signal.removeEventListener('abort', stop)
      await stop()
    }
  }
  return all.flatMap(casesOf)
}

async function measureJob(
  one: Measured,
  pair: number,
  ask: (side: Side) => Promise<LoadResult | number>,
): Promise<void> {
  let asked: Side = 'old'
  try {
    one.pairs.push(
      await measurePair(pair, side => {
        asked = side
        return ask(side)
      }),
    )
  } catch (error) {
    one.problem = { side: asked, text: (error as Error).message }
  }
}

/**
 * Both sides of one pair, moments apart. Which goes first alternates, so that a machine that gets faster or slower
 * all the time favours neither.
 */
export async function measurePair<Value>(
  pair: number,
  measure: (side: Side) => Promise<Value>,
): Promise<{ readonly old: Value; readonly new: Value }> {
  if (pair % 2 === 0) {
    const old = await measure('old')
    return { old, new: await measure('new') }
  }
  const value = await measure('new')
  return { old: await measure('old'), new: value }
}

function progress({ job: { part, costs }, pairs, problem }: Measured): string {
  const [{ name, of }] = costs as [Job['costs'][number]]
  if (problem !== undefined) return `${name}: ${problem.side} failed: ${problem.text}`
  const { old, new: now } = pairs.at(-1)!
  return `${name}: ${of(old).toFixed(2)} -> ${of(now).toFixed(2)} ${UNITS[part]}`
}

function casesOf({ job: { part, costs }, pairs, problem }: Measured): Case[] {
  return costs.map(({ name, of }) => {
    const head = { part, name, unit: UNITS[part] }
    if (problem !== undefined) return { ...head, olds: [], news: [], problem }
    return { ...head, olds: pairs.map(pair => of(pair.old)), news: pairs.map(pair => of(pair.new)) }
  })
}
