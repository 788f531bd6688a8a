/**
 * Visitors at a steady rate (an open loop) over a few keep-alive connections. Each fetches a challenge, submits a solution
 * and has its token redeemed, and every answer is checked. Failures are recorded with their times.
 */

import { connect, type Socket } from 'node:net'
import { Keyring } from '../../src/domain/keyring.ts'
import { readToken } from '../../src/domain/token.ts'
import { Client } from './client.ts'
import { visitorAddress } from './load/addresses.ts'
import { type Step, VisitorRequests } from './load/visitor-requests.ts'
import { lifetimesOf, TEST_SECRET, type TestSite, UNLIMITED_REDEMPTIONS } from './service.ts'

/** Settings of the service: this process sends the requests of all visitors, and redeems all tokens. */
export const STEADY_LOAD_SETTINGS = {
  POWGATE_TRUSTED_PROXIES: '127.0.0.0/8',
  ...UNLIMITED_REDEMPTIONS,
} as const

export interface Failure {
  readonly step: Step
  /** By `performance.now`. */
  readonly sentAtMs: number
  readonly failedAtMs: number
  /** The answer's start, or what happened to the connection. */
  readonly what: string
}

export interface SteadyLoadOptions {
  /** Port of the proxy on 127.0.0.1. */
  readonly port: number
  readonly connections: number
  readonly site: TestSite
  readonly storeEpoch: number
  /** As in RequestTarget. */
  readonly difficulty?: number
}

interface Job {
  readonly step: Step
  readonly visitor: number
  readonly request: string
  sentAtMs: number
}

const TICK_MS = 2
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
  readonly #requests: VisitorRequests
  readonly #lanes: Lane[]
  /** The longest idle first, so that all connections take part at any rate. */
  readonly #idle: Lane[] = []
  /** Next steps of visitors that have begun come before new visitors. */
  readonly #queue: Job[] = []
  #visitors = 0
  /** Requests that are due and not sent yet. */
  #due = 0
  #ratePerMs = 0
  #dueAtMs = 0
  readonly #timer: NodeJS.Timeout

  constructor(options: SteadyLoadOptions) {
    this.#requests = new VisitorRequests({ ...options, lifetimes: lifetimesOf(STEADY_LOAD_SETTINGS) })
    this.#lanes = Array.from({ length: options.connections }, () => new Lane(options.port, this))
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  get sent(): number {
    const { challenge, verify, redeem } = this.answers
    return challenge + verify + redeem + this.failures.length
  }

  /** Requests without an answer so far. */
  get underWay(): number {
    return this.#lanes.filter(lane => lane.isBusy).length
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
    await new Promise(resolve => setTimeout(resolve, ms))
    const perSecond = ((this.sent - sent) / (performance.now() - startedAtMs)) * 1000
    this.setRate(0)
    return perSecond
  }

  /** Sends no more requests; resolves when all are answered. */
  async stop(): Promise<void> {
    this.setRate(0)
    this.#queue.length = 0
    const giveUpAt = performance.now() + 15_000
    while (this.underWay > 0 && performance.now() < giveUpAt)
      await new Promise(resolve => setTimeout(resolve, 10))
    clearInterval(this.#timer)
    for (const lane of this.#lanes) lane.close()
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
      this.#idle.shift()!.send(this.#queue.shift() ?? this.#newVisitor())
    }
  }

  #newVisitor(): Job {
    const visitor = this.#visitors++
    return { step: 'challenge', visitor, request: this.#requests.challenge(visitor), sentAtMs: 0 }
  }

  /** Called by a lane that can send a request. */
  free(lane: Lane): void {
    this.#idle.push(lane)
    this.#sendDue()
  }

  /** Called by a lane whose connection is lost. */
  lost(lane: Lane): void {
    const index = this.#idle.indexOf(lane)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  answered(job: Job, answer: string): void {
    const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
    const isOk = answer.startsWith('HTTP/1.1 200 ')
    const json = isOk ? JSON.parse(body) : {}
    const { step, visitor } = job
    const goOn = (next: Step, request: string) =>
      this.#queue.push({ step: next, visitor, request, sentAtMs: 0 })
    if (step === 'challenge' && typeof json.nonce === 'string') goOn('verify', this.#requests.verify(visitor))
    else if (step === 'verify' && json.passed === true)
      goOn('redeem', this.#requests.redeem(visitor, json.token))
    else if (step !== 'redeem' || json.success !== true || json.ip !== visitorAddress(visitor)) {
      this.failed(job, answer)
      return
    }
    this.answers[step]++
  }

  failed({ step, sentAtMs }: Job, what: string): void {
    this.failures.push({ step, sentAtMs, failedAtMs: performance.now(), what: what.slice(0, BROKEN_SHOWN) })
  }
}

/** One keep-alive connection with at most one unanswered request; a lost connection is replaced. */
class Lane {
  readonly #port: number
  readonly #load: SteadyLoad
  #socket: Socket
  #job: Job | undefined
  #received: Buffer = Buffer.alloc(0)
  #isClosed = false

  constructor(port: number, load: SteadyLoad) {
    this.#port = port
    this.#load = load
    this.#socket = this.#connect()
  }

  get isBusy(): boolean {
    return this.#job !== undefined
  }

  send(job: Job): void {
    job.sentAtMs = performance.now()
    this.#job = job
    this.#received = Buffer.alloc(0)
    this.#socket.write(job.request)
  }

  close(): void {
    this.#isClosed = true
    this.#socket.destroy()
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    let problem = 'the connection was closed'
    socket.once('connect', () => this.#load.free(this))
    socket.on('data', chunk => this.#take(chunk))
    socket.once('error', error => {
      problem = error.message
    })
    socket.once('close', () => {
      const job = this.#job
      this.#job = undefined
      this.#load.lost(this)
      if (this.#isClosed) return
      if (job !== undefined) this.#load.failed(job, problem)
      setTimeout(() => {
        if (!this.#isClosed) this.#socket = this.#connect()
      }, 5)
    })
    return socket
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const answer = this.#received.toString('latin1')
    const head = answer.slice(0, answer.indexOf('\r\n\r\n') + 4)
    const length = head.length + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const job = this.#job
    if (head.length < 4 || answer.length < length || job === undefined) return
    this.#job = undefined
    this.#load.answered(job, answer)
    // The proxy announces in its answer that it will close the connection.
    if (/\r\nconnection: close/i.test(head)) this.#socket.destroy()
    else this.#load.free(this)
  }
}
