/**
 * More visitors come than can be served. Each needs three requests, one after the other, so those that are refused with
 * their first cost a third of the answers and none of the store's work: what remains for the others, arithmetic says.
 */

import { childPids } from '../../../bench/http/processes.ts'
import { SETTINGS } from '../../../src/settings.ts'
import { lifetimesOf } from '../../support/lifetimes.ts'
import { freePort } from '../../support/ports.ts'
import { STORE_KINDS, type StoreKind, type TestService } from '../../support/service.ts'
import { STEADY_LOAD_SETTINGS, storeEpochOf } from '../../support/steady-load.ts'
import { EASY } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import type { VisitorsResult, VisitorsSpec } from '../visitors.ts'
import { VisitorsProcess } from '../visitors-process.ts'

const TIMES = [1, 1.5, 2, 3]
/** Where others use the machine, its capacity is not what it was a moment ago. */
const FLOODS = [3, 6, 12]
/** A closed loop that keeps one worker busy, and no queue worth the name. */
const CLOSED_CONNECTIONS = 32
/** The worst that may wait at once. */
const OPEN_CONNECTIONS = 512
const UNLOADED_SHARE = 0.3
const SHED_MS_MAX = 10
/** Of a core: a worker that has more than this to do has too much; a generator, and it is the limit. */
const BUSY = 0.95
const GENERATOR_BUSY = 0.9
const RECOVERY_TRIES = 10
/** Of what it can serve, in the flood at three times that. */
const CAME_MIN = 2.7

export const overload: TortureCase = {
  number: 9,
  name: 'overload',
  aim: `at three times capacity: admitted p99 at most twice the unloaded one, the rest refused with 503 and Retry-After in under ${SHED_MS_MAX} ms, goodput at least 90 % of peak`,
  fullSize:
    'visitors (challenge, solution, token) at 0.3 to 3 times what one worker serves, 10 s each, both stores',
  async run(run) {
    for (const kind of STORE_KINDS) await onStore(run, kind)
  },
}

interface Stage {
  readonly run: Run
  readonly kind: StoreKind
  readonly service: TestService
  readonly visitors: VisitorsProcess
  readonly spec: VisitorsSpec
  readonly pids: readonly number[]
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const adminPort = await freePort()
  const service = await run.service(kind, {
    ...STEADY_LOAD_SETTINGS,
    POWGATE_WORKERS: '1',
    POWGATE_OVERLOAD_MS: SETTINGS.POWGATE_OVERLOAD_MS.fallback,
    POWGATE_ADMIN_PORT: String(adminPort),
    // A busy machine is another matter.
    POWGATE_STORE_DEADLINE_MS: '5000',
  })
  const site = await service.createSite({ difficulty: EASY })
  const storeEpoch = await storeEpochOf(service.url, site)
  const visitors = new VisitorsProcess()
  run.defer(() => visitors.stop())
  const measureMs = run.seconds(10, 0.06) * 1000
  const pids = childPids(service.pid)
  const spec = {
    port: service.port,
    site,
    storeEpoch,
    lifetimes: lifetimesOf(service.env),
    connections: OPEN_CONNECTIONS,
    visitorsPerSecond: Number.POSITIVE_INFINITY,
    warmUpMs: Math.min(2000, measureMs),
    measureMs,
    pids,
  }
  const stage = { run, kind, service, visitors, spec, pids }
  const unready = watchReadiness(adminPort)
  run.defer(() => unready.stop())
  const capacity = await capacityOf(stage)
  const unloaded = await visitors.run({ ...spec, visitorsPerSecond: UNLOADED_SHARE * capacity.perSecond })
  told(stage, `${UNLOADED_SHARE}x`, unloaded, capacity)
  let flood: VisitorsResult | undefined
  let peak = capacity.perSecond
  for (const times of run.isFull ? TIMES : FLOODS) {
    flood = await visitors.run({ ...spec, visitorsPerSecond: times * capacity.perSecond })
    told(stage, `${times}x`, flood, capacity)
    peak = Math.max(peak, flood.served / flood.seconds)
    if (!run.isFull && flood.shed.count > 0) break
  }
  if (flood!.shed.count > 0) tellArithmetic(stage, flood!, capacity)
  judge(stage, flood!, { peak, unloaded, capacity })
  await recovers(stage, capacity)
  const unreadyCount = unready.stop()
  run.check(unreadyCount === 0, `${kind}: it said that it was not ready ${unreadyCount} times`)
  run.check(
    pids.join() === childPids(service.pid).join(),
    `${kind}: a worker was replaced while there was too much to do`,
  )
  visitors.stop()
  await service.stop()
}

interface Capacity {
  /** Visitors. */
  readonly perSecond: number
  /** CPU time of the worker for each of them. */
  readonly microseconds: number
}

async function capacityOf({ run, kind, visitors, spec }: Stage): Promise<Capacity> {
  // The first time warms it up.
  const closed = { ...spec, connections: CLOSED_CONNECTIONS, warmUpMs: 0 }
  await visitors.run(closed)
  const result = await visitors.run(closed)
  const perSecond = result.served / result.seconds
  const microseconds = (result.busy * result.seconds * 1e6) / result.served
  run.figure(
    `${kind}: capacity`,
    `${perSecond.toFixed(0)} visitors/s, ${microseconds.toFixed(0)} us of the worker each`,
  )
  return { perSecond, microseconds }
}

/** What a refusal costs against a visitor who is served, and what that leaves for those: see README. */
function tellArithmetic(
  { run, kind }: Stage,
  { busy, seconds, served, shed, came }: VisitorsResult,
  capacity: Capacity,
) {
  const refusal = (busy * seconds * 1e6 - served * capacity.microseconds) / shed.count
  const share = refusal / capacity.microseconds
  const times = came / seconds / capacity.perSecond
  const most = Math.max(0, (1 - times * share) / (1 - share))
  run.figure(
    `${kind}: a refusal`,
    `${refusal.toFixed(1)} us of the worker, ${percent(share)} of a visitor: at ${times.toFixed(1)}x that leaves ${percent(most)} of a core for goodput; 90 % at 3x takes 4.8 % or less`,
  )
}

function judge(
  { run, kind }: Stage,
  result: VisitorsResult,
  { peak, unloaded, capacity }: { peak: number; unloaded: VisitorsResult; capacity: Capacity },
): void {
  run.size(`${result.came.toLocaleString('en-US')} visitors, too many, on ${kind}`)
  // On a machine that others use, the worker may have had less to do than it could, or the generator no time to ask for more.
  const isTooMuch = result.busy > BUSY && result.ownBusy < GENERATOR_BUSY
  run.check(result.shed.count > 0 || !(run.isFull || isTooMuch), `${kind}: nothing was refused`)
  run.check(result.served > 0, `${kind}: nobody was served`)
  const times = result.came / result.seconds / capacity.perSecond
  run.check(
    times >= CAME_MIN || !run.isFull,
    `${kind}: only ${times.toFixed(1)} times as many came as it can serve`,
  )
  if (!isTooMuch) {
    run.figure(`${kind}: not more than it could do, so that nothing is judged but answers`, percent(times))
    run.check(!run.isFull, `${kind}: the worker had less to do than it could, or the generator more`)
    return
  }
  run.checkTime(
    `${kind}: admitted p99 at 3x`,
    result.admitted.p99Ms,
    Math.ceil(20 * unloaded.admitted.p99Ms) / 10,
  )
  run.checkTime(`${kind}: refused p99 at 3x`, result.shed.p99Ms, SHED_MS_MAX)
  const goodput = result.served / result.seconds / peak
  run.figure(
    `${kind}: goodput at 3x`,
    `${percent(goodput)} of the most that was served at any load (aim: at least 90 %)`,
  )
  if (run.isFull) run.check(goodput >= 0.9, `${kind}: goodput ${percent(goodput)}, less than 90 %`)
}

/** Once there are fewer again, nobody is refused. On a machine that others use, that may take a few tries. */
async function recovers({ run, kind, visitors, spec }: Stage, capacity: Capacity): Promise<void> {
  const few = {
    ...spec,
    visitorsPerSecond: UNLOADED_SHARE * capacity.perSecond,
    measureMs: 500,
    warmUpMs: 500,
  }
  for (let count = 1; ; count++) {
    const { shed, bad, served } = await visitors.run(few)
    if (shed.count === 0 && bad === 0 && served > 0) {
      run.figure(`${kind}: nobody is refused any more after`, `${count / 2} s`)
      run.check(count === 1 || !run.isFull, `${kind}: half a second after the overload some were refused`)
      return
    }
    if (count < RECOVERY_TRIES) continue
    run.check(false, `${kind}: ${shed.count} refused, ${served} served, ${bad} bad at a third of the load`)
    return
  }
}

function told({ run, kind }: Stage, load: string, result: VisitorsResult, capacity: Capacity): void {
  const { served, seconds, came, admitted, shed, shedOf, ownBusy, ownLateP99Ms, bad, badAnswers } = result
  run.check(bad === 0, `${kind}, ${load}: ${bad} other answers, such as ${badAnswers[0]}`)
  const begun = shedOf.verify + shedOf.redeem
  const words = [
    `${percent(came / seconds / capacity.perSecond)} came`,
    `${percent(served / seconds / capacity.perSecond)} served`,
    `admitted p50 ${admitted.p50Ms.toFixed(2)} p99 ${admitted.p99Ms.toFixed(2)} ms`,
    shed.count === 0
      ? 'none refused'
      : `refused p50 ${shed.p50Ms.toFixed(2)} p99 ${shed.p99Ms.toFixed(2)} ms (${begun} of ${shed.count} after their challenge)`,
    `worker busy ${percent(result.busy)}, load ${percent(ownBusy)}, itself late by p99 ${ownLateP99Ms.toFixed(1)} ms`,
  ]
  run.figure(`${kind} at ${load}`, words.join(', '))
}

const percent = (share: number) => `${(share * 100).toFixed(0)} %`

/** Asks ten times a second. */
function watchReadiness(adminPort: number): { stop(): number } {
  let unready = 0
  const timer = setInterval(() => {
    fetch(`http://127.0.0.1:${adminPort}/readyz`).then(
      ({ ok }) => {
        if (!ok) unready++
      },
      () => unready++,
    )
  }, 100)
  return {
    stop() {
      clearInterval(timer)
      return unready
    },
  }
}
