/**
 * Thousands of clients that send slowly, send nothing, or read no answer, with and without a PROXY protocol relay. Honest
 * clients do not notice, and the slow ones are closed.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../harness/eventually.ts'
import { connectionsPerProcess, workerPids } from '../../../harness/processes.ts'
import { v2Header } from '../../../harness/proxy-header.ts'
import type { Random } from '../../../harness/random.ts'
import { type TestService, type TestSite, UNLIMITED_CHALLENGES } from '../../../harness/service.ts'
import { challengeRequest, untilReady } from '../../../proxy/observer.ts'
import { KeptMemory, kibOf } from '../memory.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'
import { DEAF_KINDS, SLOW_KINDS, SlowClient, SlowCrowd } from '../slow-clients.ts'
import { Pool, type PoolOptions, requestText } from '../wire.ts'

const WORKERS = { full: 4, bounded: 2 } as const
/** Clients of each group. */
const COUNTS = {
  headers: { full: 2000, bounded: 100 },
  bodies: { full: 2000, bounded: 100 },
  idle: { full: 10_000, bounded: 500 },
} as const
/** Time within which the last slow client must be closed. */
const REAPED_MS = 20_000
/** Share of all clients open when the honest are measured. Opening them takes some of the 8 s that the first ones have. */
const OPEN_SHARE = 0.9
/** The same on a busy machine, in a run that judges no times. */
const REAPED_BOUNDED_MS = 60_000
/** Share of all clients that must be open for an honest request to count. */
const COUNTED_SHARE = 0.5
/** Least number of counted requests in a full run. */
const COUNTED_MIN = 500
const HONEST_PER_SECOND = 200
const HONEST_CONNECTIONS = 16
const BASELINE_SECONDS = 15
const DEAF_SECONDS = 10
/** Greatest growth of a worker: what a busy worker needs for itself, and an answer for each connection. */
const DEAF_GROWTH_MB = 75
const COLLECT_MS = 500
/**
 * Greatest p99 of the honest clients. Garbage is collected all the time; a connection that is answered alone takes a second.
 */
const DEAF_P99_MS_MAX = 250
/** Least size of an answer, in sizes of its request: kept answers would make memory grow by this multiple of what was sent. */
const ANSWER_TIMES = 4
/** Longest time to send enough requests for kept answers to be visible. */
const DEAF_SECONDS_MAX = 60

export const slowClients: TortureCase = {
  number: 10,
  name: 'slow-clients',
  aim: "honest clients' p99 below twice the baseline; all slow clients ended within 20 s; nothing is kept for those who do not read",
  fullSize:
    '2,000 slow headers, 2,000 slow bodies, 10,000 idle, 20 that take no answers; four workers; plain and behind the PROXY protocol relay',
  async run(run) {
    const [first, second] = [run.random.fork(), run.random.fork()]
    const plain = () => inMode(run.part('plain'), false, first)
    const relayed = () => inMode(run.part('relayed'), true, second)
    await run.each([plain, relayed, () => crowded(run)], act => act())
  },
}

async function inMode(run: Run, isRelayed: boolean, random: Random): Promise<void> {
  const header = isRelayed ? v2Header() : Buffer.alloc(0)
  const settings = {
    ...UNLIMITED_CHALLENGES,
    POWGATE_WORKERS: String(run.count(WORKERS.full, WORKERS.bounded)),
    ...(isRelayed ? { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.0.0.1' } : {}),
  }
  // A machine with other users may have too little time for the honest clients.
  const service = await run.service('embedded', { ...settings, ...(run.isFull ? SHEDS_AS_SHIPPED : {}) })
  const site = await service.createSite()
  await untilReady(service.url, site)
  const honest = new Honest(run, service, site, isRelayed)
  await honest.during(run.seconds(BASELINE_SECONDS, 0.05), 'warm-up')
  const baseline = await honest.during(run.seconds(BASELINE_SECONDS, 0.1), 'alone')

  const memoryBefore = residentMb(service)
  const crowd = await openAll(run, random, { port: service.port, siteKey: site.siteKey, header })
  const { connected } = crowd.state
  const perWorker = connectionsPerProcess(service.port, workerPids(service.pid)).join(' ')
  run.size(`${connected} slow clients, connections per worker ${perWorker}`)
  const kib = ((residentMb(service) - memoryBefore) * 1024) / connected
  run.figure('memory of the workers, KiB a slow client', kib)
  const open = crowd.state.left
  run.figure('slow clients that are connected when the honest are measured', open)
  const areEnough = open >= OPEN_SHARE * connected || !run.isFull
  run.check(areEnough, `only ${open} of ${connected} are left by then`)
  const areThere = () => crowd.state.left >= COUNTED_SHARE * connected
  const measured = await honest.during(run.seconds(BASELINE_SECONDS, 0.1), 'with slow clients', areThere)
  honest.close()
  const toDeaf = async () => {
    const kept = new KeptMemory(run)
    const env = { ...kept.env, ...settings, ...SHEDS_AS_SHIPPED }
    await deaf(run, await run.service('embedded', env), kept, header)
  }
  // Runs while the slow clients wait for their end, in a run that judges no times.
  const early = run.isFull ? undefined : toDeaf()
  await Promise.all([early, reaped(run, crowd)])
  run.checkTime('honest p99, of the baseline', measured / baseline, 2, 'times')
  await service.stop()
  if (run.isFull) await toDeaf()
}

/** Opens the same number of each kind in a group, with all kinds mixed. */
async function openAll(
  run: Run,
  random: Random,
  { port, siteKey, header }: { port: number; siteKey: string; header: Buffer },
): Promise<SlowCrowd> {
  const kinds: number[] = []
  for (const [group, { full, bounded }] of Object.entries(COUNTS)) {
    const ofGroup = SLOW_KINDS.filter(kind => kind.group === group).map(kind => SLOW_KINDS.indexOf(kind))
    for (let index = 0; index < run.count(full, bounded); index++)
      kinds.push(ofGroup[index % ofGroup.length]!)
  }
  for (let index = kinds.length - 1; index > 0; index--) {
    const other = random.below(index + 1)
    ;[kinds[index], kinds[other]] = [kinds[other]!, kinds[index]!]
  }
  const crowd = new SlowCrowd({ kinds, port, siteKey, header: header.toString('hex') })
  run.defer(() => crowd.stop())
  const isThere = () => crowd.state.connected + crowd.state.failed === kinds.length
  await eventually(60_000, () => `all connect: ${JSON.stringify(crowd.state)}`, isThere)
  run.check(crowd.state.failed === 0, `${crowd.state.failed} of ${kinds.length} could not connect`)
  return crowd
}

async function reaped(run: Run, crowd: SlowCrowd): Promise<void> {
  const patienceMs = run.isFull ? REAPED_MS + 5000 : REAPED_BOUNDED_MS
  const giveUpAt = performance.now() + patienceMs
  while (crowd.state.left > 0 && performance.now() < giveUpAt) await sleep(50)
  const { left, leftKinds, livedMs } = crowd.state
  run.check(crowd.isAlive, "the slow clients' process has ended")
  run.check(left === 0, `${left} slow clients were not ended: ${leftKinds.join(', ')}`)
  for (const group of Object.keys(COUNTS)) {
    const seconds = (livedMs[group] ?? 0) / 1000
    run.checkTime(`the last of the ${group} lived`, seconds, REAPED_MS / 1000, 's')
  }
  crowd.stop()
}

/** Clients that send requests as fast as they can and read nothing. A service that kept the answers would run out of memory. */
async function deaf(run: Run, service: TestService, kept: KeptMemory, header: Buffer): Promise<void> {
  const site = await service.createSite()
  await untilReady(service.url, site)
  const honest = new Honest(run, service, site, header.length > 0)
  const before = residentMb(service)
  const clients: SlowClient[] = []
  run.defer(() => {
    for (const client of clients) client.close()
  })
  const startMs = performance.now()
  const seconds = run.seconds(DEAF_SECONDS, 0.2)
  const boundMb = DEAF_GROWTH_MB * workerPids(service.pid).length
  const enough = (boundMb * 1e6) / ANSWER_TIMES
  let connections = 0
  let ended = 0
  const sent = () => clients.reduce((sum, { bytesSent }) => sum + bytesSent, ended)
  const isOver = () => {
    const passed = (performance.now() - startMs) / 1000
    return passed > (run.isFull ? DEAF_SECONDS_MAX : seconds) || (passed > seconds && sent() > enough)
  }
  // The garbage of so many requests would count as much as kept memory.
  const stopCollecting = run.every(COLLECT_MS, () => kept.collect(workerPids(service.pid)))
  let most = before
  // In a bounded run, on a machine with other users, these requests may be too many to be admitted.
  const served = run.isFull ? honest.during(seconds, 'with clients that take no answer') : undefined
  while (!isOver()) {
    for (const [index, kind] of DEAF_KINDS.entries()) {
      for (let copy = 0; copy < 4; copy++) {
        const at = index * 4 + copy
        if (clients[at] !== undefined && clients[at].endedAtMs === undefined) continue
        ended += clients[at]?.bytesSent ?? 0
        clients[at] = new SlowClient(kind, service.port, '', header)
        connections++
      }
    }
    most = Math.max(most, residentMb(service))
    await sleep(100)
  }
  if (served !== undefined)
    run.checkTime('honest p99 with clients that take no answer', await served, DEAF_P99_MS_MAX, 'ms')
  honest.close()
  stopCollecting()
  const bytes = sent()
  run.size(`${connections} clients that take no answer sent ${(bytes / 1e6).toFixed(1)} MB of requests`)
  run.figure('memory of the workers before and at most, MB', `${before.toFixed(0)}, ${most.toFixed(0)}`)
  const grownMb = most - before
  run.check(grownMb < boundMb, `the workers grew by ${grownMb.toFixed(0)} MB for clients that take no answer`)
  run.check(bytes > enough || !run.isFull, `the deaf sent only ${bytes} bytes, too few to show anything`)
  await service.stop()
}

/** Connections above the bound are closed at once; after twice this time, all silent ones. */
const CLOSED_SECONDS = 5

/** Above its bound a worker closes new connections, and accepts them again when others have ended. */
async function crowded(run: Run): Promise<void> {
  const bound = 50
  const service = await run.service('embedded', {
    POWGATE_WORKERS: '1',
    POWGATE_CONNECTIONS_MAX: String(bound),
  })
  const silent = SLOW_KINDS.find(({ name }) => name === 'says nothing')!
  const open = () => new SlowClient(silent, service.port, '', Buffer.alloc(0))
  const clients = Array.from({ length: bound * 3 }, open)
  const closeAll = () => clients.forEach(client => void client.close())
  run.defer(closeAll)
  const isOver = () => clients.filter(({ endedAtMs }) => endedAtMs !== undefined).length >= bound * 2
  await eventually(20_000, 'those above the bound are closed', isOver)
  const left = clients.filter(({ endedAtMs }) => endedAtMs === undefined)
  run.check(left.length <= bound, `${left.length} connections are open, more than ${bound}`)
  const livedMs = clients.map(({ connectedAtMs, endedAtMs }) =>
    connectedAtMs === undefined || endedAtMs === undefined ? 0 : endedAtMs - connectedAtMs,
  )
  const seconds = Math.max(...livedMs) / 1000
  run.checkTime('the last above the bound lived', seconds, CLOSED_SECONDS, 's')
  const isTold = () => /POWGATE_CONNECTIONS_MAX are open/.test(service.output)
  await eventually(20_000, 'a line tells of the bound', isTold)
  closeAll()
  const pool = new Pool({ port: service.port, connections: 1, timeoutMs: 5000 })
  run.defer(() => pool.close())
  const served = async () => typeof (await pool.call(requestText('GET /nothing', []))) === 'object'
  await eventually(20_000, 'new connections are taken again', served)
  run.size(`${bound * 3} connections to a worker that takes ${bound}`)
}

/** Requests at a steady rate, each of which must be answered. */
class Honest {
  readonly #run: Run
  readonly #request: string
  readonly #options: PoolOptions
  #pool: Pool

  constructor(run: Run, { port }: TestService, { siteKey }: TestSite, isRelayed: boolean) {
    this.#run = run
    this.#request = challengeRequest(siteKey)
    // From an address that is no proxy's, so that no header is expected.
    const from = isRelayed ? { localAddress: '127.0.0.2' } : {}
    this.#options = { port, connections: HONEST_CONNECTIONS, timeoutMs: 20_000, ...from }
    this.#pool = new Pool(this.#options)
    run.defer(() => this.close())
  }

  /** @returns p99 of the latency, in ms, of requests sent while `counts` held; of all requests, if there are none */
  async during(seconds: number, what: string, counts = () => true): Promise<number> {
    // Connections of before have been silent for seconds, and may be closed while the first request is on its way.
    this.#pool.close()
    this.#pool = new Pool(this.#options)
    const startMs = performance.now()
    const all: number[] = []
    const counted: number[] = []
    const calls: Promise<void>[] = []
    for (let index = 0; index < HONEST_PER_SECOND * seconds; index++) {
      const dueMs = startMs + (index * 1000) / HONEST_PER_SECOND
      const restMs = dueMs - performance.now()
      if (restMs > 0) await sleep(restMs)
      const isCounted = counts()
      const call = async () => {
        const ending = await this.#pool.call(this.#request)
        const latency = performance.now() - dueMs
        all.push(latency)
        if (isCounted) counted.push(latency)
        const isRight = typeof ending === 'object' && ending.status === 200
        this.#run.check(isRight, () => `${what}: an honest client got ${JSON.stringify(ending)}`)
      }
      calls.push(call())
    }
    await Promise.all(calls)
    const areEnough = counted.length >= COUNTED_MIN || !this.#run.isFull
    this.#run.check(areEnough, `${what}: only ${counted.length} requests were sent meanwhile`)
    const latencies = counted.length > 0 ? counted : all
    latencies.sort((a, b) => a - b)
    const p99 = latencies[Math.floor(latencies.length * 0.99)]!
    this.#run.figure(`${what}: honest p99, ms`, `${p99.toPrecision(3)} of ${latencies.length}`)
    return p99
  }

  close(): void {
    this.#pool.close()
  }
}

/** The sum over all workers. */
const residentMb = ({ pid }: TestService) =>
  workerPids(pid).reduce((sum, worker) => sum + kibOf(worker, 'VmRSS'), 0) / 1024
