/** Races of redemptions while one Redis server takes over from another, in every way that Sentinels and a Cluster support. */

import { setTimeout as sleep } from 'node:timers/promises'
import { spreadOf } from '../../../harness/measure.ts'
import type { Random } from '../../../harness/random.ts'
import { UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import { clusterFailovers, type Failovers, sentinelFailovers } from '../failovers.ts'
import type { Call } from '../history.ts'
import { openRedemptionLoad, type RedemptionLoad } from '../redemption-load.ts'
import { judgeRedemptions } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'

const FAILOVERS = 50
const STRICT = 'min-replicas-to-write 1'
/** Nothing is judged for so long after a failover: a worker looks at every shard once a second, so it has then looked twice. */
const LOOK_MS = 2000
const STEADY_MS = 2000 // in which nothing may be forgotten
const ENV = { ...UNLIMITED_REDEMPTIONS, POWGATE_STORE_DEADLINE_MS: '1000' }

const TOPOLOGIES: Readonly<Record<string, () => Promise<Failovers>>> = {
  Sentinels: sentinelFailovers,
  Cluster: clusterFailovers,
}

export const failover: TortureCase = {
  number: 6,
  name: 'failover',
  aim: 'no token redeemed twice; what is forgotten is refused as invalid, and only after a failover; no worker goes',
  fullSize: `${FAILOVERS} failovers each of Sentinels (1 primary, 2 replicas, 3 Sentinels) and of a Cluster (3 primaries, 3 replicas): asked for, killed, frozen, with a host that is stopped meanwhile, half of them with ${STRICT}; two hosts of two workers`,
  async run(run) {
    const stages = await Promise.all(
      Object.entries(TOPOLOGIES).map(([name, start]) =>
        stageOf(run.part(name), name, start, run.random.fork()),
      ),
    )
    // One after the other in a full run; a run with a time limit is quicker at once.
    if (!run.isFull) await Promise.all(stages.map(onStage))
    else for (const stage of stages) await onStage(stage)
  },
}

type Cost = Awaited<ReturnType<typeof failOver>>

type Stage = Awaited<ReturnType<typeof stageOf>>

async function stageOf(run: Run, name: string, start: () => Promise<Failovers>, random: Random) {
  const servers = await start()
  run.defer(() => servers.stop())
  const options = { topology: servers, env: ENV, hosts: 2, sites: run.count(6, 3), racers: 8 }
  const load = await openRedemptionLoad(run, `failover-${name}`, options, random.fork())
  return { run, servers, load, random }
}

async function onStage(stage: Stage): Promise<void> {
  const { run, servers, load, random } = stage
  const pids = load.pids().join()
  await load.untilWell()
  const kinds = Object.keys(servers.kinds)
  const costs = new Map<string, Cost[]>()
  let done = 0
  let strictCount = 0
  // Every second failover is strict: primaries accept no writes that reach no replica.
  const offset = random.below(2)
  // Each kind comes as often as the others, in a random order; a bounded run does as many as fit.
  let kindsLeft: string[] = []
  while (done < FAILOVERS && (done === 0 || !run.isOver())) {
    if (kindsLeft.length === 0) kindsLeft = [...kinds]
    const [kind] = kindsLeft.splice(random.below(kindsLeft.length), 1)
    const isStrict = (done + offset) % 2 === 1
    for (const server of servers.servers)
      await server.ask('config', 'set', 'min-replicas-to-write', isStrict ? 1 : 0)
    if (isStrict) strictCount++
    const cost = await failOver(stage, kind!)
    await staysWell(stage, `after ${kind}`)
    const row = isStrict ? `${kind}, ${STRICT}` : kind!
    costs.set(row, [...(costs.get(row) ?? []), cost])
    done++
    run.progress(`${done} failovers, ${load.tokenCount()} tokens; ${kind}`)
  }
  run.check(load.pids().join() === pids, 'a worker has gone')
  await load.stop()
  await servers.stop()
  report(run, load, costs, `${done} failovers, ${strictCount} of them with ${STRICT}`)
}

async function failOver({ load, servers, random }: Stage, kind: string) {
  const from = load.history.calls.length
  const forgottenBefore = load.forgotten()
  const startedMs = performance.now()
  await servers.kinds[kind]!(load, random)
  const failedOverMs = performance.now()
  await load.untilWell()
  // What was redeemed just before the failover, and just before its end, must not be redeemed again at any host.
  const triedOfBefore = await load.redeemLatestAgain(startedMs)
  const triedOfEnd = await load.redeemLatestAgain(failedOverMs)
  const calls = load.history.calls.slice(from)
  const unknown = calls.filter(({ outcome }) => outcome === 'unknown')
  const firstMs = Math.max(startedMs, Math.min(...unknown.map(call => call.startedMs)))
  const lastMs = Math.max(...unknown.map(({ endedMs }) => endedMs))
  return {
    /** From the first to the last call without an answer. */
    degradedMs: unknown.length === 0 ? 0 : Math.max(0, lastMs - firstMs),
    forgotten: load.forgotten() - forgottenBefore,
    unknown: unknown.length,
    triedOfBefore,
    triedOfEnd,
  }
}

/** While nothing happens to Redis, nothing is forgotten. On a busy machine the servers may fail over by themselves. */
async function staysWell({ run, load, servers }: Stage, when: string): Promise<void> {
  await sleep(LOOK_MS)
  const fromMs = performance.now()
  const ports = await servers.primaryPorts()
  await sleep(STEADY_MS)
  const forgotten = load.forgottenSince(fromMs)
  if ((await servers.primaryPorts()) !== ports) return
  run.none(`${when}: forgotten, though nothing happened`, forgotten)
}

function report(run: Run, load: RedemptionLoad, costs: Map<string, Cost[]>, done: string): void {
  const { history } = load
  run.size(`${done}, ${load.tokenCount()} tokens, ${history.calls.length} redemptions`)
  for (const [kind, each] of [...costs].sort()) {
    const spread = (of: (cost: Cost) => number) => {
      const { median, max } = spreadOf(each.map(of))
      return `${Math.round(median)} (at most ${Math.round(max)})`
    }
    const ms = spread(({ degradedMs }) => degradedMs)
    const [unknown, forgotten] = [spread(cost => cost.unknown), spread(cost => cost.forgotten)]
    run.figure(
      `${kind}, ${each.length} times`,
      `without an answer for ${ms} ms, ${unknown} unknown, ${forgotten} tokens forgotten`,
    )
  }
  const sumOf = (count: 'triedOfBefore' | 'triedOfEnd') =>
    [...costs.values()].flat().reduce((sum, cost) => sum + cost[count], 0)
  const ofBefore = sumOf('triedOfBefore')
  run.figure('tokens redeemed in the second before a failover and tried again after it', ofBefore)
  run.figure('tokens redeemed in its last second and tried again after it', sumOf('triedOfEnd'))
  run.check(ofBefore > 0, 'nothing was redeemed just before a failover')
  judgeRedemptions(run, history, ['token-used', 'token-forgotten'])
  const usedByNobody = [...history.bySubject()].filter(([, calls]) => isUsedByNobody(calls))
  run.none('tokens that were used though nobody can have', usedByNobody)
}

/** Refused as used, although no redemption succeeded and none has an unknown outcome. */
function isUsedByNobody(calls: readonly Call[]): boolean {
  const isUsed = calls.some(({ code }) => code === 'token-used')
  return isUsed && calls.every(({ outcome }) => outcome === 'refused' || outcome === 'failed')
}
