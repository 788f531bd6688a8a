/** Races of redemptions while one Redis server takes over from another, in every way that Sentinels and a Cluster support. */

import { FailoverLoad } from '../failover-load.ts'
import { clusterFailovers, type Failovers, sentinelFailovers } from '../failovers.ts'
import type { Call } from '../history.ts'
import type { Random } from '../random.ts'
import type { Run, TortureCase } from '../run.ts'

const FAILOVERS = 50
const STRICT = 'min-replicas-to-write 1'
/** A worker looks at every shard once a second. Until then it may not know of a failover. */
const LOOK_MS = 2000
const STEADY_MS = 2000

const TOPOLOGIES: Readonly<Record<string, () => Promise<Failovers>>> = {
  Sentinels: sentinelFailovers,
  Cluster: clusterFailovers,
}

export const failover: TortureCase = {
  number: 6,
  name: 'failover',
  aim: 'no token redeemed twice; what is forgotten is refused as invalid, and only after a failover; no worker goes',
  fullSize: `${FAILOVERS} failovers each of Sentinels (1 primary, 2 replicas, 3 Sentinels) and of a Cluster (3 primaries, 3 replicas): asked for, killed, frozen, with hosts that miss it, slots moved, half of them with ${STRICT}; two hosts of two workers`,
  async run(run) {
    const stages = await Promise.all(
      Object.entries(TOPOLOGIES).map(([name, start]) => stageOf(run, name, start, run.random.fork())),
    )
    // A bounded run does both at the same time.
    if (run.isFull) for (const stage of stages) await onStage(run, stage)
    else await Promise.all(stages.map(stage => onStage(run, stage)))
  },
}

interface Cost {
  readonly degradedMs: number
  readonly forgotten: number
  readonly unknown: number
  /** Tokens tried again after the failover: redeemed in the second before it, and in the last second until its end. */
  readonly retriedOfBefore: number
  readonly retriedOfLast: number
}

interface Stage {
  readonly name: string
  readonly servers: Failovers
  readonly load: FailoverLoad
  readonly random: Random
}

async function stageOf(
  run: Run,
  name: string,
  start: () => Promise<Failovers>,
  random: Random,
): Promise<Stage> {
  const servers = await start()
  run.defer(() => servers.stop())
  const load = await FailoverLoad.open(run, name, servers, random.fork())
  return { name, servers, load, random }
}

async function onStage(run: Run, { name, servers, load, random }: Stage): Promise<void> {
  const pids = load.pids.join()
  load.resume()
  await load.untilWell()
  const kinds = Object.keys(servers.kinds)
  const costs = new Map<string, Cost[]>()
  let done = 0
  let strict = 0
  // Every second time, primaries accept no writes that reach no replica.
  const offset = random.below(2)
  // Each kind as often as the others; a bounded run does as many as fit.
  let order: string[] = []
  while (done < FAILOVERS && (done < servers.always || !run.isOver())) {
    if (order.length === 0) order = [...kinds]
    const [kind] = order.splice(done < servers.always ? 0 : random.below(order.length), 1)
    const isStrict = (done + offset) % 2 === 1 && !servers.unheard.has(kind!)
    await servers.requireReplicas(isStrict ? 1 : 0)
    if (isStrict) strict++
    const cost = await failOver(load, servers, kind!, random)
    await staysWell(run, load, servers, `${name}, after ${kind}`)
    const row = isStrict ? `${kind}, ${STRICT}` : kind!
    costs.set(row, [...(costs.get(row) ?? []), cost])
    done++
    run.progress(`${name}: ${done} failovers, ${load.tokenCount} tokens; ${kind}`)
  }
  run.check(load.pids.join() === pids, `${name}: a worker has gone`)
  await load.stop()
  await servers.stop()
  report(run, name, load, costs, `${done} failovers, ${strict} of them with ${STRICT}`)
}

async function failOver(load: FailoverLoad, servers: Failovers, kind: string, random: Random): Promise<Cost> {
  const from = load.history.calls.length
  const forgottenBefore = load.forgotten
  const startedMs = performance.now()
  await servers.kinds[kind]!(load, random)
  const failedOverMs = performance.now()
  await load.untilWell()
  const retriedOfBefore = await load.retryLatest(startedMs)
  const retriedOfLast = await load.retryLatest(failedOverMs)
  const calls = load.history.calls.slice(from)
  const unknown = calls.filter(({ outcome }) => outcome === 'unknown')
  const last = unknown.reduce((latest, { endedMs }) => Math.max(latest, endedMs), 0)
  const first = unknown.reduce((earliest, call) => Math.min(earliest, call.startedMs), last)
  return {
    degradedMs: Math.max(0, last - Math.max(first, startedMs)),
    forgotten: load.forgotten - forgottenBefore,
    unknown: unknown.length,
    retriedOfBefore,
    retriedOfLast,
  }
}

/** While nothing happens to Redis, nothing is forgotten. On a busy machine the servers may fail over by themselves. */
async function staysWell(run: Run, load: FailoverLoad, servers: Failovers, when: string): Promise<void> {
  await pause(LOOK_MS)
  const fromMs = performance.now()
  const primaries = await servers.primaries()
  await pause(STEADY_MS)
  const forgotten = load.forgottenSince(fromMs)
  if ((await servers.primaries()) !== primaries) return
  run.check(
    forgotten.length === 0,
    () =>
      `${when}: ${forgotten.length} times forgotten, though nothing happened: ${JSON.stringify(forgotten[0])}`,
  )
}

function report(run: Run, name: string, load: FailoverLoad, costs: Map<string, Cost[]>, done: string): void {
  const { history } = load
  run.size(`${name}: ${done}, ${load.tokenCount} tokens, ${history.calls.length} redemptions`)
  for (const [kind, each] of [...costs].sort()) {
    const middle = (of: (cost: Cost) => number) => each.map(of).sort((a, b) => a - b)
    const [ms, forgotten, unknown] = [
      middle(({ degradedMs }) => Math.round(degradedMs)),
      middle(cost => cost.forgotten),
      middle(cost => cost.unknown),
    ].map(sorted => `${sorted[Math.floor(sorted.length / 2)]} (at most ${sorted.at(-1)})`)
    run.figure(
      `${name}, ${kind}, ${each.length} times`,
      `without an answer for ${ms} ms, ${unknown} unknown, ${forgotten} tokens forgotten`,
    )
  }
  const sumOf = (of: 'retriedOfBefore' | 'retriedOfLast') =>
    [...costs.values()].flat().reduce((sum, cost) => sum + cost[of], 0)
  const ofBefore = sumOf('retriedOfBefore')
  run.figure(`${name}, tokens redeemed in the second before a failover and tried again after it`, ofBefore)
  run.figure(`${name}, in the last second until it was over`, sumOf('retriedOfLast'))
  run.check(ofBefore > 0, `${name}: nothing was redeemed just before a failover`)
  const doubles = history.doubleSuccesses()
  run.figure(`${name}, outcomes`, JSON.stringify(history.counts).replaceAll('"', ''))
  run.figure(`${name}, tokens redeemed twice`, doubles.length)
  run.check(
    doubles.length === 0,
    `${name}: tokens redeemed twice: ${doubles.slice(0, 5)} (${doubles.length} in all)`,
  )
  const odd = history.calls.filter(
    ({ outcome, code }) => outcome === 'refused' && code !== 'token-used' && code !== 'invalid-token',
  )
  run.check(odd.length === 0, () => `${name}: ${odd.length} refused otherwise: ${JSON.stringify(odd[0])}`)
  const early = [...history.bySubject()].filter(([, calls]) => isUsedByNobody(calls))
  run.check(
    early.length === 0,
    () => `${name}: ${early.length} tokens were used though nobody can have: ${JSON.stringify(early[0])}`,
  )
}

/** Refused as used, although no redemption succeeded and none has an unknown outcome. */
function isUsedByNobody(calls: readonly Call[]): boolean {
  const isUsed = calls.some(({ code }) => code === 'token-used')
  return isUsed && calls.every(({ outcome }) => outcome === 'refused' || outcome === 'failed')
}

const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
