/**
 * A million inputs that none of our clients sends: no answer of powgate is a 5xx, no process ends, no memory is kept.
 *
 * Overload protection is off (POWGATE_OVERLOAD_MS=0). Otherwise most of such a flood would be refused unread with 503, and
 * would test nothing. Cases 2, 9 and 10 send odd requests to services that shed load.
 */

import { readFileSync } from 'node:fs'
import { parseAddress } from '../../../src/domain/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { mintNonce } from '../../../src/domain/nonce.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT } from '../../harness/client.ts'
import { freePort } from '../../harness/ports.ts'
import { childPids } from '../../harness/processes.ts'
import { v2Header } from '../../harness/proxy-header.ts'
import { RawConnection } from '../../harness/raw-http.ts'
import {
  lifetimesOf,
  type StoreKind,
  TEST_SECRET,
  type TestService,
  type TestSite,
  UNLIMITED,
} from '../../harness/service.ts'
import { untilReady } from '../../proxy/observer.ts'
import { type Seen, sendAll } from '../bad-input-lanes.ts'
import {
  type BadInput,
  badAdminInput,
  badInput,
  badProxyInput,
  mustBeAnswered,
  randomOf,
} from '../bad-inputs.ts'
import { KeptMemory } from '../kept-memory.ts'
import { EASY, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'

const INPUTS = 1_200_000
const RSS_GROWTH_MAX = 1.05
/** Greatest share of inputs for which no connection could be made. */
const UNDELIVERED_MAX = 0.01
/** Share of a part's inputs before memory is compared. One-time allocations need this, with a relay 180,000 inputs. */
const WARM_UP = 0.45
const LANES = 400
/** Share of a bounded run's time; the rest is for starting and stopping. */
const SENDING_SHARE = 0.6
/** The admin port accepts 128 connections. */
const ADMIN_LANES = 32
const ADMIN_SHARE = 0.03
const CLIENTS = 250

const NO_LIMITS = {
  ...UNLIMITED,
  // This case does not check the usual deadline, which a busy machine may miss.
  POWGATE_STORE_DEADLINE_MS: '5000',
} as const

interface Part {
  readonly name: string
  readonly kind: StoreKind
  readonly share: number
  readonly hasProxyHeaders: boolean
}

/** Each part, and its admin port, has inputs of its own. */
const PART_NUMBERS = 2 ** 24
const ADMIN_NUMBERS_FROM = 2 ** 23

const PARTS: readonly Part[] = [
  { name: 'redis', kind: 'redis', share: 1 / 3, hasProxyHeaders: false },
  { name: 'embedded', kind: 'embedded', share: 1 / 3, hasProxyHeaders: false },
  { name: 'PROXY protocol', kind: 'embedded', share: 1 / 3, hasProxyHeaders: true },
]

export const badInputs: TortureCase = {
  number: 1,
  name: 'bad-inputs',
  aim: 'no 5xx while the store is healthy, no worker exit, memory of a worker within 5 % after warm-up; honest requests are served',
  fullSize:
    '1,200,000 inputs: 400,000 on each store, 400,000 behind PROXY protocol headers; 3 % of them on the admin port',
  async run(run) {
    for (const part of PARTS) await underPart(run, part)
  },
}

const clientAddress = (index: number) => `127.40.1.${index % CLIENTS}`
/** Addresses of the trusted proxies, in parts with proxies. */
const proxyAddress = (index: number) => `127.41.1.${index % CLIENTS}`

async function underPart(run: Run, part: Part): Promise<void> {
  const adminPort = await freePort()
  const kept = new KeptMemory(run)
  const service = await run.service(part.kind, {
    ...NO_LIMITS,
    POWGATE_ADMIN_PORT: String(adminPort),
    LOG_LEVEL: 'error',
    ...kept.env,
    ...(part.hasProxyHeaders
      ? { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.41.0.0/16' }
      : {}),
  })
  const site = await service.createSite({ difficulty: EASY })
  await untilReady(service.url, site)
  const workers = childPids(service.pid)
  const memory = new Memory(kept, service.pid, workers)
  const honest = new HonestClients(run, service, site, part)
  run.defer(() => honest.stop())
  const judge = new Judge(run, part)
  const genuine = await Genuines.open(service, site, run)

  const total = Math.round(INPUTS * part.share)
  const numbersFrom = PARTS.indexOf(part) * PART_NUMBERS
  let index = 0
  let [visitorInputs, adminInputs] = [0, 0]
  let undelivered = 0
  run.defer(() => {
    index = total // sends nothing more, however the case ends
  })
  const startedAtMs = performance.now()
  const endsAtMs = startedAtMs + run.seconds(Number.POSITIVE_INFINITY, part.share * SENDING_SHARE) * 1000
  const isOver = () => index >= total || performance.now() > endsAtMs
  const sendUntil = (end: () => boolean) => {
    const next = (isAdmin: boolean) => () => {
      if (isOver() || end()) return undefined
      if (index % 50_000 === 0) run.progress(`${part.name}: ${index} inputs`)
      index++
      // Each port has numbers of its own, so that the inputs do not depend on which port is faster.
      const number = isAdmin ? ADMIN_NUMBERS_FROM + adminInputs++ : visitorInputs++
      const random = randomOf(run.seed, numbersFrom + number)
      const from = part.hasProxyHeaders && !isAdmin ? proxyAddress(number) : clientAddress(number)
      const own = genuine.of(from)
      const make = part.hasProxyHeaders ? badProxyInput : badInput
      return { index: number, input: isAdmin ? badAdminInput(random) : make(random, own), from }
    }
    const seen = (what: Seen) => judge.see(what)
    const admin = async () => {
      let sent = 0
      const nextAdmin = () => (sent++ < index * ADMIN_SHARE ? next(true)() : undefined)
      while (!isOver() && !end()) {
        undelivered += await sendAll({ port: adminPort, lanes: ADMIN_LANES, next: nextAdmin, seen })
        sent--
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
    const visitors = async () => {
      undelivered += await sendAll({ port: service.port, lanes: LANES, next: next(false), seen })
    }
    return Promise.all([visitors(), admin()])
  }
  const sendAmongHonest = async (end: () => boolean) => {
    honest.start()
    await sendUntil(end)
    await honest.stop()
  }
  if (run.isFull) {
    await sendAmongHonest(() => index >= total * WARM_UP)
    await memory.settle()
  }
  await sendAmongHonest(() => false)
  const seconds = (performance.now() - startedAtMs) / 1000

  run.size(`${index.toLocaleString('en-US')} inputs, ${part.name} (${Math.round(index / seconds)} a second)`)
  judge.report()
  const share = undelivered / index
  run.figure(`${part.name}: inputs that could not be delivered`, undelivered)
  run.check(share < UNDELIVERED_MAX, `${part.name}: ${undelivered} of ${index} inputs could not be delivered`)
  honest.report()
  // A bounded run is too short for the warm-up.
  if (run.isFull) await memory.judge(run, part.name)
  await checkCounters(run, part, adminPort)
  const left = childPids(service.pid)
  run.check(left.join() === workers.join(), `${part.name}: the workers were ${workers}, they are ${left}`)
  await service.stop()
  run.check(
    !/"level":"(error|fatal)"/.test(service.output),
    () => `${part.name}: errors in the log:\n${service.output.slice(-2000)}`,
  )
}

/** Checks what the service itself has counted, including answers that no client awaited. */
async function checkCounters(run: Run, { name }: Part, adminPort: number): Promise<void> {
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  const sumOf = (pattern: RegExp) =>
    [...metrics.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0)
  const answers = sumOf(/^powgate_requests_total\{.*\} (\d+)$/gm)
  const errors = sumOf(/^powgate_requests_total\{.*status="5\d\d".*\} (\d+)$/gm)
  const faults = sumOf(/^powgate_faults_total\{.*\} (\d+)$/gm)
  run.figure(`${name}: answers by the service's own count`, answers)
  run.check(answers > 0, `${name}: the service has counted no answer`)
  const which = metrics.split('\n').filter(line => /^powgate_requests_total\{.*status="5/.test(line))
  run.check(
    errors + faults === 0,
    `${name}: the service has counted ${errors} answers with 5xx, ${faults} faults: ${which}`,
  )
}

/** Finds what is wrong with an answer. */
class Judge {
  readonly #run: Run
  readonly #part: Part
  readonly #statuses = new Map<string, number>()
  #silent = 0

  constructor(run: Run, part: Part) {
    this.#run = run
    this.#part = part
  }

  see({ index, input, received, isClosed }: Seen): void {
    if (received === '') {
      this.#silent++
      if (mustBeAnswered(input)) this.#note('no answer', index, input, received)
    }
    for (const [, status] of received.matchAll(STATUS_LINE)) {
      this.#statuses.set(status!, (this.#statuses.get(status!) ?? 0) + 1)
      if (status! >= '500' && !isVersionRefusal(status!, received))
        this.#note(`an answer with ${status}`, index, input, received)
    }
    if (received !== '' && !received.startsWith('HTTP/1.1 ') && !isClosed)
      this.#note('an answer that is not HTTP/1.1', index, input, received)
  }

  #note(what: string, index: number, { family, parts }: BadInput, received: string): void {
    this.#run.check(
      false,
      () =>
        `${this.#part.name}, input ${index} (${family}): ${what}: ${JSON.stringify(received).slice(0, 300)} to ${JSON.stringify(parts).slice(0, 3000)}`,
    )
  }

  report(): void {
    const statuses = [...this.#statuses].sort().map(([status, count]) => `${count} x ${status}`)
    this.#run.check(this.#statuses.size > 0, `${this.#part.name}: nothing was answered`)
    this.#run.figure(`${this.#part.name}: answers`, [...statuses, `${this.#silent} x none`].join(', '))
  }
}

const STATUS_LINE = /HTTP\/1\.1 (\d{3}) /g

/** uWebSockets.js' own answer to a request line that it cannot parse: powgate has received no request. */
function isVersionRefusal(status: string, received: string): boolean {
  return status === '505' && received.includes('uWebSockets/20 Server')
}

/** Ordinary visitors and backends, who must get right answers all the time. */
class HonestClients {
  readonly #run: Run
  readonly #part: Part
  readonly #service: TestService
  readonly #site: TestSite
  readonly #failures: string[] = []
  #requests = 0
  #redeemed = 0
  #isOver = false
  #running: Promise<unknown> = Promise.resolve()

  constructor(run: Run, service: TestService, site: TestSite, part: Part) {
    this.#run = run
    this.#service = service
    this.#site = site
    this.#part = part
  }

  /** May be called more than once. */
  start(): void {
    this.#isOver = false
    const all = [this.#challenges(), this.#visits()]
    this.#running = Promise.all(all).catch(error => this.#note(false, (error as Error).message))
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  report(): void {
    const { name } = this.#part
    this.#run.figure(`${name}: honest requests meanwhile`, this.#requests)
    this.#run.check(this.#redeemed > 0, `${name}: no honest visit came to its end`)
    const first = this.#failures.slice(0, 3).join('; ')
    this.#run.check(first === '', `${name}: ${this.#failures.length} honest requests failed: ${first}`)
  }

  /** Requests challenges one after the other on one connection; in parts with proxies, as through a proxy. */
  async #challenges(): Promise<void> {
    const from = this.#part.hasProxyHeaders ? proxyAddress(7) : '127.0.0.7'
    const connection = await RawConnection.open(this.#service.port, from)
    if (this.#part.hasProxyHeaders) await connection.send(v2Header({ source: '203.0.113.7' }))
    const request = `GET /challenge HTTP/1.1\r\nHost: powgate\r\nX-Site-Key: ${this.#site.siteKey}\r\n\r\n`
    while (!this.#isOver) {
      const answer = await connection.request(request)
      this.#note(answer?.status === 200, `/challenge: ${answer?.status} ${answer?.body}`)
      if (answer === undefined) break
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    connection.close()
  }

  async #visits(): Promise<void> {
    const client = new Client(this.#service.url)
    while (!this.#isOver) {
      try {
        const token = await client.token(this.#site.siteKey)
        const answer = await client.verifyToken(this.#site.apiKey, { token, expectedIp: '127.0.0.1' })
        this.#note(answer.json?.success === true, `/verify-token: ${answer.text}`)
        if (answer.json?.success === true) this.#redeemed++
      } catch (error) {
        this.#note(false, (error as Error).message)
      }
      await new Promise(resolve => setTimeout(resolve, 1000))
    }
  }

  #note(isRight: boolean, problem: string): void {
    this.#requests++
    if (!isRight) this.#failures.push(problem)
  }
}

interface Sizes {
  readonly asItIs: readonly number[]
  readonly collected: readonly number[]
}

/** A second apart: pages go back to the system bit by bit. */
const COLLECTIONS = 15

/** Resident memory of processes, in bytes, without pages of the store's files, which belong to the system's cache. */
class Memory {
  readonly #kept: KeptMemory
  readonly #pids: readonly number[]
  readonly #settled: Sizes[] = []

  constructor(kept: KeptMemory, primary: number, workers: readonly number[]) {
    this.#kept = kept
    this.#pids = [primary, ...workers]
  }

  /** Measures while no requests come. */
  async settle(): Promise<void> {
    const asItIs = this.#now()
    let collected = asItIs
    for (let count = 0; count < COLLECTIONS; count++) {
      this.#kept.collect(this.#pids)
      await new Promise(resolve => setTimeout(resolve, 1000))
      collected = this.#now().map((bytes, index) => Math.min(bytes, collected[index]!))
    }
    this.#settled.push({ asItIs, collected })
  }

  /** Compares the workers' memory with the first measurement. */
  async judge(run: Run, part: string): Promise<void> {
    await this.settle()
    const [before, after] = [this.#settled[0]!, this.#settled.at(-1)!]
    for (let worker = 0; worker < this.#pids.length - 1; worker++) {
      const growth = after.collected[worker + 1]! / before.collected[worker + 1]!
      const name = `${part}: memory of worker ${worker} without garbage, after against before`
      run.checkTime(name, growth, RSS_GROWTH_MAX, 'x')
    }
    const inMib = (all: readonly number[]) => all.map(bytes => Math.round(bytes / 2 ** 20)).join(' ')
    const figure = (name: string, of: keyof Sizes) =>
      run.figure(
        `${part}: memory of primary and workers ${name}, MiB`,
        `${inMib(before[of])} before, ${inMib(after[of])} after`,
      )
    figure('with garbage', 'asItIs')
    figure('without', 'collected')
  }

  #now(): number[] {
    return this.#pids.map(pid => {
      try {
        const all = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])
        return (all - residentOfStore(readFileSync(`/proc/${pid}/smaps`, 'latin1'))) * 1024
      } catch {
        return Number.NaN // the process has ended, which is reported elsewhere
      }
    })
  }
}

/** @returns KiB of an LMDB file's pages that are resident in a process */
function residentOfStore(smaps: string): number {
  const sizes = smaps.matchAll(/\.mdb\n(?:[A-Z]\w+:.*\n)*?Rss:\s+(\d+) kB/g)
  return [...sizes].reduce((sum, [, kib]) => sum + Number(kib), 0)
}

const keyring = new Keyring([TEST_SECRET])
const LIFETIMES = lifetimesOf()

/** Solutions and tokens that the service would accept. */
class Genuines {
  readonly #site: TestSite
  readonly #mint: TokenMint
  readonly #storeEpoch: number

  private constructor(site: TestSite, mint: TokenMint, storeEpoch: number) {
    this.#site = site
    this.#mint = mint
    this.#storeEpoch = storeEpoch
  }

  static async open(service: TestService, site: TestSite, run: Run): Promise<Genuines> {
    const mint = await TokenMint.open(service.url, site, run.random.fork())
    return new Genuines(site, mint, mint.storeEpoch)
  }

  of(from: string) {
    const { siteKey } = this.#site
    const address = parseAddress(from)!
    const binding = { siteKey, storeEpoch: this.#storeEpoch, lifetimes: LIFETIMES, address }
    return {
      ...this.#site,
      token: () => this.#mint.mint(),
      // Any counter solves a challenge without difficulty.
      solution: (random: { below(end: number): number }) => ({
        nonce: mintNonce(keyring, { issuedAtMs: Date.now(), difficulty: 0 }, binding, random.below(2 ** 14)),
        counter: random.below(2 ** 31),
        solveTimeMs: random.below(5000),
        fingerprintHash: FINGERPRINT,
        environment: HONEST_ENVIRONMENT,
      }),
    }
  }
}
