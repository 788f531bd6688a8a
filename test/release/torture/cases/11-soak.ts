/**
 * Half load for a long time, with sites that change and visitors who never send a solution. Memory must not grow, and nothing
 * may stay in the store after its expiry.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { socketTarget } from '../../../../src/config/redis.ts'
import { createSite, updateSite } from '../../../../src/sites/sites.ts'
import { connect } from '../../../../src/store/client/connection.ts'
import { infoOf } from '../../../../src/store/client/inspection.ts'
import { socketPath } from '../../../../src/store/embedded/data-dir.ts'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { visitorAddress } from '../../../harness/load/addresses.ts'
import { LoadProcess } from '../../../harness/load/load-process.ts'
import { FREE } from '../../../harness/load/traffic.ts'
import { storeEpochOf, VISITED_SETTINGS } from '../../../harness/load/visitor-requests.ts'
import { refusalsOf, type VisitorsResult, type VisitorsSpec } from '../../../harness/load/visitors.ts'
import { workerPids } from '../../../harness/processes.ts'
import {
  DEADLINE_AS_SHIPPED,
  lifetimesOf,
  STORE_KINDS,
  type StoreKind,
  type TestService,
} from '../../../harness/service.ts'
import { KeptMemory, MemoryUnderLoad } from '../memory.ts'
import { EASY } from '../redemptions.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'

/** Length of the load, on each store. */
const SOAK_SECONDS = 600
const UNSOLVED = 1_000_000
const UNSOLVED_BOUNDED = 25_000
/** From this length on, the run waits until everything has expired. */
const LONG_SECONDS = 60
/**
 * Full load before the measurement: code is compiled, heaps and allocators reach their size. At a quarter of the load this
 * took twelve minutes.
 */
const WARM_UP_SECONDS = 240
/** An accepted proof counts for its address for five minutes; then all is swept. */
const EXPIRY_MS = 480_000
/** With the lifetimes set below, nothing that requests leave in the store lives longer. */
const LIFE_SECONDS_MAX = 420
/** The primary process reads each change. Most of the code for that is compiled within 3,400 of them: an hour at one a second. */
const WARM_UP_CHANGES = 5000
const CONNECTIONS = 128
const PATIENT_MS = 5000
/** The warm-up meets all networks of these addresses. */
const ADDRESSES = 2 ** 18
/** Wanted share of the CPU time that workers use at full load; a share above HALF_MAX is reduced to about HALF. */
const HALF = 0.5
const HALF_MAX = 0.55
const TRIES_FOR_HALF = 4

export const soak: TortureCase = {
  number: 11,
  name: 'soak',
  aim: "nobody refused and no other failure at half load, with the gate as shipped; after warm-up no growth of a worker's own memory that can be told from zero (where no line tells, less than 5 %; of the primary's, which fills its history: less than 512 KiB a minute), and of its living objects none above 1/8 byte a request; store keys back to baseline after expiry",
  fullSize:
    '4 minutes at full load, then 10 minutes at half of its CPU time on each store, with site changes every 2 s, 1,000,000 unsolved challenges on each',
  async run(run) {
    for (const kind of STORE_KINDS) await onStore(run.part(kind), kind)
  },
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const kept = new KeptMemory(run)
  const service = await run.service(kind, {
    ...kept.env,
    ...VISITED_SETTINGS,
    POWGATE_CHALLENGE_SECONDS: '10',
    POWGATE_TOKEN_SECONDS: '10',
    // A bounded run does not check the usual deadline, which a busy machine may miss.
    ...(run.isFull ? { ...SHEDS_AS_SHIPPED, ...DEADLINE_AS_SHIPPED } : {}),
  })
  const site = await service.createSite({ difficulty: FREE })
  const storeEpoch = await storeEpochOf(service.url, site)
  const load = new LoadProcess()
  run.defer(() => load.stop())
  const keys = openKeys(service)
  run.defer(() => keys.close())
  const lifetimes = lifetimesOf(service.env)
  const pids = workerPids(service.pid)
  const target = { port: service.port, site, storeEpoch, lifetimes, pids, addresses: ADDRESSES }
  const seconds = run.seconds(SOAK_SECONDS, 0.3)
  const baseline = await keys.unbounded(LIFE_SECONDS_MAX)
  const flood = { ...target, visitorsPerSecond: Number.POSITIVE_INFINITY, connections: 32 }
  const warmUp = { leaveShare: 0.5, warmUpMs: 0, measureMs: run.seconds(WARM_UP_SECONDS, 0.05) * 1000 }
  // At full load a store may miss its deadline.
  const [{ bad, badAnswers }] = await Promise.all([
    load.visit({ ...flood, ...warmUp }),
    manyChanges(service, site.siteKey, run.count(WARM_UP_CHANGES, 20)),
  ])
  run.figure('requests at full load that got neither what they wanted nor a refusal', bad)
  const others = badAnswers.filter(answer => !answer.includes('"store-unavailable"'))
  run.none('other answers at full load', others)
  const { spec, busyAtMost } = await halfLoad(run, load, flood, seconds)
  const memory = new MemoryUnderLoad(run, service, kept)
  const changes = new SiteChanges(run, service)
  run.defer(() => changes.stop())
  const result = await load.visit(spec)
  await changes.stop()
  memory.stop()
  load.stop()
  checkLoad(run, result, seconds, changes.count)
  run.figure('CPU of the workers, of what they took at capacity', result.busy / busyAtMost)
  memory.judge(result.admitted.count)
  const left = await keys.unbounded(LIFE_SECONDS_MAX)
  run.check(left === baseline, `${left - baseline} entries more that do not expire`)
  if (seconds >= LONG_SECONDS) await checkExpiry(run, keys, baseline)
  await keys.close()
  await service.stop()
}

/**
 * Half load, with a share of visitors who leave without a solution, large enough to reach the wanted number. Half is measured
 * by the workers' CPU time: with half of the visitors a store has fewer requests to do at once, and each takes longer.
 */
async function halfLoad(
  run: Run,
  process: LoadProcess,
  flood: Omit<VisitorsSpec, 'warmUpMs' | 'measureMs'>,
  seconds: number,
): Promise<{ spec: VisitorsSpec; busyAtMost: number }> {
  const probe = { warmUpMs: 500, measureMs: run.count(5000, 1000) }
  const { served, seconds: probed, busy: busyAtMost } = await process.visit({ ...flood, ...probe })
  const unsolved = run.count(UNSOLVED, UNSOLVED_BOUNDED) / seconds
  const capacity = served / probed
  let solved = capacity / 2
  const load = () => ({
    ...flood,
    connections: CONNECTIONS,
    visitorsPerSecond: solved + unsolved,
    leaveShare: unsolved / (solved + unsolved),
  })
  for (let tries = 0; tries < TRIES_FOR_HALF; tries++) {
    const { busy } = await process.visit({ ...load(), ...probe })
    const share = busy / busyAtMost
    if (share <= HALF_MAX) break
    solved = Math.max(capacity / 20, solved * Math.max(0.5, HALF / share))
  }
  return { spec: { ...load(), warmUpMs: 0, measureMs: seconds * 1000 }, busyAtMost }
}

function checkLoad(run: Run, result: VisitorsResult, seconds: number, changes: number): void {
  const { came, served, left, admitted, bad, badAnswers } = result
  const [requests, redeemed, unsolved] = [admitted.count, served, left].map(each =>
    each.toLocaleString('en-US'),
  )
  run.size(
    `${seconds.toFixed(0)} s: ${requests} requests, ${redeemed} visitors with a token, ${unsolved} who left their challenge unsolved, ${changes} site changes`,
  )
  run.check(bad === 0, `${bad} bad answers: ${badAnswers.join('\n')}`)
  // As shipped in a full run; in a bounded run load shedding is off.
  const refused = refusalsOf(result)
  run.figure('requests refused at half load', refused)
  run.check(refused === 0, `${refused} requests were refused at half load`)
  const areEnough = left >= 0.95 * run.count(UNSOLVED, UNSOLVED_BOUNDED) || !run.isFull
  run.check(areEnough, `only ${left} challenges were left unsolved`)
  run.check(served > 0 && came > served && changes > 0, `${came} came, ${served} were served`)
}

/** What requests leave in the store. */
interface Keys {
  /** Entries, without meters and those of sites, that do not expire within this number of seconds. */
  unbounded(seconds: number): Promise<number>
  count(): Promise<number>
  close(): Promise<unknown>
}

function openKeys({ redis, dataDir }: TestService): Keys {
  return redis === undefined ? embeddedKeys(dataDir) : redisKeys(new Redis(redis.url))
}

/** Meters are kept for up to a week. */
const REDIS_KEPT = /^pg:\{sites\}|:e:/

/** The store process counts all but meters; all that it has expires. */
function embeddedKeys(dataDir: string): Keys {
  const { ask, close } = connect(socketTarget(socketPath(dataDir)), PATIENT_MS)
  return {
    unbounded: async () => 0,
    count: async () => Number((await infoOf(ask, 'server')).keys),
    close: async () => close(),
  }
}

function redisKeys(client: Redis): Keys {
  let kept = 0
  return {
    async unbounded(seconds) {
      let count = 0
      const others = new Set<string>()
      for await (const names of client.scanStream({ count: 1000 }) as AsyncIterable<string[]>) {
        const pipeline = client.pipeline()
        for (const name of names) {
          if (REDIS_KEPT.test(name)) others.add(name)
          else pipeline.ttl(name)
        }
        for (const [, ttl] of (await pipeline.exec()) ?? [])
          if (ttl === -1 || (ttl as number) > seconds) count++
      }
      kept = others.size
      return count
    },
    count: async () => (await client.dbsize()) - kept,
    close: async () => client.disconnect(),
  }
}

async function checkExpiry(run: Run, keys: Keys, baseline: number): Promise<void> {
  const most = await keys.count()
  const startedAtMs = performance.now()
  let count = most
  while (count > baseline && performance.now() - startedAtMs < EXPIRY_MS) {
    await sleep(1000)
    count = await keys.count()
  }
  const seconds = (performance.now() - startedAtMs) / 1000
  run.figure(
    'entries in the store',
    `${most.toLocaleString('en-US')} at the end of the load, ${count} after ${seconds.toFixed(0)} s (before: ${baseline})`,
  )
  run.check(count <= baseline, `${count} entries are left, ${baseline} were there before`)
}

const CHANGE_MS = 2000
/** After that many, existing sites are changed again: the numbers of each site stay in memory, some KiB in every process. */
const SITES_MAX = 20
/** A change must be visible within two seconds. */
const SEEN_MS = 2000

async function manyChanges(service: TestService, siteKey: string, count: number): Promise<void> {
  const store = await service.openSites()
  for (let index = 0; index < count; index++) await updateSite(store, siteKey, { name: `warm-up ${index}` })
  await store.close()
}

/** Creates, changes and disables a site at intervals, and checks that workers see each change; later with the same sites. */
class SiteChanges {
  count = 0
  #rounds = 0
  #visitors = 0
  readonly #siteKeys: string[] = []
  readonly #run: Run
  readonly #service: TestService
  readonly #done: Promise<void>
  #isOver = false

  constructor(run: Run, service: TestService) {
    this.#run = run
    this.#service = service
    this.#done = this.#change().catch(error => run.check(false, `site changes: ${(error as Error).message}`))
  }

  /** May be called more than once. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #change(): Promise<void> {
    const store = await this.#service.openSites()
    const client = new Client(this.#service.url)
    try {
      while (!this.#isOver) {
        const siteKey = await this.#nextSite(store)
        await this.#until(client, siteKey, '200', 'a site that is active')
        await updateSite(store, siteKey, { name: `changed ${this.#rounds}`, requireOrigin: true })
        await this.#until(client, siteKey, '403 origin-not-allowed', 'a site that wants an origin')
        await updateSite(store, siteKey, { active: false, requireOrigin: false })
        await this.#until(client, siteKey, '403 site-inactive', 'a disabled site')
        this.#rounds++
        this.count += 3
        await sleep(CHANGE_MS)
      }
    } finally {
      await store.close()
    }
  }

  async #nextSite(store: Awaited<ReturnType<TestService['openSites']>>): Promise<string> {
    if (this.#siteKeys.length < SITES_MAX) {
      const name = `soak ${this.#rounds}`
      const { site } = await createSite(store, { name, difficulty: EASY })
      this.#siteKeys.push(site.siteKey)
      return site.siteKey
    }
    const siteKey = this.#siteKeys[this.#rounds % SITES_MAX]!
    await updateSite(store, siteKey, { active: true })
    return siteKey
  }

  async #until(client: Client, siteKey: string, wanted: string, words: string): Promise<void> {
    const startedAtMs = performance.now()
    await eventually(5 * SEEN_MS, `${words} is seen`, async () => {
      // A new address each time, so that no limit refuses.
      const visitor = visitorAddress(ADDRESSES + this.#visitors++)
      const { status, json } = await client.challenge(siteKey, { headers: { 'X-Forwarded-For': visitor } })
      return wanted === (status === 200 ? '200' : `${status} ${json.code}`)
    })
    const tookMs = performance.now() - startedAtMs
    this.#run.check(tookMs <= SEEN_MS || !this.#run.isFull, `${words} was seen after ${tookMs.toFixed(0)} ms`)
  }
}
