/** Clients that send the next request after each answer: however many there are, none is refused. */

import { SETTINGS } from '../../../src/config/settings.ts'
import { ENDPOINTS, type Endpoint, MARKERS } from '../../harness/load/traffic.ts'
import type { Stage } from './stage.ts'

export const TARGET_MS = Number(SETTINGS.POWGATE_OVERLOAD_MS.fallback)

const CONNECTIONS = [64, 128, 512, 1000, 2000]
const CONNECTIONS_BOUNDED = [64, 512]
/** More than a full run sends; in a bounded run, too few requests only make it shorter. */
const REQUESTS = 200_000
const REQUESTS_BOUNDED = 40_000
const ADDRESSES = 2 ** 24

/** Continues over all runs, so that their requests come from different addresses. */
let nextIndex = 0

export async function closedLoops(stage: Stage): Promise<void> {
  const counts = stage.run.isFull ? CONNECTIONS : CONNECTIONS_BOUNDED
  for (const endpoint of ENDPOINTS)
    for (const connections of counts) await closedLoop(stage, endpoint, connections)
}

async function closedLoop(stage: Stage, endpoint: Endpoint, connections: number): Promise<void> {
  const { run, kind, rows, load, target, base } = stage
  const count = run.count(REQUESTS, REQUESTS_BOUNDED)
  if (nextIndex + count > ADDRESSES) nextIndex = 0
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
  const name = `${kind}: closed loop, /${endpoint}, ${connections} connections`
  rows.add(name, {
    'requests/s': (answers / measuredMs) * 1000,
    'p50 ms': latencyP50Ms,
    'p99 ms': latencyP99Ms,
    refused: badAnswers,
    'worker busy': usages[0]!.cpuMs / measuredMs,
    'load busy': result.generatorBusy,
  })
  run.progress(`${name}: ${badAnswers} of ${answers} refused, p50 ${latencyP50Ms.toFixed(1)} ms`)
  const problem = () => `${name}: ${badAnswers} answers were not the expected one, such as ${badAnswer}`
  // On a very slow machine, most requests wait longer than the setting allows, and refusals are right.
  const isRight = !run.isFull && latencyP50Ms > TARGET_MS && badAnswer.startsWith('HTTP/1.1 503 ')
  run.check(badAnswers === 0 || isRight, problem)
}
