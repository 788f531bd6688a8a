/**
 * Visitors who come whether or not the service keeps up. Of fewer than it can serve, none is refused. Of more, as many are
 * served as arithmetic allows.
 *
 * Let `f` be the cost of a refusal divided by the cost of a served visitor. With `x` times as many visitors as can be served,
 * `(1 - x f) / (1 - f)` of one core is left for served visitors.
 */

import { refusalsOf, type VisitorsResult, type VisitorsSpec } from '../../../harness/load/visitors.ts'
import type { RefusalCosts } from './refusals.ts'
import { CAPACITY_CONNECTIONS, checkAnswers, microsecondsOf, type Stage, TARGET_MS } from './stage.ts'

/** Whether visitors share open connections, or each opens one for its three requests. */
export type Form = keyof RefusalCosts
const FORMS: readonly Form[] = ['kept', 'short-lived']

const CALM_TIMES = [0.5, 0.9] as const
const CALM_SECONDS = 60
const FLOOD_TIMES = [1.5, 2, 3]
/** On a machine with other users, capacity changes from moment to moment. */
const FLOOD_TIMES_BOUNDED = [3, 6, 12]
/** Enough connections that waiting requests wait at the service: fewer visitors come in a tenth of a second. */
const CONNECTIONS: Readonly<Record<Form, number>> = { kept: 8000, 'short-lived': 4000 }
/** If the median is longer, a queue is building up. */
const SERVED_WHOLE_MS = 10
const FEW_SHARE = 0.3
const GOODPUT_MIN = 0.95
const P99_TARGETS = 3
const CALM_AFTER_MS = 1000
/** Shares of a core: a busier worker has too much to do; a busier load generator is the limit itself. */
const BUSY = 0.95
const GENERATOR_BUSY = 0.9
/** Half a second each. After a long overload, the service waits for six quiet seconds. */
const RECOVERY_TRIES = 40
/** A load that a slow machine serves without a queue. */
const CALM_SHARE = 0.05

interface Capacity {
  readonly form: Form
  /** Visitors per second. */
  readonly perSecond: number
  /** CPU time of the worker for each visitor. */
  readonly microseconds: number
}

/** Once for all repetitions of a full run. It fills the store with the data of a minute's visitors. */
export async function calmLoops(stage: Stage): Promise<void> {
  const closed = await capacityOf(stage, 'kept')
  await calmLoop(stage, closed, CALM_TIMES[0])
  await calmLoop(stage, await openCapacityOf(stage, closed), CALM_TIMES[1])
}

/** One repetition of a full run; `judgeOpenLoops` judges all of them together. */
export async function openLoops(stage: Stage, refusalCosts: RefusalCosts): Promise<void> {
  for (const form of FORMS) {
    const closed = await capacityOf(stage, form)
    const capacity = form === 'kept' ? await openCapacityOf(stage, closed) : closed
    for (const times of FLOOD_TIMES)
      await floodLoop(stage, { capacity, times, refusalUs: refusalCosts[form] })
    if (form === 'kept') await dropToFew(stage, capacity)
  }
}

/** Judges no times: some visitors are served, and after the flood nobody is refused. */
export async function boundedOpenLoops(stage: Stage, refusalCosts: RefusalCosts): Promise<void> {
  const { run } = stage
  const capacity = await capacityOf(stage, 'kept')
  let isIgnored = false
  for (const times of FLOOD_TIMES_BOUNDED) {
    const flood = await floodLoop(stage, { capacity, times, refusalUs: refusalCosts.kept })
    const waitedMs = flood.admitted.p50Ms - flood.ownLateP50Ms
    const isTooMuch = flood.busy > BUSY && flood.ownBusy < GENERATOR_BUSY && waitedMs > 2 * TARGET_MS
    run.check(flood.served > 0, `${times}x: nobody was served`)
    // A slow machine may stay above the short target for so long that solutions are refused too.
    if (begunOf(flood) > 0) run.figure(`${times}x: refused after their challenge`, begunOf(flood))
    if (refusalsOf(flood) > 0) return await soonCalm(stage, capacity)
    isIgnored ||= isTooMuch
  }
  run.check(!isIgnored, 'nothing was refused')
  run.figure('judged of the flood', 'answers only: it was not more than the worker could do')
}

/** Forms of visitors that were measured before; the first measurement is a warm-up. */
const warmed = new WeakMap<Stage, Set<Form>>()

async function capacityOf(stage: Stage, form: Form): Promise<Capacity> {
  const { run, rows, load, base } = stage
  const spec = {
    ...base,
    isShortLived: form === 'short-lived',
    connections: CAPACITY_CONNECTIONS,
    visitorsPerSecond: Number.POSITIVE_INFINITY,
    warmUpMs: run.count(500, 100),
    measureMs: run.count(3000, 500),
  }
  const forms = warmed.get(stage) ?? new Set()
  warmed.set(stage, forms)
  if (!forms.has(form)) await load.visit(spec)
  forms.add(form)
  const result = await load.visit(spec)
  const name = `capacity, ${form}`
  checkAnswers(run, name, result)
  const perSecond = result.served / result.seconds
  const microseconds = microsecondsOf(result, result.served)
  rows.add(name, {
    'visitors/s': perSecond,
    'us of a visitor': microseconds,
    refused: refusalsOf(result),
    'worker busy': result.busy,
    'load busy': result.ownBusy,
  })
  run.check(refusalsOf(result) === 0 || !run.isFull, `${name}: ${refusalsOf(result)} were refused`)
  run.progress(`${name}: ${perSecond.toFixed(0)} visitors/s, ${microseconds.toFixed(0)} us each`)
  return { form, perSecond, microseconds }
}

/**
 * The most visitors by the clock that are served without a queue, over as many connections as in a flood. Each answer may
 * have to wake the load's process, which takes the worker a few microseconds. A connection leaves the processor's cache
 * before it is used again.
 */
async function openCapacityOf(stage: Stage, closed: Capacity): Promise<Capacity> {
  const { run, rows, load } = stage
  const name = `capacity, ${closed.form}, open loop`
  for (let times = 1; times > 0.5; times -= 0.05) {
    const spec = { ...specOf(stage, closed, times), warmUpMs: 500, measureMs: run.count(3000, 500) }
    const result = await load.visit(spec)
    checkAnswers(run, name, result)
    if (refusalsOf(result) > 0 || result.admitted.p50Ms > SERVED_WHOLE_MS) continue
    const perSecond = result.served / result.seconds
    const microseconds = microsecondsOf(result, result.served)
    rows.add(name, { 'visitors/s': perSecond, 'of a closed loop': times, 'us of a visitor': microseconds })
    run.progress(`${name}: ${perSecond.toFixed(0)} visitors/s, ${microseconds.toFixed(0)} us each`)
    return { form: closed.form, perSecond, microseconds }
  }
  throw new Error(`${name}: not even half of a closed loop's visitors are served`)
}

/** The load for a multiple of the capacity. */
function specOf(
  { base }: Stage,
  { form, perSecond }: Capacity,
  times: number,
): Omit<VisitorsSpec, 'measureMs'> {
  const visitorsPerSecond = times * perSecond
  return {
    ...base,
    isShortLived: form === 'short-lived',
    visitorsPerSecond,
    // Few enough that each is used every second, so that none is closed for being idle.
    connections: Math.min(CONNECTIONS[form], Math.max(CAPACITY_CONNECTIONS, Math.ceil(visitorsPerSecond))),
    warmUpMs: 0,
  }
}

async function calmLoop(stage: Stage, capacity: Capacity, times: number): Promise<void> {
  const { run, rows, load } = stage
  const measureMs = run.seconds(CALM_SECONDS) * 1000
  const result = await load.visit({ ...specOf(stage, capacity, times), measureMs })
  const name = `${times}x, ${capacity.form}`
  checkAnswers(run, name, result)
  const refused = refusalsOf(result)
  rows.add(name, { ...loadColumns(result, capacity), ...latencyColumns(result), refused })
  run.progress(`${name}: ${refused} refused, p99 ${result.admitted.p99Ms.toFixed(1)} ms`)
  run.check(refused === 0, `${name}: ${refused} were refused`)
  run.check(result.served > 0, `${name}: nobody was served`)
}

interface Flood {
  readonly capacity: Capacity
  readonly times: number
  readonly refusalUs: number
}

const floodName = (form: Form, times: number) => `${times}x, ${form}`

async function floodLoop(stage: Stage, { capacity, times, refusalUs }: Flood): Promise<VisitorsResult> {
  const { run, rows, load } = stage
  const warmUpMs = run.count(2000, 300)
  const measureMs = run.count(8000, 1000)
  const result = await load.visit({ ...specOf(stage, capacity, times), warmUpMs, measureMs })
  const { came, served, seconds, shed, connecting } = result
  const name = floodName(capacity.form, times)
  checkAnswers(run, name, result)
  run.size(`${came.toLocaleString('en-US')} visitors, ${name}`)
  const reached = came / seconds / capacity.perSecond
  const f = refusalUs / capacity.microseconds
  const possible = reached <= 1 ? reached : Math.max(0, (1 - reached * f) / (1 - f))
  const goodput = served / seconds / capacity.perSecond
  rows.add(name, {
    ...loadColumns(result, capacity),
    'possible x': possible,
    'of possible': goodput / possible,
    f,
    'us of a refusal here': refusalUsOf(result, capacity),
    ...latencyColumns(result),
    refused: shed.count,
    'refused p50 ms': shed.p50Ms,
    'refused p99 ms': shed.p99Ms,
    'refused after challenge': begunOf(result),
    ...(capacity.form === 'short-lived' && {
      'connecting p50 ms': connecting.p50Ms,
      'connecting p99 ms': connecting.p99Ms,
    }),
  })
  run.progress(
    `${name}: ${reached.toFixed(2)}x came, ${goodput.toFixed(2)} of ${possible.toFixed(2)} served, ${shed.count} refused`,
  )
  return result
}

/** The worker's CPU time for each refusal, without the time for served visitors; 0 without refusals. */
const refusalUsOf = ({ busy, seconds, served, shed }: VisitorsResult, { microseconds }: Capacity) =>
  shed.count === 0 ? 0 : (busy * seconds * 1e6 - microseconds * served) / shed.count

/** Refused visitors who had a challenge already. */
const begunOf = ({ shedOf }: VisitorsResult) => shedOf.verify + shedOf.redeem

const loadColumns = ({ came, served, seconds, busy, ownBusy }: VisitorsResult, { perSecond }: Capacity) => ({
  'came x': came / seconds / perSecond,
  'served x': served / seconds / perSecond,
  'worker busy': busy,
  'load busy': ownBusy,
})

/** Latencies of admitted requests, without the delay of the load itself, and that delay. */
const latencyColumns = ({ admitted, ownLateP50Ms, ownLateP99Ms }: VisitorsResult) => ({
  'admitted p50 ms': Math.max(0, admitted.p50Ms - ownLateP50Ms),
  'admitted p99 ms': Math.max(0, admitted.p99Ms - ownLateP99Ms),
  'raw p50 ms': admitted.p50Ms,
  'raw p99 ms': admitted.p99Ms,
  'own p50 ms': ownLateP50Ms,
  'own p99 ms': ownLateP99Ms,
})

const DROP = `from 3x down to ${FEW_SHARE}x`

async function dropToFew(stage: Stage, capacity: Capacity): Promise<void> {
  const { run, rows, load } = stage
  const after = { visitorsPerSecond: FEW_SHARE * capacity.perSecond, ms: 3000 }
  const spec = { ...specOf(stage, capacity, 3), warmUpMs: 1000, measureMs: 3000, after }
  const result = await load.visit(spec)
  checkAnswers(run, DROP, result)
  rows.add(DROP, {
    'last refusal after ms': result.lastShedMs,
    'refused before': result.shed.count,
  })
  run.progress(`${DROP}: the last refusal after ${result.lastShedMs.toFixed(0)} ms`)
}

/** After the flood, nobody is refused any more. */
async function soonCalm(stage: Stage, capacity: Capacity): Promise<void> {
  const { run, load } = stage
  const few = { ...specOf(stage, capacity, CALM_SHARE), measureMs: 500 }
  for (let count = 1; count <= RECOVERY_TRIES; count++) {
    const result = await load.visit(few)
    checkAnswers(run, 'after the flood', result)
    if (refusalsOf(result) > 0 || result.served === 0) continue
    run.figure('nobody is refused any more after', `${count / 2} s`)
    return
  }
  run.check(false, `some are still refused at ${CALM_SHARE} times capacity`)
}

/** Judges a full run by the medians of all its repetitions. */
export function judgeOpenLoops(stage: Stage): void {
  const { run, rows } = stage
  for (const form of FORMS) for (const times of FLOOD_TIMES) judgeFlood(stage, floodName(form, times), times)
  const lastMs = rows.median(DROP, 'last refusal after ms')
  const text = `${DROP}: the last refusal came after ${lastMs.toFixed(0)} ms`
  run.check(lastMs <= CALM_AFTER_MS, text)
  run.check(rows.median(DROP, 'refused before') > 0, `${DROP}: nothing was refused`)
}

function judgeFlood({ run, rows }: Stage, name: string, times: number): void {
  const of = (column: string) => rows.median(name, column)
  const reached = of('came x')
  if (of('load busy') > GENERATOR_BUSY && reached < times)
    run.figure(
      `${name}: more than the generator can make`,
      `it made ${reached.toFixed(2)}x, and is judged by that`,
    )
  const share = of('of possible')
  run.check(
    share >= GOODPUT_MIN,
    `${name}: goodput ${share.toFixed(3)} of what is possible at ${reached.toFixed(2)}x`,
  )
  const p50Ms = of('admitted p50 ms')
  run.check(p50Ms <= TARGET_MS, `${name}: admitted p50 ${p50Ms.toFixed(1)} ms, more than ${TARGET_MS}`)
  const p99Ms = of('admitted p99 ms')
  const maxMs = P99_TARGETS * TARGET_MS
  run.check(p99Ms <= maxMs, `${name}: admitted p99 ${p99Ms.toFixed(1)} ms, more than ${maxMs}`)
  const begun = rows.max(name, 'refused after challenge')
  run.check(begun === 0, `${name}: up to ${begun} visitors were refused after their challenge`)
}
