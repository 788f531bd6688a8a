/**
 * Thousands of clients that send slowly or send nothing, with and without the PROXY protocol. Honest clients do not notice, and
 * the slow ones are closed.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../harness/eventually.ts'
import { connectionsPerProcess, workerPids } from '../../../harness/processes.ts'
import { v2Header } from '../../../harness/proxy-header.ts'
import type { Random } from '../../../harness/random.ts'
import { type TestService, type TestSite, UNLIMITED_CHALLENGES } from '../../../harness/service.ts'
import { challengeRequest, untilReady } from '../../../proxy/observer.ts'
import { kibOf } from '../memory.ts'
import { type Run, SHEDS_AS_SHIPPED, type TortureCase } from '../run.ts'
import { SLOW_KINDS, SlowCrowd } from '../slow-clients.ts'
import { Pool, type PoolOptions } from '../wire.ts'

const WORKERS = { full: 4, bounded: 2 } as const
/** Clients of each group. */
const COUNTS = {
  headers: { full: 2000, bounded: 100 },
  bodies: { full: 2000, bounded: 100 },
  idle: { full: 10_000, bounded: 500 },
} as const
/** Time within which the last slow client must be closed. */
const REAPED_MS = 20_000
/** Share of all clients that must be open when the honest have been measured. */
const OPEN_SHARE = 0.5
/** The same on a busy machine, in a run that judges no times. */
const REAPED_BOUNDED_MS = 60_000
const HONEST_PER_SECOND = 200
const HONEST_CONNECTIONS = 16
const BASELINE_SECONDS = 15
/** The first clients have 8 s, and to open all of them takes most of that. */
const CROWDED_SECONDS = 3

export const slowClients: TortureCase = {
  number: 10,
  name: 'slow-clients',
  aim: "honest clients' p99 below twice the baseline; all slow clients ended within 20 s",
  fullSize:
    '2,000 slow headers, 2,000 slow bodies, 10,000 idle; four workers; plain and behind the PROXY protocol',
  async run(run) {
    const [first, second] = [run.random.fork(), run.random.fork()]
    const plain = () => inMode(run.part('plain'), false, first)
    const relayed = () => inMode(run.part('relayed'), true, second)
    await run.each([plain, relayed], act => act())
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
  const { connected, failed } = await crowd.state()
  run.check(failed === 0, `${failed} slow clients could not connect`)
  const perWorker = connectionsPerProcess(service.port, workerPids(service.pid)).join(' ')
  run.size(`${connected} slow clients, connections per worker ${perWorker}`)
  const kib = ((residentMb(service) - memoryBefore) * 1024) / connected
  run.figure('memory of the workers, KiB a slow client', kib)
  const measured = await honest.during(run.seconds(CROWDED_SECONDS, 0.1), 'with slow clients')
  const { left } = await crowd.state()
  run.figure('slow clients that are connected when the honest have been measured', left)
  run.check(left >= OPEN_SHARE * connected || !run.isFull, `only ${left} of ${connected} are left by then`)
  honest.close()
  await reaped(run, crowd)
  run.checkTime('honest p99, of the baseline', measured / baseline, 2, 'times')
  await service.stop()
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
  const crowd = new SlowCrowd()
  run.defer(() => crowd.stop())
  await crowd.open(kinds, port, siteKey, header)
  await eventually(60_000, 'all connect', async () => {
    const { connected, failed } = await crowd.state()
    return connected + failed === kinds.length
  })
  return crowd
}

async function reaped(run: Run, crowd: SlowCrowd): Promise<void> {
  const patienceMs = run.isFull ? REAPED_MS + 5000 : REAPED_BOUNDED_MS
  const giveUpAt = performance.now() + patienceMs
  while ((await crowd.state()).left > 0 && performance.now() < giveUpAt) await sleep(50)
  const { left, leftKinds, livedMs } = await crowd.state()
  run.check(left === 0, `${left} slow clients were not ended: ${leftKinds.join(', ')}`)
  for (const group of Object.keys(COUNTS)) {
    const seconds = (livedMs[group] ?? 0) / 1000
    run.checkTime(`the last of the ${group} lived`, seconds, REAPED_MS / 1000, 's')
  }
  crowd.stop()
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

  /** @returns p99 of the latency, in ms */
  async during(seconds: number, what: string): Promise<number> {
    // Connections of before have been silent for seconds, and may be closed while the first request is on its way.
    this.#pool.close()
    this.#pool = new Pool(this.#options)
    const startMs = performance.now()
    const latencies: number[] = []
    const calls: Promise<void>[] = []
    for (let index = 0; index < HONEST_PER_SECOND * seconds; index++) {
      const dueMs = startMs + (index * 1000) / HONEST_PER_SECOND
      const restMs = dueMs - performance.now()
      if (restMs > 0) await sleep(restMs)
      const call = async () => {
        const ending = await this.#pool.call(this.#request)
        latencies.push(performance.now() - dueMs)
        const isRight = typeof ending === 'object' && ending.status === 200
        this.#run.check(isRight, () => `${what}: an honest client got ${JSON.stringify(ending)}`)
      }
      calls.push(call())
    }
    await Promise.all(calls)
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
