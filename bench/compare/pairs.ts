/**
 * Measures the same cases in both trees, in pairs, until each interval is as narrow as asked for or time is up. Each pair has
 * fresh processes: how a process was compiled and laid out in memory stays with it, and would look like a difference. Within a
 * pair the trees take turns of a few milliseconds (steps) or half a second (requests), so that whatever else the machine does
 * befalls both.
 */

import { integer, number, tell, text, type Values } from '../../test/harness/command-line.ts'
import { hasSignal } from '../../test/harness/processes.ts'
import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { ENDPOINTS, type Endpoint } from '../http/traffic.ts'
import type { StepOf } from '../micro/child.ts'
import type { Processes } from '../micro/processes.ts'
import { HASH, PLAIN, STEPS } from '../micro/steps.ts'
import { choices } from '../report/options.ts'
import { OUTPUT } from '../report/report.ts'
import { measureServices, type Pair, type Roots, type Side, type SideProblem } from './services.ts'
import { pairedRatio, reachOf } from './statistics.ts'

const PARTS = ['http', 'micro'] as const
type Part = (typeof PARTS)[number]

export const OPTIONS = {
  only: choices(PARTS, 'Only these parts'),
  endpoint: choices(ENDPOINTS, 'Only these endpoints'),
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server on the path)'),
  filter: text('TEXT', 'Only cases whose name holds it, such as token or Redis.'),
  within: number(2, 0.1, 50, 'Add pairs until the interval reaches so many per cent from its middle at most'),
  pairs: integer(5, 2, 100, 'Pairs of each case at least'),
  minutes: number(10, 0.01, 600, 'No further pair starts after so long, once each case has two'),
  seconds: number(3, 0.1, 60, 'Measured time of a request in a pair; a step takes a tenth of it'),
  warmup: number(3, 0, 60, 'Seconds of load before it'),
  threshold: number(1.05, 1, 10, 'Ratio new/old above which a case is too slow'),
  ...OUTPUT,
}

export type Options = Values<typeof OPTIONS> & {
  /** As it was given: a branch, tag, commit or HEAD~3. */
  readonly revision: string
}

/** What is measured at a time: an endpoint on a store, or a step. Each of its costs is a case of the report, and less is better. */
interface Job {
  readonly part: Part
  /** In the order in which a Pair has their values. */
  readonly costs: readonly { readonly name: string; readonly unit: 'us' | 'ns' | 'bytes' }[]
  /** @param pair its number: which tree goes first alternates */
  readonly measure: (pair: number) => Promise<Pair | SideProblem>
}

interface Tools {
  readonly roots: Roots
  readonly processes: Processes
  /** Where each tree's modules were compiled to. */
  readonly folders: Roots
}

/** @returns the jobs that the options ask for */
export function jobsOf(options: Options, tools: Tools): Job[] {
  const { only, endpoint: endpoints, store: stores, filter = '' } = options
  const loads = endpoints.flatMap(endpoint => stores.map(store => loadJob(endpoint, store, options, tools)))
  // HASH and PLAIN measure node:crypto itself, which no tree changes.
  const treeSteps = STEPS.filter(({ name }) => name !== HASH && name !== PLAIN)
  const steps = treeSteps.map(({ name }) => stepJob(name, options, tools))
  return [...loads, ...steps].filter(({ part, costs }) => {
    return only.includes(part) && costs.some(({ name }) => name.includes(filter))
  })
}

function loadJob(endpoint: Endpoint, store: StoreKind, options: Options, { roots }: Tools): Job {
  const [warmUpMs, measureMs] = [options.warmup * 1000, options.seconds * 1000]
  const name = `/${endpoint} on ${store}`
  const ofRedis = store === 'redis' ? [`${name}, Redis`] : []
  return {
    part: 'http',
    costs: [`${name}, service`, ...ofRedis].map(cost => ({ name: cost, unit: 'us' })),
    measure: pair => measureServices({ endpoint, store, warmUpMs, measureMs }, roots, pair),
  }
}

/** A step is measured for this share of a request's time, because a service takes far longer to start. */
const STEP_SHARE = 0.1

function stepJob(name: string, { seconds }: Options, { processes, folders }: Tools): Job {
  const measure = async (pair: number) => {
    const sides: readonly Side[] = pair % 2 === 0 ? ['old', 'new'] : ['new', 'old']
    const steps = sides.map((side): StepOf => ({ folder: folders[side], name }))
    const values: Partial<Record<Side, number[]>> = {}
    for (const [index, figures] of (await processes.measure(steps, seconds * STEP_SHARE * 1000)).entries()) {
      const side = sides[index]! // figures come in the order of the steps
      if ('problem' in figures) return { side, problem: figures.problem }
      // No garbage counts as one byte, because new/old needs something to divide by.
      values[side] = [figures.cpuNs, Math.max(1, Math.round(figures.garbageBytes))]
    }
    return values as Pair
  }
  const costs = [
    { name, unit: 'ns' as const },
    { name: `${name}, garbage`, unit: 'bytes' as const },
  ]
  return { part: 'micro', costs, measure }
}

/** A job, and what came of it by now. */
export interface Measured {
  readonly job: Job
  readonly pairs: Pair[]
  problem?: SideProblem
}

/** The values of one of the job's costs in all pairs: the nth of `olds` was measured beside the nth of `news`. */
export function seriesOf({ pairs }: Measured, costIndex: number) {
  return { olds: pairs.map(pair => pair.old[costIndex]!), news: pairs.map(pair => pair.new[costIndex]!) }
}

/** With fewer pairs a case has no confidence interval. */
const INTERVAL_PAIRS_MIN = 2

/** Adds pairs to all jobs in rounds. */
export async function measurePairs(all: readonly Measured[], limits: Options): Promise<void> {
  const endMs = performance.now() + limits.minutes * 60_000
  for (let pair = 0; ; pair++) {
    const open = all.filter(one => needsMore(one, limits))
    if (open.length === 0) return
    for (const one of open) {
      if (pair >= INTERVAL_PAIRS_MIN && performance.now() > endMs) return
      const found = await one.job.measure(pair)
      // Ctrl-C has ended the processes too: what they then answer is no result.
      if (hasSignal()) throw new Error('stopped')
      if ('problem' in found) one.problem = found
      else one.pairs.push(found)
      tell(progress(one))
    }
  }
}

/** A job gets no more pairs, however wide the intervals of its costs still are. */
const PAIRS_MAX = 100

function needsMore(one: Measured, { within, pairs: least }: Options): boolean {
  if (one.problem !== undefined || one.pairs.length >= PAIRS_MAX) return false
  if (one.pairs.length < least) return true
  return one.job.costs.some(({ unit }, costIndex) => {
    if (unit === 'bytes') return false // they are counted, not sampled
    const { olds, news } = seriesOf(one, costIndex)
    return reachOf(pairedRatio(olds, news)) > within / 100
  })
}

/** The first cost of the pair that was measured last. */
function progress({ job: { costs }, pairs, problem }: Measured): string {
  const { name, unit } = costs[0]!
  if (problem !== undefined) return `${name}: ${problem.side} failed: ${problem.problem}`
  const latest = pairs.at(-1)!
  return `${name}, pair ${pairs.length}: ${latest.old[0]!.toFixed(2)} -> ${latest.new[0]!.toFixed(2)} ${unit}`
}
