/**
 * Half load for a long time, with sites that change and visitors who never send a solution. Memory must not grow, and nothing
 * may stay in the store after its expiry.
 */

import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { openState } from '../../../src/store/embedded/environment.ts'
import { SYSTEM_CLOCKS } from '../../../src/store/embedded/requests.ts'
import { childPids } from '../../harness/processes.ts'
import { lifetimesOf, STORE_KINDS, type StoreKind, type TestService } from '../../harness/service.ts'
import { STEADY_LOAD_SETTINGS, storeEpochOf } from '../../harness/steady-load.ts'
import { KeptMemory } from '../kept-memory.ts'
import { EASY } from '../redemptions.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'
import { SiteChanges } from '../site-changes.ts'
import { slopeOf } from '../slope.ts'
import { refusalsOf, type VisitorsResult, type VisitorsSpec } from '../visitors.ts'
import { VisitorsProcess } from '../visitors-process.ts'

/** Length of the load, on each store. */
const SOAK_SECONDS = 600
const UNSOLVED = 1_000_000
const UNSOLVED_BOUNDED = 25_000
const SAMPLE_MS = 500
/**
 * Garbage in heaps varies by more than a leak would add in an hour, so heaps are collected before they are measured. At every
 * 5 s, the collector's threads alone make the allocator take 70 KiB a minute, also in an idle process. At every 15 s, some
 * thirty values of ten minutes are left to judge.
 */
const COLLECT_MS = 15_000
const COLLECT_MS_BOUNDED = 1000
/** From this length on, the run waits until everything has expired. */
const LONG_SECONDS = 60
/**
 * Full load before the measurement: code is compiled, heaps and allocators reach their size. At a quarter of the load this
 * took twelve minutes.
 */
const WARM_UP_SECONDS = 240
/** Share of the first samples that is ignored: the store's set of keys grows to its size, and all changing sites are known. */
const SETTLING_SHARE = 0.2
/** With fewer samples their variation is unknown. */
const SAMPLES_MIN = 24
/** If residues form one long wave: greatest growth, as a share of the memory after the warm-up. */
const SMOOTH_GROWTH_MAX = 0.05
/** Growth of a worker's own memory for each request: a pointer. A leak of any object keeps more. */
const GROWTH_MAX_BYTES = 8
/** A slow machine makes fewer requests, but its memory varies as much. */
const GROWTH_MAX_KIB_MIN = 2048
/** Growth of JavaScript objects, which are measured exactly: 16 bytes, the least size of an object, for one request in 128. */
const LIVING_GROWTH_BYTES = 1 / 8
/** Growth of a process's JavaScript objects, a minute. */
const LIVING_GROWTH_MAX_KIB = 64
/** Growth of the primary process, a minute. */
const PRIMARY_GROWTH_MAX_KIB = 512
/** Intended growth of the primary process, a minute: a step of its history every ten seconds, for half an hour. */
const HISTORY_KIB = 10
/** Windows last for a minute; then they are swept. */
const EXPIRY_MS = 240_000
/** With the lifetimes set below, nothing that requests leave in the store lives longer. */
const LIFE_SECONDS_MAX = 300
const CONNECTIONS = 128
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
    for (const kind of STORE_KINDS) await onStore(run, kind)
  },
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const kept = new KeptMemory(run)
  const service = await run.service(kind, {
    ...kept.env,
    ...STEADY_LOAD_SETTINGS,
    POWGATE_CHALLENGE_SECONDS: '10',
    POWGATE_TOKEN_SECONDS: '10',
    // A bounded run does not check the usual deadline, which a busy machine may miss.
    ...(run.isFull ? SHEDS_AS_SHIPPED : { POWGATE_STORE_DEADLINE_MS: '5000' }),
  })
  const site = await service.createSite({ difficulty: EASY })
  const storeEpoch = await storeEpochOf(service.url, site)
  const visitors = new VisitorsProcess()
  run.defer(() => visitors.stop())
  const keys = await openKeys(service)
  run.defer(() => keys.close())
  const lifetimes = lifetimesOf(service.env)
  const base = {
    port: service.port,
    site,
    storeEpoch,
    lifetimes,
    connections: CONNECTIONS,
    pids: childPids(service.pid),
  }
  const seconds = run.seconds(SOAK_SECONDS, 0.3)
  const baseline = await keys.unbounded(LIFE_SECONDS_MAX)
  const flood = { ...base, visitorsPerSecond: Number.POSITIVE_INFINITY, connections: 32, warmUpMs: 0 }
  const warmUp = {
    leaveShare: 0.5,
    measureMs: run.seconds(WARM_UP_SECONDS, 0.05) * 1000,
    keepsLatencies: false,
  }
  // At full load a store may miss its deadline.
  const { bad, badAnswers } = await visitors.run({ ...flood, ...warmUp })
  run.figure(`${kind}: requests at full load that got neither what they wanted nor a refusal`, bad)
  const others = badAnswers.filter(answer => !answer.includes('"store-unavailable"'))
  run.check(others.length === 0, `${kind}, at full load: ${others.join('\n')}`)
  const { spec, busyAtMost } = await halfLoad(run, visitors, base, seconds)
  const memory = new Memory(run, service, kept)
  run.defer(() => memory.stop())
  const changes = new SiteChanges(run, service)
  run.defer(() => changes.stop())
  const result = await visitors.run(spec)
  await changes.stop()
  memory.stop()
  visitors.stop()
  checkLoad(run, kind, { result, seconds, changes })
  run.figure(`${kind}: CPU of the workers, of what they took at capacity`, result.busy / busyAtMost)
  checkMemory(run, kind, memory, result.admitted.count)
  const left = await keys.unbounded(LIFE_SECONDS_MAX)
  run.check(left === baseline, `${kind}: ${left - baseline} entries more that do not expire`)
  if (seconds >= LONG_SECONDS) await checkExpiry(run, kind, { keys, baseline })
  await keys.close()
  await service.stop()
}

/**
 * Half load, with a share of visitors who leave without a solution, large enough to reach the wanted number. Half is measured
 * by the workers' CPU time: with half of the visitors a store has fewer requests to do at once, and each takes longer.
 */
async function halfLoad(
  run: Run,
  visitors: VisitorsProcess,
  base: Omit<VisitorsSpec, 'visitorsPerSecond' | 'warmUpMs' | 'measureMs'>,
  seconds: number,
): Promise<{ spec: VisitorsSpec; busyAtMost: number }> {
  const probe = { warmUpMs: 500, measureMs: run.count(5000, 1000), keepsLatencies: false }
  const full = { ...base, ...probe, visitorsPerSecond: Number.POSITIVE_INFINITY, connections: 32 }
  const { served, seconds: probed, busy: busyAtMost } = await visitors.run(full)
  const unsolved = run.count(UNSOLVED, UNSOLVED_BOUNDED) / seconds
  const capacity = served / probed
  let solved = capacity / 2
  const load = () => ({
    ...base,
    visitorsPerSecond: solved + unsolved,
    leaveShare: unsolved / (solved + unsolved),
    keepsLatencies: false,
  })
  for (let tries = 0; tries < TRIES_FOR_HALF; tries++) {
    const { busy } = await visitors.run({ ...load(), ...probe })
    const share = busy / busyAtMost
    if (share <= HALF_MAX) break
    solved = Math.max(capacity / 20, solved * Math.max(0.5, HALF / share))
  }
  return { spec: { ...load(), warmUpMs: 0, measureMs: seconds * 1000 }, busyAtMost }
}

function checkLoad(
  run: Run,
  kind: StoreKind,
  { result, seconds, changes }: { result: VisitorsResult; seconds: number; changes: SiteChanges },
): void {
  const { came, served, left, admitted, bad, badAnswers } = result
  run.size(
    `${seconds.toFixed(0)} s on ${kind}: ${admitted.count.toLocaleString('en-US')} requests, ${served.toLocaleString('en-US')} visitors with a token, ${left.toLocaleString('en-US')} who left their challenge unsolved, ${changes.count} site changes`,
  )
  run.check(bad === 0, `${kind}: ${bad} bad answers: ${badAnswers.join('\n')}`)
  // As shipped in a full run; in a bounded run load shedding is off.
  const refused = refusalsOf(result)
  run.figure(`${kind}: requests refused at half load`, refused)
  run.check(refused === 0, `${kind}: ${refused} requests were refused at half load`)
  const unsolved = run.count(UNSOLVED, UNSOLVED_BOUNDED)
  run.check(
    left >= 0.95 * unsolved || !run.isFull,
    `${kind}: only ${left} challenges of ${unsolved} were left unsolved`,
  )
  run.check(served > 0 && came > served && changes.count > 0, `${kind}: ${came} came, ${served} were served`)
}

interface Sample {
  readonly at: number
  readonly value: number
}

/** Memory of the primary process and its workers, in KiB by minutes. */
class Memory {
  readonly own = new Map<string, Sample[]>()
  readonly all = new Map<string, Sample[]>()
  /** Without garbage and without memory outside of JavaScript. */
  readonly living = new Map<string, Sample[]>()
  readonly #run: Run
  readonly #kept: KeptMemory
  readonly #processes: readonly (readonly [name: string, pid: number])[]
  readonly #timers: NodeJS.Timeout[]
  readonly #startMs = performance.now()

  constructor(run: Run, { pid }: TestService, kept: KeptMemory) {
    this.#run = run
    this.#kept = kept
    const workers = childPids(pid).map((worker, index) => [`worker ${index}`, worker] as const)
    this.#processes = [['primary', pid], ...workers]
    for (const [name] of this.#processes) {
      this.own.set(name, [])
      this.all.set(name, [])
      this.living.set(name, [])
    }
    this.#timers = [
      setInterval(() => this.#sampleAll(), SAMPLE_MS),
      setInterval(() => this.#sampleLiving(), run.count(COLLECT_MS, COLLECT_MS_BOUNDED)),
    ]
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  #now(): number {
    return (performance.now() - this.#startMs) / 60_000
  }

  /** Reads the result of the last collection, and starts another one. */
  #sampleLiving(): void {
    for (const [name, pid] of this.#processes) {
      const bytes = this.#kept.bytesOf(pid)
      if (bytes !== undefined) this.living.get(name)!.push({ at: this.#now(), value: bytes / 1024 })
    }
    this.#kept.collect(this.#processes.map(([, pid]) => pid))
  }

  #sampleAll(): void {
    const at = this.#now()
    for (const [name, pid] of this.#processes) {
      try {
        this.#sample(at, name, pid)
      } catch (error) {
        this.stop()
        this.#run.check(false, `the ${name} has ended: ${(error as Error).message}`)
        return
      }
    }
  }

  #sample(at: number, name: string, pid: number): void {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const kib = (field: string) => {
      const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]
      // A process that is not yet reaped has no such field.
      if (found === undefined) throw new Error(`it has no ${field}`)
      return Number(found)
    }
    this.all.get(name)!.push({ at, value: kib('VmRSS') })
    this.own.get(name)!.push({ at, value: kib('RssAnon') })
  }
}

/**
 * Judges the JavaScript objects, which are measured exactly to some KiB, and a process's own memory, buffers included. Pages
 * of LMDB files are ignored, because they belong to the system's cache. Of the workers it judges the mean, which varies less
 * than each.
 */
function checkMemory(run: Run, kind: StoreKind, memory: Memory, requests: number): void {
  const [primary, ...workers] = [...memory.own.values()]
  const [livingPrimary, ...livingWorkers] = [...memory.living.values()]
  const mean = meanOf(workers)
  for (const [name, resident] of memory.all) {
    const from = resident[Math.floor(resident.length * SETTLING_SHARE)]?.value ?? 0
    const text = `${mebibytes(from)} MiB after the warm-up, ${mebibytes(resident.at(-1)?.value ?? 0)} at the end`
    run.figure(`${kind}: resident memory of the ${name}`, text)
  }
  const minutes = mean.at(-1)!.at - mean[0]!.at
  const perMinute = requests / minutes / workers.length
  run.figure(`${kind}: requests a minute and worker`, Math.round(perMinute).toLocaleString('en-US'))
  judgeGrowth(run, `${kind}: a worker's own memory`, mean, {
    meantKib: 0,
    maxKib: Math.max(GROWTH_MAX_KIB_MIN, (perMinute * GROWTH_MAX_BYTES) / 1024),
  })
  judgeGrowth(run, `${kind}: a worker's living objects`, meanOf(livingWorkers), {
    meantKib: (perMinute * LIVING_GROWTH_BYTES) / 1024,
    maxKib: LIVING_GROWTH_MAX_KIB,
  })
  // Its history takes memory for half an hour, so growth is expected. The objects show how much of it stays.
  judgeGrowth(run, `${kind}: the primary's own memory`, primary!, {
    meantKib: PRIMARY_GROWTH_MAX_KIB,
    maxKib: PRIMARY_GROWTH_MAX_KIB,
  })
  judgeGrowth(run, `${kind}: the primary's living objects`, livingPrimary!, {
    meantKib: HISTORY_KIB,
    maxKib: HISTORY_KIB + LIVING_GROWTH_MAX_KIB,
  })
}

/** The mean of several processes, sample by sample. */
function meanOf(processes: readonly (readonly Sample[])[]): Sample[] {
  const length = Math.min(...processes.map(samples => samples.length))
  return processes[0]!.slice(0, length).map(({ at }, index) => {
    const values = processes.map(samples => samples[index]!.value)
    return { at, value: values.reduce((sum, value) => sum + value, 0) / values.length }
  })
}

/** Growth in KiB a minute: the intended part, or too little to be a leak; and the most for the line through the samples. */
interface Growth {
  readonly meantKib: number
  readonly maxKib: number
}

function judgeGrowth(run: Run, name: string, samples: readonly Sample[], { meantKib, maxKib }: Growth): void {
  const warm = samples.slice(Math.floor(samples.length * SETTLING_SHARE))
  const { perUnit, plusMinus, plusMinusOfLine } = slopeOf(warm)
  const text = `${perUnit.toFixed(0)} +- ${plusMinus.toFixed(0)} KiB/min`
  if (warm.length >= 9) run.figure(name, text)
  if (!run.isFull) return
  run.check(warm.length >= SAMPLES_MIN, `${name}: there are only ${warm.length} samples`)
  const unmeantKib = perUnit - meantKib
  if (Number.isFinite(plusMinus)) run.check(unmeantKib <= plusMinus, `${name} grows: ${text}`)
  else {
    // On a smooth curve, no line shows whether growth goes on. So, as in case 1, the share of the earlier memory is judged.
    const kib = unmeantKib * (warm.at(-1)!.at - warm[0]!.at)
    const mostKib = warm[0]!.value * SMOOTH_GROWTH_MAX
    run.check(kib <= mostKib, `${name} has grown by ${kib.toFixed(0)} KiB along a smooth curve`)
  }
  // If the values vary so much that growth would not show, the result is unknown.
  run.check(perUnit + plusMinusOfLine < maxKib, `${name} may grow, by ${maxKib.toFixed(0)} or more: ${text}`)
}

const mebibytes = (kib: number) => (kib / 1024).toFixed(0)

/** What requests leave in the store. */
interface Keys {
  /** Entries, without those of sites, that do not expire within this number of seconds. */
  unbounded(seconds: number): Promise<number>
  count(): Promise<number>
  close(): Promise<unknown>
}

async function openKeys(service: TestService): Promise<Keys> {
  return service.redis === undefined ? embeddedKeys(service.dataDir) : redisKeys(new Redis(service.redis.url))
}

/** Each value starts with the second from which it is dead: windows by the monotonic clock, other records by the wall clock. */
function embeddedKeys(dataDir: string): Keys {
  const { file, windows, marks } = openState(dataDir)
  const beyond = (seconds: number) =>
    ([windows, marks] as const).reduce((total, database, index) => {
      const nowMs = index === 0 ? SYSTEM_CLOCKS.monotonicMs() : SYSTEM_CLOCKS.wallMs()
      let count = 0
      for (const { value } of database.getRange()) if (value.readUInt32BE(0) > nowMs / 1000 + seconds) count++
      return total + count
    }, 0)
  let isOpen = true
  return {
    unbounded: async seconds => beyond(seconds),
    count: async () => windows.getCount() + marks.getCount(),
    close: async () => {
      if (isOpen) await file.close()
      isOpen = false
    },
  }
}

/** A few keys for each site, which are not what is counted. */
const OF_A_SITE = /^pg:\{(?:sites|load)\}/

function redisKeys(client: Redis): Keys {
  let ofSites = 0
  const beyond = async (seconds: number) => {
    let count = 0
    const sites = new Set<string>()
    for await (const names of client.scanStream({ count: 1000 })) {
      const others = (names as string[]).filter(name => !OF_A_SITE.test(name))
      for (const name of names as string[]) if (OF_A_SITE.test(name)) sites.add(name)
      const pipeline = client.pipeline()
      for (const name of others) pipeline.ttl(name)
      for (const [, ttl] of (await pipeline.exec()) ?? [])
        if (ttl === -1 || (ttl as number) > seconds) count++
    }
    ofSites = sites.size
    return count
  }
  return {
    unbounded: beyond,
    count: async () => (await client.dbsize()) - ofSites,
    close: async () => client.disconnect(),
  }
}

async function checkExpiry(
  run: Run,
  kind: StoreKind,
  { keys, baseline }: { keys: Keys; baseline: number },
): Promise<void> {
  const most = await keys.count()
  const startedAtMs = performance.now()
  let count = most
  while (count > baseline && performance.now() - startedAtMs < EXPIRY_MS) {
    await sleep(1000)
    count = await keys.count()
  }
  const seconds = (performance.now() - startedAtMs) / 1000
  run.figure(
    `${kind}: entries in the store`,
    `${most.toLocaleString('en-US')} at the end of the load, ${count} after ${seconds.toFixed(0)} s (before: ${baseline})`,
  )
  run.check(count <= baseline, `${kind}: ${count} entries are left, ${baseline} were there before`)
}

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
