/**
 * Visitors who come at a fixed rate, whatever the service does (an open loop): each asks for a challenge, sends its
 * solution and has the token redeemed, one after the other. Who is refused goes away. Latencies run from the moment that a
 * request is due, so waiting for a connection counts.
 */

import { connect, type Socket } from 'node:net'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { takeMark } from '../../bench/http/meter.ts'
import { startTicker, type Ticker } from '../../bench/http/ticker.ts'
import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { type Lifetimes, mintNonce } from '../../src/domain/nonce.ts'
import { FINGERPRINT } from '../support/client.ts'
import { TEST_SECRET, type TestSite } from '../support/service.ts'

export interface VisitorsSpec {
  /** On 127.0.0.1. */
  readonly port: number
  readonly site: TestSite
  readonly storeEpoch: number
  readonly lifetimes: Lifetimes
  readonly connections: number
  /** Infinity: as many as are answered. */
  readonly visitorsPerSecond: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Processes whose CPU time is measured. */
  readonly pids: readonly number[]
  /** Of the visitors, how many never send a solution. */
  readonly leaveShare?: number
  /** Otherwise they are counted only. */
  readonly keepsLatencies?: boolean
}

export interface Latencies {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Of the measured time. */
export interface VisitorsResult {
  readonly seconds: number
  readonly came: number
  /** Whose token was redeemed. */
  readonly served: number
  /** Who left with a challenge. */
  readonly left: number
  readonly admitted: Latencies
  readonly shed: Latencies
  /** Refused requests by step. */
  readonly shedOf: Readonly<Record<Step, number>>
  /** CPU time of the measured processes and of the load itself, over measured time. */
  readonly busy: number
  readonly ownBusy: number
  /** How late the load itself came to its turn: its latencies have as much of their own. */
  readonly ownLateP99Ms: number
  /** Answers that were neither 200 nor a well-formed 503 that says it is overloaded; some of them. */
  readonly bad: number
  readonly badAnswers: readonly string[]
}

export type Step = 'challenge' | 'verify' | 'redeem'

interface Request {
  readonly step: Step
  readonly visitor: number
  readonly dueMs: number
  readonly token: string
}

const SHOWN = 5
const LAST_ANSWERS_MS = 10_000
const READ_BYTES = 4096
const HEAD = 'Host: powgate\r\nContent-Type: application/json\r\n'
const CALLERS = 250

/** The address of one of 16 million visitors. */
const addressOf = (visitor: number) =>
  `10.${(visitor >> 16) & 0xff}.${(visitor >> 8) & 0xff}.${visitor & 0xff}`

/** So that the visitors of one run are not those of the one before, whose limits they would share. */
let nextVisitor = 0

export class Visitors {
  readonly #spec: VisitorsSpec
  readonly #keyring = new Keyring([TEST_SECRET])
  readonly #idle: Line[] = []
  readonly #lines: Line[]
  /** Follow-ups, which go before new visitors. */
  #queue: Request[] = []
  #queueHead = 0
  readonly #admittedMs: Samples
  readonly #shedMs: Samples
  readonly #shedOf = { challenge: 0, verify: 0, redeem: 0 }
  readonly #badAnswers: string[] = []
  #bad = 0
  #came = 0
  #served = 0
  #left = 0
  #startMs = 0
  #due = 0
  #isMeasuring = false
  #isOver = false
  #ticker: Ticker | undefined
  readonly #lateness: IntervalHistogram = monitorEventLoopDelay({ resolution: 1 })
  #redeemed = 0

  constructor(spec: VisitorsSpec) {
    this.#spec = spec
    this.#admittedMs = new Samples(spec.keepsLatencies ?? true)
    this.#shedMs = new Samples(spec.keepsLatencies ?? true)
    this.#lines = Array.from({ length: spec.connections }, () => new Line(this, spec.port))
  }

  async run(): Promise<VisitorsResult> {
    const { warmUpMs, measureMs, pids } = this.#spec
    await Promise.all(this.#lines.map(line => line.connected))
    this.#startMs = performance.now()
    this.#ticker = startTicker(() => this.#send())
    await sleep(warmUpMs)
    const from = takeMark(pids)
    this.#isMeasuring = true
    this.#lateness.enable()
    await sleep(measureMs)
    this.#isMeasuring = false
    this.#lateness.disable()
    const to = takeMark(pids)
    this.#isOver = true
    const giveUpAt = performance.now() + LAST_ANSWERS_MS
    while (this.#idle.length < this.#lines.length && performance.now() < giveUpAt) await sleep(20)
    const unanswered = this.#lines.length - this.#idle.length
    if (unanswered > 0) this.#note(`${unanswered} connections without an answer`)
    this.#ticker.stop()
    for (const line of this.#lines) line.close()
    const passedMs = to.atMs - from.atMs
    const cpuMs = to.usages.reduce((sum, usage, index) => sum + usage.cpuMs - from.usages[index]!.cpuMs, 0)
    return {
      seconds: passedMs / 1000,
      came: this.#came,
      served: this.#served,
      left: this.#left,
      admitted: this.#admittedMs.latencies(),
      shed: this.#shedMs.latencies(),
      shedOf: this.#shedOf,
      busy: cpuMs / passedMs,
      ownBusy: (to.generatorCpuMs - from.generatorCpuMs) / passedMs,
      ownLateP99Ms: Math.max(0, this.#lateness.percentile(99) / 1e6 - 1),
      bad: this.#bad,
      badAnswers: this.#badAnswers,
    }
  }

  free(line: Line): void {
    this.#idle.push(line)
    if (this.#startMs > 0) this.#send()
  }

  lost(why: string): void {
    if (!this.#isOver) this.#note(`a connection was lost: ${why}`)
  }

  answered(request: Request, answer: string): void {
    const passedMs = performance.now() - request.dueMs
    const status = answer.slice(9, 12)
    if (status === '503' && isOverloaded(answer, request.step)) {
      if (!this.#isMeasuring) return
      this.#shedMs.add(passedMs)
      this.#shedOf[request.step]++
      return
    }
    if (status === '200' && this.#goOn(request, answer)) {
      if (this.#isMeasuring) this.#admittedMs.add(passedMs)
    } else this.#note(answer)
  }

  /** @returns whether the answer is what it should be */
  #goOn({ step, visitor }: Request, answer: string): boolean {
    if (step === 'challenge') {
      if (leaves(visitor, this.#spec.leaveShare ?? 0)) {
        if (this.#isMeasuring) this.#left++
      } else this.#follow('verify', visitor, '')
      return answer.includes('"nonce":"')
    }
    if (step === 'redeem') {
      if (this.#isMeasuring) this.#served++
      return answer.includes('"success":true')
    }
    const start = answer.indexOf('"token":"') + 9
    this.#follow('redeem', visitor, answer.slice(start, answer.indexOf('"', start)))
    return answer.includes('"passed":true')
  }

  #follow(step: Step, visitor: number, token: string): void {
    this.#queue.push({ step, visitor, token, dueMs: performance.now() })
  }

  #note(answer: string): void {
    this.#bad++
    if (this.#badAnswers.length < SHOWN) this.#badAnswers.push(answer.slice(0, 600))
  }

  #send(): void {
    let now = performance.now()
    while (this.#idle.length > 0) {
      const next =
        this.#queueHead < this.#queue.length ? this.#queue[this.#queueHead++]! : this.#newVisitor(now)
      if (next === undefined) return
      if (this.#queueHead > 1000) {
        this.#queue = this.#queue.slice(this.#queueHead)
        this.#queueHead = 0
      }
      // In turn: one that is left alone for ten seconds is closed.
      this.#idle.shift()!.send(next, this.#text(next))
      now = performance.now()
    }
  }

  #newVisitor(now: number): Request | undefined {
    const { visitorsPerSecond } = this.#spec
    const dueMs =
      visitorsPerSecond === Infinity ? now : this.#startMs + (this.#due * 1000) / visitorsPerSecond
    if (dueMs > now || this.#isOver) return undefined
    this.#due++
    if (this.#isMeasuring) this.#came++
    return { step: 'challenge', visitor: nextVisitor++, dueMs, token: '' }
  }

  #text({ step, visitor, token }: Request): string {
    const { site, storeEpoch, lifetimes } = this.#spec
    const address = addressOf(visitor)
    if (step === 'challenge')
      return `GET /challenge HTTP/1.1\r\nX-Site-Key: ${site.siteKey}\r\nX-Forwarded-For: ${address}\r\n${HEAD}\r\n`
    if (step === 'redeem') {
      const body = `{"token":"${token}","expectedIp":"${address}"}`
      const caller = `172.16.0.${this.#redeemed++ % CALLERS}`
      return `POST /verify-token HTTP/1.1\r\nAuthorization: Bearer ${site.apiKey}\r\nX-Forwarded-For: ${caller}\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
    }
    const terms = { issuedAtMs: Date.now(), difficulty: 0 }
    const binding = { siteKey: site.siteKey, storeEpoch, lifetimes, address: parseAddress(address)! }
    const nonce = mintNonce(this.#keyring, terms, binding, visitor & 0x3fff)
    const body = `{"nonce":"${nonce}","counter":7,"fingerprintHash":"${FINGERPRINT}","environment":${ENVIRONMENT}}`
    return `POST /verify HTTP/1.1\r\nX-Site-Key: ${site.siteKey}\r\nX-Forwarded-For: ${address}\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
  }
}

const ENVIRONMENT = JSON.stringify({
  webdriver: false,
  chromeAbsent: false,
  swiftShader: false,
  noPlugins: false,
  notificationDenied: false,
  zeroScreen: false,
  noLanguages: false,
})

/** As README and the interface have it: code, Retry-After, CORS for browsers and none for backends. */
function isOverloaded(answer: string, step: Step): boolean {
  const hasRetry = /\r\nRetry-After: [1-9]\d*\r\n/.test(answer)
  const hasCors = answer.includes('\r\nAccess-Control-Allow-Origin: *\r\n')
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  const isRedemption = step === 'redeem'
  return (
    hasRetry &&
    hasCors === !isRedemption &&
    body.includes('"code":"overloaded"') &&
    body.startsWith('{"success":false,') === isRedemption
  )
}

/** One keep-alive connection with one request under way at most. */
class Line {
  readonly connected: Promise<void>
  readonly #owner: Visitors
  readonly #socket: Socket
  #request: Request | undefined
  #received = ''

  constructor(owner: Visitors, port: number) {
    this.#owner = owner
    const callback = (length: number, bytes: Uint8Array) =>
      this.#take((bytes as Buffer).toString('latin1', 0, length))
    const onread = { buffer: Buffer.alloc(READ_BYTES), callback }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    this.connected = new Promise((resolve, reject) => {
      this.#socket.once('connect', () => {
        owner.free(this)
        resolve()
      })
      this.#socket.on('error', reject)
    })
    this.#socket.once('close', () => owner.lost('it was closed'))
  }

  send(request: Request, text: string): void {
    this.#request = request
    this.#received = ''
    this.#socket.write(text, 'latin1')
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): boolean {
    this.#received = this.#received === '' ? text : this.#received + text
    const answer = this.#received
    const headEnd = answer.indexOf('\r\n\r\n')
    const at = answer.indexOf('Content-Length: ')
    const request = this.#request
    if (headEnd < 0 || request === undefined) return true
    if (answer.length < headEnd + 4 + Number.parseInt(answer.slice(at + 16, at + 24), 10)) return true
    this.#request = undefined
    this.#owner.answered(request, answer)
    this.#owner.free(this)
    return true
  }
}

/** Spread evenly over the visitors, by the golden ratio. */
function leaves(visitor: number, share: number): boolean {
  return share > 0 && (visitor * 0.6180339887498949) % 1 < share
}

class Samples {
  readonly #keeps: boolean
  readonly #ms: number[] = []
  #count = 0

  constructor(keeps: boolean) {
    this.#keeps = keeps
  }

  add(ms: number): void {
    this.#count++
    if (this.#keeps) this.#ms.push(ms)
  }

  latencies(): Latencies {
    const sorted = Float64Array.from(this.#ms).sort()
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
    return { count: this.#count, p50Ms: at(0.5), p99Ms: at(0.99) }
  }
}

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
