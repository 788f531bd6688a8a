/**
 * Load for a long time, with sites that change and visitors who never send a solution: memory must not grow. That nothing stays in a
 * store after its expiry is in test/store/embedded.test.ts and test/e2e/privacy.test.ts.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { updateSite } from '../../../../src/sites/sites.ts'
import { CLOSED_LOOP } from '../../../harness/load/load.ts'
import { LoadProcess } from '../../../harness/load/load-process.ts'
import type { VisitorsResult } from '../../../harness/load/visitors.ts'
import { claimsAt, FREE, refusalsOf, VISITED_SETTINGS } from '../../../harness/load/visitors.ts'
import { workerPids } from '../../../harness/processes.ts'
import type { StoreKind, TestService } from '../../../harness/service.ts'
import { DEADLINE_AS_SHIPPED, lifetimesOf, STORE_KINDS } from '../../../harness/service.ts'
import { KeptMemory, memoryBefore } from '../memory.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'

const SOAK_SECONDS = 600
const UNSOLVED_CHALLENGES = { full: 1_000_000, bounded: 25_000 } as const
/** Full load before the measurement: code is compiled, heaps and allocators reach their size, within these four minutes. */
const WARM_UP_SECONDS = 240
/** Most of the code that reads a change is compiled within 3,400 of them: an hour at one a second. */
const WARM_UP_CHANGES = { full: 5000, bounded: 20 } as const
const CHANGE_MS = { full: 2000, bounded: 200 } as const
/** Visitors who solve come at this share of the rate that is served at full load. Those who leave come besides. */
const SHARE = 1 / 3
const CONNECTIONS = 128
/** Visitors at a time at full load, each of whom comes when another leaves. */
const FULL_LOAD_CONNECTIONS = 32
/** The warm-up meets all networks of these addresses. */
const ADDRESSES = 2 ** 18

export const soak: TortureCase = {
  number: 11,
  name: 'soak',
  aim: "nobody refused and no other failure at a third of the capacity, with overload shedding as shipped; after warm-up a worker's memory grows by 5 % at most, and its living objects by 1/8 byte a request",
  fullSize:
    '4 minutes at full load, then 10 minutes at a third of it on each store, with a site change every 2 s, 1,000,000 unsolved challenges on each',
  async run(run) {
    for (const kind of STORE_KINDS) await onStore(run.part(kind), kind)
  },
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const kept = new KeptMemory()
  const service = await run.service(kind, {
    ...kept.env,
    ...VISITED_SETTINGS,
    // Short, so that the store reaches its full size within the warm-up.
    POWGATE_CHALLENGE_SECONDS: '10',
    POWGATE_TOKEN_SECONDS: '10',
    // A bounded run does not check the usual deadline, which a busy machine may miss.
    ...(run.isFull ? { ...SHEDS_AS_SHIPPED, ...DEADLINE_AS_SHIPPED } : {}),
  })
  const site = await service.createSite({ difficulty: FREE })
  const { storeEpoch } = await claimsAt(service.url, site)
  const load = new LoadProcess()
  run.defer(() => load.stop())
  const pids = workerPids(service.pid)
  // The load makes nonces itself, for which it needs the store's epoch and the lifetimes.
  const minting = { site, storeEpoch, lifetimes: lifetimesOf(service.env) }
  const target = { port: service.port, ...minting, pids, addresses: ADDRESSES }
  const fullLoad = { ...target, visitorsPerSecond: CLOSED_LOOP, connections: FULL_LOAD_CONNECTIONS }
  const warmUp = { leaveShare: 0.5, warmUpMs: 0, measureMs: run.seconds(WARM_UP_SECONDS, 0.05) * 1000 }
  const warmUpChanges = run.count(WARM_UP_CHANGES.full, WARM_UP_CHANGES.bounded)
  // At full load a store may miss its deadline.
  const [{ badAnswers }] = await Promise.all([
    load.visit({ ...fullLoad, ...warmUp }),
    changeSite(service, site.siteKey, { everyMs: 0, count: warmUpChanges }),
  ])
  const others = badAnswers.filter(answer => !answer.includes('"store-unavailable"'))
  run.none('other answers at full load', others)
  const atCapacity = await load.visit({ ...fullLoad, warmUpMs: 500, measureMs: run.count(5000, 1000) })

  const judgeMemory = await memoryBefore(run, kept, service.pid)
  const seconds = run.seconds(SOAK_SECONDS, 0.3)
  const changeMs = run.count(CHANGE_MS.full, CHANGE_MS.bounded)
  const solved = (atCapacity.served / atCapacity.seconds) * SHARE
  const unsolved = run.count(UNSOLVED_CHALLENGES.full, UNSOLVED_CHALLENGES.bounded) / seconds
  const pace = { visitorsPerSecond: solved + unsolved, leaveShare: unsolved / (solved + unsolved) }
  const times = { warmUpMs: 0, measureMs: seconds * 1000 }
  const [result] = await Promise.all([
    load.visit({ ...target, ...pace, ...times, connections: CONNECTIONS }),
    changeSite(service, site.siteKey, { everyMs: changeMs, count: (seconds * 1000) / changeMs }),
  ])
  load.stop()
  checkLoad(run, result)
  run.figure("the workers' CPU time a second, as a share of that at full load", result.busy / atCapacity.busy)
  await judgeMemory(result.admitted.count)
  await service.stop()
}

async function changeSite(service: TestService, siteKey: string, pace: { everyMs: number; count: number }) {
  const store = await service.openSites()
  for (let index = 0; index < pace.count; index++) {
    await updateSite(store, siteKey, { name: `change ${index}` })
    await sleep(pace.everyMs)
  }
  await store.close()
}

function checkLoad(run: Run, result: VisitorsResult): void {
  const { came, served, left, admitted, bad, badAnswers, seconds } = result
  const text = (count: number) => count.toLocaleString('en-US')
  const visitors = `${text(served)} visitors with a token, ${text(left)} who left their challenge unsolved`
  run.size(`${seconds.toFixed(0)} s: ${text(admitted.count)} requests, ${visitors}`)
  run.check(bad === 0, `${bad} bad answers: ${badAnswers.join('\n')}`)
  run.check(refusalsOf(result) === 0, `${refusalsOf(result)} requests were refused`)
  const areEnough = left >= 0.95 * UNSOLVED_CHALLENGES.full || !run.isFull // visitors are drawn, so a few may be missing
  run.check(areEnough, `only ${left} challenges were left unsolved`)
  run.check(served > 0 && came > served, `${came} came, ${served} were served`)
}
