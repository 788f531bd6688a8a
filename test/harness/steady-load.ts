/**
 * Visitors at a steady rate (an open loop) over a few keep-alive connections. Each fetches a challenge, submits a solution
 * and has its token redeemed, and every answer is checked. Failures are recorded with their times.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { Keyring } from '../../src/domain/keyring.ts'
import { readToken } from '../../src/domain/token.ts'
import { Client } from './client.ts'
import { visitorAddress } from './load/addresses.ts'
import { type Step, VisitorRequests } from './load/visitor-requests.ts'
import { type RawAnswer, RawConnection } from './raw-http.ts'
import { lifetimesOf, TEST_SECRET, type TestSite, UNLIMITED_REDEMPTIONS } from './service.ts'

/** Settings of the service: this process sends the requests of all visitors, and redeems all tokens. */
export const STEADY_LOAD_SETTINGS = {
  POWGATE_TRUSTED_PROXIES: '127.0.0.0/8',
  ...UNLIMITED_REDEMPTIONS,
} as const

interface Failure {
  readonly step: Step
  readonly sentAtMs: number
  readonly failedAtMs: number
  readonly what: string
}

interface SteadyLoadOptions {
  readonly port: number
  readonly connections: number
  readonly site: TestSite
  readonly storeEpoch: number
  readonly difficulty?: number
}

interface Job {
  readonly step: Step
  readonly visitor: number
  readonly request: string
}

const TICK_MS = 2
const RECONNECT_MS = 5
const BROKEN_SHOWN = 300

/** The store's epoch, read from a token of one whole flow by the real client. */
export async function storeEpochOf(url: string, site: TestSite): Promise<number> {
  const token = await new Client(url).token(site.siteKey)
  const reading = readToken(new Keyring([TEST_SECRET]), token)
  if (reading.status !== 'genuine') throw new Error('the service signs with another secret')
  return reading.claims.storeEpoch
}

export class SteadyLoad {
  readonly failures: Failure[] = []
  readonly answers: Record<Step, number> = { challenge: 0, verify: 0, redeem: 0 }
  underWay = 0
  readonly #requests: VisitorRequests
  readonly #connections = new Set<RawConnection>()
  /** What takes the next job: the longest idle connection first, so that all take part at any rate. */
  #idle: ((job: Job | undefined) => void)[] = []
  /** Next steps of visitors that have begun come before new visitors. */
  readonly #queue: Job[] = []
  #visitors = 0
  /** Requests that are due and not sent yet. */
  #due = 0
  #ratePerMs = 0
  #dueAtMs = 0
  readonly #timer: NodeJS.Timeout
  #isOver = false

  constructor({ port, connections, ...target }: SteadyLoadOptions) {
    this.#requests = new VisitorRequests({ ...target, lifetimes: lifetimesOf(STEADY_LOAD_SETTINGS) })
    for (let lane = 0; lane < connections; lane++) void this.#keepConnected(port)
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  get sent(): number {
    const { challenge, verify, redeem } = this.answers
    return challenge + verify + redeem + this.failures.length
  }

  setRate(requestsPerSecond: number): void {
    this.#ratePerMs = requestsPerSecond / 1000
    this.#dueAtMs = performance.now()
    this.#due = 0
  }

  /** Measures the capacity in requests per second: sends as fast as answers come, for this time. */
  async capacity(ms: number): Promise<number> {
    this.setRate(1e6)
    const [sent, startedAtMs] = [this.sent, performance.now()]
    await sleep(ms)
    const perSecond = ((this.sent - sent) / (performance.now() - startedAtMs)) * 1000
    this.setRate(0)
    return perSecond
  }

  /** Sends no more requests; resolves when all are answered. */
  async stop(): Promise<void> {
    this.setRate(0)
    this.#queue.length = 0
    const giveUpAt = performance.now() + 15_000
    while (this.underWay > 0 && performance.now() < giveUpAt) await sleep(10)
    this.#isOver = true
    clearInterval(this.#timer)
    for (const connection of this.#connections) connection.close()
  }

  #tick(): void {
    const now = performance.now()
    this.#due += (now - this.#dueAtMs) * this.#ratePerMs
    this.#dueAtMs = now
    this.#sendDue()
  }

  #sendDue(): void {
    while (this.#due >= 1 && this.#idle.length > 0) {
      this.#due--
      this.#idle.shift()!(this.#queue.shift() ?? this.#newVisitor())
    }
  }

  #newVisitor(): Job {
    const visitor = this.#visitors++
    return { step: 'challenge', visitor, request: this.#requests.challenge(visitor) }
  }

  /** Replaces a lost connection. */
  async #keepConnected(port: number): Promise<void> {
    while (!this.#isOver) {
      const connection = await RawConnection.open(port).catch(() => undefined)
      if (connection !== undefined) await this.#serve(connection)
      await sleep(RECONNECT_MS)
    }
  }

  /** Over a keep-alive connection, with at most one unanswered request. */
  async #serve(connection: RawConnection): Promise<void> {
    this.#connections.add(connection)
    let isLost = () => {}
    connection.socket.once('close', () => isLost())
    while (!connection.isClosed && !this.#isOver) {
      const job = await new Promise<Job | undefined>(take => {
        isLost = () => {
          this.#idle = this.#idle.filter(other => other !== take)
          take(undefined)
        }
        this.#idle.push(take)
        this.#sendDue()
      })
      if (job === undefined) break
      const sentAtMs = performance.now()
      this.underWay++
      const answer = await connection.request(job.request).catch(() => undefined)
      this.underWay--
      if (answer === undefined) this.#failed(job, sentAtMs, 'the connection was closed')
      else this.#answered(job, sentAtMs, answer)
      // The proxy announces in its answer that it will close the connection.
      if (answer?.headers.connection === 'close') break
    }
    connection.close()
    this.#connections.delete(connection)
  }

  #answered(job: Job, sentAtMs: number, { status, json, body }: RawAnswer): void {
    const { step, visitor } = job
    const next = (step: Step, request: string) => this.#queue.push({ step, visitor, request })
    if (step === 'challenge' && typeof json?.nonce === 'string')
      next('verify', this.#requests.verify(visitor))
    else if (step === 'verify' && json?.passed === true)
      next('redeem', this.#requests.redeem(visitor, json.token))
    else if (step !== 'redeem' || json?.success !== true || json.ip !== visitorAddress(visitor))
      return this.#failed(job, sentAtMs, `${status} ${body}`)
    this.answers[step]++
  }

  #failed({ step }: Job, sentAtMs: number, what: string): void {
    this.failures.push({ step, sentAtMs, failedAtMs: performance.now(), what: what.slice(0, BROKEN_SHOWN) })
  }
}
