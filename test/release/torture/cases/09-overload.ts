/**
 * More visitors than can be served. What counts is how long requests wait. While they wait for less than POWGATE_OVERLOAD_MS,
 * none is refused, however many clients there are. Beyond it new visitors are refused, and cheaply.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { ADDRESSES_MAX, visitorAddress } from '../../../harness/load/addresses.ts'
import { ENDPOINTS, type Endpoint, MARKERS } from '../../../harness/load/traffic.ts'
import { challengeText, OverloadAnswers } from '../../../harness/load/visitor-requests.ts'
import { STORE_KINDS, type StoreKind } from '../../../harness/service.ts'
import { boundedOpenLoops, calmLoops, judgeOpenLoops, openLoops } from '../overload/open-loops.ts'
import { gateCost, measureRefusals, type RefusalCosts } from '../overload/refusals.ts'
import { SHORT_LIVES, type Stage, startStage, TARGET_MS } from '../overload/stage.ts'
import type { Run, TortureCase } from '../run.ts'
import { type Ending, Pool } from '../wire.ts'

const LOOPS = { full: [64, 128, 512, 1000, 2000], bounded: [64, 512] } as const
/** More than a full run sends; in a bounded run, too few requests only make it shorter. */
const LOOP_REQUESTS = { full: 200_000, bounded: 40_000 } as const
const BURST_CONNECTIONS = { full: 5000, bounded: 1000 } as const
const BURSTS = { full: 5, bounded: 2 } as const
const BURST_MS_MAX = 20_000
const CONNECTING_MAX = 200
const QUIET_MS = { full: 1000, bounded: 250 } as const

export const overload: TortureCase = {
  number: 9,
  name: 'overload',
  aim: 'nobody refused in closed loops, bursts and below capacity; above it goodput at least 95 % of what refusals leave, admitted p50 at most POWGATE_OVERLOAD_MS and p99 three times that, nobody refused after a challenge, no refusal 1 s later; a refusal at most 1.3 times a bare answer; a visitor without overload at most 1.02 times one without the gate',
  fullSize:
    'one worker, both stores: closed loops of 64 to 2,000 connections at each endpoint; visitors (challenge, solution, token) at 0.5 and 0.9 times capacity, 60 s each, and at 1.5, 2 and 3 times, 10 s each, over kept and over short-lived connections; bursts of 5,000 requests; --repeat repeats it',
  async run(run) {
    const costs = await measureRefusals(run)
    for (const kind of STORE_KINDS) await onStore(run.part(kind), kind, costs)
  },
}

/** In small the flood is short, and other tests use the machine: a much shorter wait counts as overload. */
const SHEDS_SOON = { POWGATE_OVERLOAD_MS: '10' }

async function onStore(run: Run, kind: StoreKind, costs: RefusalCosts): Promise<void> {
  const closed = await startStage(run, kind)
  for (let count = 0; count < run.repetitions; count++) {
    for (const endpoint of ENDPOINTS)
      for (const connections of run.isFull ? LOOPS.full : LOOPS.bounded)
        await closedLoop(closed, endpoint, connections)
    await bursts(closed)
  }
  await closed.end()
  const open = await startStage(run, kind, run.isFull ? SHORT_LIVES : { ...SHORT_LIVES, ...SHEDS_SOON })
  if (run.isFull) await calmLoops(open)
  for (let count = 0; count < run.repetitions; count++)
    await (run.isFull ? openLoops(open, costs) : boundedOpenLoops(open, costs))
  if (run.isFull) judgeOpenLoops(open)
  await open.end()
  await gateCost(run, kind)
}

/** Continues over all runs and bursts, so that their requests come from different addresses. */
let nextIndex = 0

/** Clients that send the next request after each answer: however many there are, none is refused. */
async function closedLoop(stage: Stage, endpoint: Endpoint, connections: number): Promise<void> {
  const { run, rows, load, target, base } = stage
  const count = run.count(LOOP_REQUESTS.full, LOOP_REQUESTS.bounded)
  if (nextIndex + count > ADDRESSES_MAX) nextIndex = 0
  await load.build({ endpoint, count, firstIndex: nextIndex, target, isForwarded: true })
  nextIndex += count
  const { port, pids } = base
  const result = await load.run({
    port,
    connections,
    warmUpMs: run.count(1000, 250),
    measureMs: run.count(2000, 350),
    recycles: false,
    marker: MARKERS[endpoint],
    pids,
  })
  const { answers, measuredMs, latencyP50Ms, latencyP99Ms, badAnswers, badAnswer, usages } = result
  const name = `closed loop, /${endpoint}, ${connections} connections`
  rows.add(name, {
    'requests/s': (answers / measuredMs) * 1000,
    'p50 ms': latencyP50Ms,
    'p99 ms': latencyP99Ms,
    refused: badAnswers,
    'worker busy': usages[0]!.cpuMs / measuredMs,
    'load busy': result.generatorBusy,
  })
  run.progress(`${name}: ${badAnswers} of ${answers} refused, p50 ${latencyP50Ms.toFixed(1)} ms`)
  // On a very slow machine, most requests wait longer than the setting allows, and refusals are right.
  const isRight = !run.isFull && latencyP50Ms > TARGET_MS && badAnswer.startsWith('HTTP/1.1 503 ')
  run.check(
    badAnswers === 0 || isRight,
    `${name}: ${badAnswers} answers were not the expected one, such as ${badAnswer}`,
  )
}

/** Thousands of requests at one moment, each over an open connection, are many, but no overload: none is refused. */
async function bursts({ run, rows, base }: Stage): Promise<void> {
  const connections = run.count(BURST_CONNECTIONS.full, BURST_CONNECTIONS.bounded)
  const pool = new Pool({ port: base.port, connections, timeoutMs: BURST_MS_MAX })
  run.defer(() => pool.close())
  const atOnce = async (count: number) => {
    const requests = Array.from({ length: count }, () =>
      challengeText(base.site.siteKey, visitorAddress(nextIndex++ % ADDRESSES_MAX)),
    )
    const startMs = performance.now()
    const endings = await Promise.all(requests.map(request => pool.call(request)))
    return { endings, ms: performance.now() - startMs }
  }
  // A listener's backlog holds 512 connections.
  for (let open = 0; open < connections; open += CONNECTING_MAX) await atOnce(CONNECTING_MAX)
  const lateness = monitorEventLoopDelay({ resolution: 1 })
  lateness.enable()
  const name = `bursts of ${connections.toLocaleString('en-US')} challenges`
  const all: Ending[] = []
  let longestMs = 0
  for (let count = 0; count < run.count(BURSTS.full, BURSTS.bounded); count++) {
    await sleep(run.count(QUIET_MS.full, QUIET_MS.bounded))
    const { endings, ms } = await atOnce(connections)
    all.push(...endings)
    rows.add(name, { 'last waited ms': ms })
    longestMs = Math.max(longestMs, ms)
  }
  lateness.disable()
  pool.close()
  const overloadAnswers = new OverloadAnswers()
  const isRefusal = (ending: Ending) =>
    typeof ending === 'object' && overloadAnswers.has(`${ending.head}\r\n\r\n${ending.body}`, 'challenge')
  const isChallenge = (ending: Ending) =>
    typeof ending === 'object' && ending.status === 200 && ending.body.includes('"nonce":"')
  const served = all.filter(isChallenge).length
  const refused = all.filter(isRefusal).length
  rows.add(name, { refused, 'load itself late at most ms': Math.max(0, lateness.max / 1e6 - 1) })
  run.progress(`${name}: ${refused} refused, the last waited ${longestMs.toFixed(0)} ms`)
  run.none(
    `${name}: other answers`,
    all.filter(ending => !isChallenge(ending) && !isRefusal(ending)),
  )
  run.check(served > 0, `${name}: nobody was served`)
  // On a slow machine a burst may take so long that it counts as a standing queue.
  const isRight = !run.isFull && longestMs > 5 * TARGET_MS
  run.check(refused === 0 || isRight, `${name}: ${refused} were refused`)
}
