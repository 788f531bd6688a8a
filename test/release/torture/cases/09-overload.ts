/**
 * More visitors than can be served. What counts is how long requests wait. While they wait for less than POWGATE_OVERLOAD_MS,
 * none is refused, however many clients there are. Beyond it new visitors are refused, and as many are served as arithmetic
 * allows: let `f` be the cost of a refusal divided by that of a served visitor. With `x` times as many visitors as can be
 * served, `(1 - x f) / (1 - f)` of one core is left for served visitors.
 */

import { SETTINGS } from '../../../../src/config/settings.ts'
import { CLOSED_LOOP } from '../../../harness/load/load.ts'
import { LoadProcess } from '../../../harness/load/load-process.ts'
import type { VisitorsResult, VisitorsSpec } from '../../../harness/load/visitors.ts'
import { claimsAt, FREE, refusalsOf, VISITED_SETTINGS } from '../../../harness/load/visitors.ts'
import { freePort } from '../../../harness/ports.ts'
import { workerPids } from '../../../harness/processes.ts'
import { lifetimesOf, STORE_KINDS, type StoreKind } from '../../../harness/service.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'

const TARGET_MS = Number(SETTINGS.POWGATE_OVERLOAD_MS.fallback)
const LOOPS = { full: [64, 512, 1000, 2000], bounded: [64, 512] } as const
/** A closed loop that keeps one worker busy, also while it waits for Redis, with hardly any queue. */
const CAPACITY_CONNECTIONS = 128
/** Multiples of the capacity, each for so many seconds of a full run. */
const CALM_TIMES = [0.5, 0.9] as const
const CALM_SECONDS = 60
/** A bounded run shares its machine, where capacity changes from moment to moment: it tries more until something is refused. */
const FLOOD_TIMES = { full: [1.5, 2, 3], bounded: [3, 6, 12] } as const
/** More than visitors come within POWGATE_OVERLOAD_MS, so that requests wait at the service, and not for a free connection. */
const FLOOD_CONNECTIONS = 8000
/** The CPU time of a refusal divided by that of a served visitor (`npm run bench:http`). Too high a figure asks for too few served. */
const REFUSAL_COST = 0.17
const GOODPUT_MIN = 0.95 // of the visitors whom arithmetic allows
const P99_TARGETS = 3 // times TARGET_MS
/** While the median wait of admitted requests is longer than this, a queue is building up. */
const NO_QUEUE_MS_MAX = 10
/** Shares of a core: a busier worker has too much to do; a busier load generator is the limit itself. */
const BUSY = 0.95
const GENERATOR_BUSY = 0.9
/** Half a second each. After a long overload, the service waits for six quiet seconds. */
const RECOVERY_TRIES = 40
const CALM_SHARE = 0.05 // of the capacity: even a slow machine serves it without a queue

export const overload: TortureCase = {
  number: 9,
  name: 'overload',
  aim: 'nobody refused in closed loops and below capacity; above it goodput at least 95 % of what refusals leave, admitted p50 at most POWGATE_OVERLOAD_MS and p99 three times that, nobody refused after a challenge, and soon nobody once it is over',
  fullSize:
    'one worker, both stores: closed loops of 64 to 2,000 connections; visitors (challenge, solution, token) at 0.5 and 0.9 times capacity, 60 s each, and at 1.5, 2 and 3 times, 10 s each',
  async run(run) {
    for (const kind of STORE_KINDS) await onStore(run.part(kind), kind)
  },
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const calm = await startStage(run, kind, {})
  await closedLoops(calm)
  await calm.end()
  // In small the flood is short, and other tests use the machine: a much shorter wait counts as overload.
  const flooded = await startStage(run, kind, run.isFull ? {} : { POWGATE_OVERLOAD_MS: '10' })
  if (run.isFull) await calmLoops(flooded)
  await floods(flooded)
  await flooded.end()
}

type Stage = Awaited<ReturnType<typeof startStage>>

async function startStage(run: Run, kind: StoreKind, env: Readonly<Record<string, string>>) {
  const adminPort = await freePort()
  const service = await run.service(kind, {
    ...VISITED_SETTINGS,
    ...SHEDS_AS_SHIPPED,
    POWGATE_WORKERS: '1',
    POWGATE_ADMIN_PORT: String(adminPort),
    // Visitors' data leave the store after two minutes, so the store has its full size for most of a run.
    POWGATE_CHALLENGE_SECONDS: '30',
    POWGATE_TOKEN_SECONDS: '30',
    // So many visitors leave more than the default bound; a full embedded store refuses.
    POWGATE_STATE_MAX_MB: '4096',
    // The case does not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    ...env,
  })
  const site = await service.createSite({ difficulty: FREE })
  const { storeEpoch } = await claimsAt(service.url, site)
  const load = new LoadProcess()
  run.defer(() => load.stop())
  const pids = workerPids(service.pid)
  const unready: string[] = []
  const look = async () => {
    const { ok, status } = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
    if (!ok) unready.push(`status ${status}`)
  }
  const looking = setInterval(() => look().catch(error => unready.push(String(error.cause ?? error))), 100)
  run.defer(() => clearInterval(looking))
  /** Checks what must hold for the whole time, and stops everything. */
  const end = async () => {
    clearInterval(looking)
    run.none('not ready', unready)
    const isSame = pids.join() === workerPids(service.pid).join()
    run.check(isSame, 'a worker was replaced while there was too much to do')
    load.stop()
    await service.stop()
  }
  /** Settings of the load, without the number of visitors and the duration. */
  const base = { port: service.port, site, storeEpoch, lifetimes: lifetimesOf(service.env), pids }
  return { run, load, base, end }
}

/** @returns what became of the visitors, of whom nobody gets an answer that is neither the wanted one nor a refusal */
async function visited(
  { run, load, base }: Stage,
  name: string,
  spec: Pick<VisitorsSpec, 'connections' | 'visitorsPerSecond' | 'measureMs'> & Partial<VisitorsSpec>,
): Promise<VisitorsResult> {
  const result = await load.visit({ ...base, warmUpMs: 0, ...spec })
  const { bad, badAnswers, came, served, seconds, busy, generatorBusy } = result
  run.check(bad === 0, () => `${name}: ${bad} other answers, such as ${badAnswers[0]}`)
  run.check(served > 0 || !run.isFull, `${name}: nobody was served`)
  const { p50Ms, p99Ms } = waitsOf(result)
  const figures = {
    ...{ 'came/s': came / seconds, 'served/s': served / seconds, refused: refusalsOf(result) },
    ...{ 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'worker busy': busy, 'load busy': generatorBusy },
  }
  const texts = Object.entries(figures).map(([figure, value]) => `${figure} ${Number(value.toPrecision(3))}`)
  run.figure(name, texts.join(' | '))
  return result
}

/** Latencies of admitted requests, less the delay of the load itself: an estimate, for percentiles do not subtract exactly. */
const waitsOf = ({ admitted, ownLateP50Ms, ownLateP99Ms }: VisitorsResult) => ({
  p50Ms: Math.max(0, admitted.p50Ms - ownLateP50Ms),
  p99Ms: Math.max(0, admitted.p99Ms - ownLateP99Ms),
})

/** A new visitor comes when one leaves: however many there are, none is refused. */
async function closedLoops(stage: Stage): Promise<void> {
  const { run } = stage
  for (const connections of run.isFull ? LOOPS.full : LOOPS.bounded) {
    const name = `closed loop of ${connections}`
    const times = { warmUpMs: run.count(1000, 250), measureMs: run.count(5000, 500) }
    const result = await visited(stage, name, { connections, visitorsPerSecond: CLOSED_LOOP, ...times })
    // On a very slow machine, most requests wait longer than the setting allows, and refusals are right.
    const isSlow = !run.isFull && (result.admitted.p50Ms > TARGET_MS || result.served === 0)
    run.check(refusalsOf(result) === 0 || isSlow, `${name}: ${refusalsOf(result)} were refused`)
  }
}

/** Visitors a second in a closed loop, where one comes when another leaves. The first measurement is a warm-up. */
async function closedCapacityOf(stage: Stage): Promise<number> {
  const { run } = stage
  const times = { warmUpMs: run.count(500, 100), measureMs: run.count(3000, 500) }
  const spec = { connections: CAPACITY_CONNECTIONS, visitorsPerSecond: CLOSED_LOOP, ...times }
  await visited(stage, 'warm-up', spec)
  const result = await visited(stage, 'capacity', spec)
  run.check(refusalsOf(result) === 0 || !run.isFull, `capacity: ${refusalsOf(result)} were refused`)
  return result.served / result.seconds
}

/**
 * The most visitors a second in an open loop, where they come at a fixed rate, that are served without a queue, over as many
 * connections as in a flood. A closed loop reaches more, because in an open one each answer may have to wake the load's process,
 * and a connection leaves the processor's cache before it is used again.
 */
async function openCapacityOf(stage: Stage, closed: number): Promise<number> {
  for (let times = 1; times > 0.5; times -= 0.05) {
    const spec = { ...specOf(times * closed), warmUpMs: 500, measureMs: 3000 }
    const result = await visited(stage, `capacity, open loop at ${times.toFixed(2)}`, spec)
    if (refusalsOf(result) === 0 && result.admitted.p50Ms <= NO_QUEUE_MS_MAX)
      return result.served / result.seconds
  }
  throw new Error('not even half of a closed loop’s visitors are served')
}

function specOf(visitorsPerSecond: number) {
  // Few enough that each is used every second, so that none is closed for being idle.
  const used = Math.max(CAPACITY_CONNECTIONS, Math.ceil(visitorsPerSecond))
  return { connections: Math.min(FLOOD_CONNECTIONS, used), visitorsPerSecond }
}

/** They fill the store with the data of a minute's visitors. */
async function calmLoops(stage: Stage): Promise<void> {
  const capacity = await openCapacityOf(stage, await closedCapacityOf(stage))
  for (const times of CALM_TIMES) {
    const name = `${times}x`
    const spec = { ...specOf(times * capacity), measureMs: CALM_SECONDS * 1000 }
    const refused = refusalsOf(await visited(stage, name, spec))
    stage.run.check(refused === 0, `${name}: ${refused} were refused`)
  }
}

/** A full run judges times. In small some visitors are served, some refused, and after the flood nobody is refused. */
async function floods(stage: Stage): Promise<void> {
  const { run } = stage
  const closed = await closedCapacityOf(stage)
  const capacity = run.isFull ? await openCapacityOf(stage, closed) : closed
  let refused = 0
  let served = 0
  let isTooMuch = false
  for (const times of run.isFull ? FLOOD_TIMES.full : FLOOD_TIMES.bounded) {
    if (!run.isFull && refused > 0) break
    const name = `${times}x`
    const durations = { warmUpMs: run.count(2000, 300), measureMs: run.count(8000, 1000) }
    const result = await visited(stage, name, { ...specOf(times * capacity), ...durations })
    run.size(`${result.came.toLocaleString('en-US')} visitors, ${name}`)
    refused += refusalsOf(result)
    served += result.served
    // With such a queue either run's service must have refused; without one, the load itself may have been too slow.
    const isQueue = waitsOf(result).p50Ms > 2 * TARGET_MS
    isTooMuch ||= result.busy > BUSY && result.generatorBusy < GENERATOR_BUSY && isQueue
    if (run.isFull) judgeFlood(run, name, result, capacity)
  }
  run.check(served > 0, 'nobody was served')
  run.check(refused > 0 || !isTooMuch, 'nothing was refused')
  await soonCalm(stage, capacity)
}

function judgeFlood(run: Run, name: string, result: VisitorsResult, capacity: number): void {
  const { came, served, seconds, shedOf } = result
  const reached = came / seconds / capacity
  const possible = reached <= 1 ? reached : Math.max(0, (1 - reached * REFUSAL_COST) / (1 - REFUSAL_COST))
  const share = served / seconds / capacity / possible
  const text = `goodput ${share.toFixed(3)} of what is possible at ${reached.toFixed(2)}x`
  run.check(share >= GOODPUT_MIN, `${name}: ${text}`)
  const { p50Ms, p99Ms } = waitsOf(result)
  run.checkMeasured(`${name}: admitted p50`, p50Ms, TARGET_MS)
  run.checkMeasured(`${name}: admitted p99`, p99Ms, P99_TARGETS * TARGET_MS)
  const begun = shedOf.verify + shedOf.redeem
  run.check(begun === 0, `${name}: ${begun} visitors were refused after their challenge`)
}

async function soonCalm(stage: Stage, capacity: number): Promise<void> {
  const few = { ...specOf(CALM_SHARE * capacity), measureMs: 500 }
  for (let count = 1; count <= RECOVERY_TRIES; count++) {
    const result = await stage.load.visit({ ...stage.base, warmUpMs: 0, ...few })
    if (refusalsOf(result) > 0 || result.served === 0) continue
    stage.run.figure('nobody is refused any more after', `${count / 2} s`)
    return
  }
  stage.run.check(false, `some are still refused at ${CALM_SHARE} times capacity`)
}
