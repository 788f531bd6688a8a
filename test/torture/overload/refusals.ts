/** The cost of a refusal, compared with the cheapest possible HTTP answer, and for each form of visitors. */

import { LoadProcess } from '../../harness/load/load-process.ts'
import { spreadOf } from '../../harness/measure.ts'
import type { ChildServer } from '../../harness/processes.ts'
import { lifetimesOf } from '../../harness/service.ts'
import type { Run } from '../run.ts'
import type { VisitorsSpec } from '../visitors.ts'
import { VisitorsProcess } from '../visitors-process.ts'
import { challengeAnswer, startBareOf, startRefusing } from './child-server.ts'
import { spreadText } from './rows.ts'
import { microsecondsOf } from './stage.ts'

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
  const refusing = await startRefusing()
  run.defer(() => refusing.stop())
  await againstBare(run, refusing)
  const visitors = new VisitorsProcess()
  run.defer(() => visitors.stop())
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
    const result = await visitors.run({ ...spec, ...more })
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
  visitors.stop()
  refusing.stop()
  return costs
}

/** The same closed loop on both servers, in turns, because the speed of a machine with other users changes. */
async function againstBare(run: Run, refusing: ChildServer): Promise<void> {
  const { length } = await challengeAnswer(refusing.port, SITE_KEY)
  const bare = await startBareOf(length)
  run.defer(() => bare.stop())
  const load = new LoadProcess()
  run.defer(() => load.stop())
  const target = { secret: '', siteKey: SITE_KEY, apiKeys: [''], storeEpoch: 0 }
  await load.build({ endpoint: 'challenge', count: REQUESTS, target, isForwarded: true })
  const costOf = async ({ port, pid }: ChildServer) => {
    const { answers, usages } = await load.run({
      port,
      connections: CONNECTIONS,
      warmUpMs: run.count(500, 100),
      measureMs: run.count(1500, 200),
      recycles: true,
      marker: '',
      pids: [pid],
    })
    return (usages[0]!.cpuMs / answers) * 1000
  }
  const refusals: number[] = []
  const bares: number[] = []
  for (let pair = 0; pair < run.count(PAIRS, 1); pair++) {
    refusals.push(await costOf(refusing))
    bares.push(await costOf(bare))
  }
  const ratios = refusals.map((cost, index) => cost / bares[index]!)
  const { median } = spreadOf(ratios)
  run.figure(
    `a refusal of ${length} bytes`,
    `CPU us ${spreadText(refusals)} | bare uWebSockets.js us ${spreadText(bares)} | ratio ${spreadText(ratios)} (aim: at most ${TIMES_BARE_MAX})`,
  )
  const isCheap = median <= TIMES_BARE_MAX
  run.check(isCheap || !run.isFull, `a refusal costs ${median.toFixed(2)} times a bare answer`)
  bare.stop()
  load.stop()
}
