/**
 * The cost of a refusal, for each form of visitors and compared with the cheapest possible HTTP answer; and the cost of overload
 * detection without overload. This file is also the entry of a server that refuses every request for overload.
 */

import { LoadProcess } from '../../../harness/load/load-process.ts'
import type { VisitorsSpec } from '../../../harness/load/visitors.ts'
import { spreadOf } from '../../../harness/measure.ts'
import { ChildServer, startBare } from '../../../harness/processes.ts'
import { startRefusingServer } from '../../../harness/refusing-server.ts'
import { lifetimesOf, type StoreKind } from '../../../harness/service.ts'
import type { Run } from '../run.ts'
import { checkAnswers, microsecondsOf, type Stage, spreadText, startStage } from './stage.ts'

const ROLE = 'refusing'
const TIMES_BARE_MAX = 1.3
const CONNECTIONS = 64
const PAIRS = 7
const REQUESTS = 20_000
const SITE_KEY = `pk_${'0'.repeat(24)}`

/** CPU time of the refusing server for each refusal, in microseconds. */
export interface RefusalCosts {
  readonly kept: number
  /** Includes the opening and closing of its connection. */
  readonly 'short-lived': number
}

export async function measureRefusals(run: Run): Promise<RefusalCosts> {
  const refusing = await ChildServer.start(new URL(import.meta.url).pathname, [ROLE])
  run.defer(() => refusing.stop())
  const load = new LoadProcess()
  run.defer(() => load.stop())
  await againstBare(run, refusing, load)
  const spec = {
    port: refusing.port,
    site: { siteKey: SITE_KEY, apiKey: '' },
    storeEpoch: 0,
    lifetimes: lifetimesOf(),
    connections: CONNECTIONS,
    visitorsPerSecond: Number.POSITIVE_INFINITY,
    warmUpMs: run.count(1500, 200),
    measureMs: run.count(3000, 300),
    pids: [refusing.pid],
  }
  const costOf = async (more: Partial<VisitorsSpec>) => {
    const result = await load.visit({ ...spec, ...more })
    const isRefusing = result.bad === 0 && result.shed.count > 0
    run.check(isRefusing, `the refusing server answered something else, such as ${result.badAnswers[0]}`)
    return microsecondsOf(result, result.shed.count)
  }
  // As many connections as in a flood, where each is used once a second or less.
  const kept = { connections: run.count(8000, 500), visitorsPerSecond: run.count(30_000, 3000) }
  const costs = { kept: await costOf(kept), 'short-lived': await costOf({ isShortLived: true }) }
  run.figure(
    'a refused visitor',
    `kept connections ${costs.kept.toFixed(1)} us | connections of their own ${costs['short-lived'].toFixed(1)} us`,
  )
  load.stop()
  refusing.stop()
  return costs
}

/** The same closed loop on both servers, in turns, because the speed of a machine with other users changes. */
async function againstBare(run: Run, refusing: ChildServer, load: LoadProcess): Promise<void> {
  const target = { secret: '', siteKey: SITE_KEY, apiKeys: [''], storeEpoch: 0 }
  await load.build({ endpoint: 'challenge', count: REQUESTS, target, isForwarded: true })
  const costOf = async ({ port, pid }: ChildServer) => {
    const { answers, answerBytes, usages } = await load.run({
      port,
      connections: CONNECTIONS,
      warmUpMs: run.count(500, 100),
      measureMs: run.count(1500, 200),
      recycles: true,
      marker: '',
      pids: [pid],
    })
    return { us: (usages[0]!.cpuMs / answers) * 1000, answerBytes }
  }
  const { answerBytes } = await costOf(refusing)
  const bare = await startBare(answerBytes)
  run.defer(() => bare.stop())
  const refusals: number[] = []
  const bares: number[] = []
  for (let pair = 0; pair < run.count(PAIRS, 1); pair++) {
    refusals.push((await costOf(refusing)).us)
    const bareCost = await costOf(bare)
    run.check(
      bareCost.answerBytes === answerBytes,
      `the bare server answers with ${bareCost.answerBytes} bytes`,
    )
    bares.push(bareCost.us)
  }
  const ratios = refusals.map((cost, index) => cost / bares[index]!)
  const { median } = spreadOf(ratios)
  run.figure(
    `a refusal of ${answerBytes} bytes`,
    `CPU us ${spreadText(refusals)} | bare uWebSockets.js us ${spreadText(bares)} | ratio ${spreadText(ratios)} (aim: at most ${TIMES_BARE_MAX})`,
  )
  const isCheap = median <= TIMES_BARE_MAX
  run.check(isCheap || !run.isFull, `a refusal costs ${median.toFixed(2)} times a bare answer`)
  bare.stop()
}

const GATE_CONNECTIONS = 32
const GATE_PAIRS = 9
const TIMES_GATED_MAX = 1.02
/** A smaller difference is not taken for one. */
const SHOWN = 0.01

/** Two services side by side, one of them without overload detection. */
export async function gateCost(run: Run, kind: StoreKind): Promise<void> {
  const watched = await startStage(run, kind)
  const unwatched = await startStage(run, kind, { POWGATE_OVERLOAD_MS: '0' })
  const costOf = async ({ load, base }: Stage, measureMs: number) => {
    const result = await load.visit({
      ...base,
      connections: GATE_CONNECTIONS,
      visitorsPerSecond: Number.POSITIVE_INFINITY,
      warmUpMs: run.count(500, 100),
      measureMs,
    })
    checkAnswers(run, 'a closed loop', result)
    return microsecondsOf(result, result.served)
  }
  for (const stage of [watched, unwatched]) await costOf(stage, run.count(3000, 200))
  const us = new Map<Stage, number[]>([watched, unwatched].map(stage => [stage, []]))
  for (let pair = 0; pair < run.count(GATE_PAIRS, 1); pair++)
    for (const stage of pair % 2 === 0 ? [watched, unwatched] : [unwatched, watched]) // in turns
      us.get(stage)!.push(await costOf(stage, run.count(3000, 300)))
  const [withUs, withoutUs] = [us.get(watched)!, us.get(unwatched)!]
  const ratios = withUs.map((cost, pair) => cost / withoutUs[pair]!)
  const { median, min, max } = spreadOf(ratios)
  const isShown = (min > 1 || max < 1) && Math.abs(median - 1) > SHOWN
  const verdict =
    ratios.length === 1 ? 'one pair tells nothing' : isShown ? 'a difference' : 'no difference shown'
  run.figure(
    'CPU of a visitor, with the gate against without it',
    `with us ${spreadText(withUs)} | without us ${spreadText(withoutUs)} | ratio ${spreadText(ratios)} | ${verdict}`,
  )
  run.check(
    median <= TIMES_GATED_MAX || !isShown || !run.isFull,
    `the gate makes a visitor ${median.toFixed(3)} times as dear`,
  )
  await watched.end()
  await unwatched.end()
}

if (process.argv[2] === ROLE && process.send !== undefined) {
  process.on('disconnect', () => process.exit()) // the case has ended
  const { port } = await startRefusingServer(['127.0.0.0/8'])
  process.send(port)
}
