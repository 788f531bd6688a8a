/**
 * Visitors who come at a fixed rate, however the service responds (an open loop). Each requests a challenge, sends its
 * solution and has the token redeemed, one after the other, over one connection. A visitor who is refused leaves.
 *
 * Latencies count from the moment when a request is written. They include the delay of this process's own event loop before
 * an answer is read; this delay is reported separately.
 *
 * They run in a process of their own, with its own CPU time. This file is also the entry of that process.
 */

import { connect, type Socket } from 'node:net'
import { createHistogram, type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  OverloadAnswers,
  type RequestTarget,
  type Step,
  VisitorRequests,
} from '../../harness/load/visitor-requests.ts'
import { type Mark, stretchBetween, takeMark } from '../../harness/measure.ts'
import { carryOut, OrderProcess } from '../../harness/processes.ts'
export interface VisitorsSpec extends RequestTarget {
  /** Port on 127.0.0.1. */
  readonly port: number
  /** Most visitors at the same time. */
  readonly connections: number
  /** Whether each visitor opens a connection; otherwise they share open ones. */
  readonly isShortLived?: boolean
  /** Infinity: a new visitor whenever one leaves. */
  readonly visitorsPerSecond: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** The load after the measured time. */
  readonly after?: { readonly visitorsPerSecond: number; readonly ms: number }
  /** Processes whose CPU time is measured. */
  readonly pids: readonly number[]
  /** Share of visitors who never send a solution. */
  readonly leaveShare?: number
}

export interface Latencies {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Of the measured time, unless another is named. */
export interface VisitorsResult {
  readonly seconds: number
  /** Visitors whose first request was written. */
  readonly came: number
  /** Visitors whose token was redeemed. */
  readonly served: number
  /** Visitors who left with a challenge. */
  readonly left: number
  readonly admitted: Latencies
  readonly shed: Latencies
  /** From the start of a connection to its first request. */
  readonly connecting: Latencies
  /** Refused requests by step, from the first visitor to the last. */
  readonly shedOf: Readonly<Record<Step, number>>
  /** With `after`: how long after the measured time the last refusal came; 0 if none did. */
  readonly lastShedMs: number
  /** CPU time of the measured processes and of the load itself, divided by the measured time. */
  readonly busy: number
  readonly ownBusy: number
  /** Delay of the load's own event loop. */
  readonly ownLateP50Ms: number
  readonly ownLateP99Ms: number
  /** Number of all answers that were neither as expected nor a well-formed 503 for overload; then some of them. */
  readonly bad: number
  readonly badAnswers: readonly string[]
}

/** Refused requests of all steps, from the first visitor to the last. */
export const refusalsOf = ({ shedOf }: VisitorsResult) => shedOf.challenge + shedOf.verify + shedOf.redeem

const SHOWN = 5
const CONNECTING_MAX = 200
const LAST_ANSWERS_MS = 10_000
const TICK_MS = 1
/**
 * In a tick, so that answers are read in between. Opening a connection takes 40 us or more, sending a request a quarter of
 * that.
 */
const OPENED_MAX = 64
const SENT_MAX = 256
/** Visitors due for longer than this, while all connections are in use, do not come: the rate would be another one. */
const DUE_MS_MAX = 100
/** The sleep of the timer that measures the event loop's delay. */
const DELAY_RESOLUTION_MS = 1

/** Continues over all runs, because visitors with the same addresses would share limits. */
let nextVisitor = 0

class Visitors {
  readonly #spec: VisitorsSpec
  readonly #requests: VisitorRequests
  readonly #overloadAnswers = new OverloadAnswers()
  readonly #kept: Line[] = []
  /** First in, first out: a connection unused for ten seconds is closed. */
  readonly #idle: Line[] = []
  readonly #shortLived = new Set<Line>()
  readonly #admitted = new Times()
  readonly #shed = new Times()
  readonly #connecting = new Times()
  readonly #shedOf = { challenge: 0, verify: 0, redeem: 0 }
  readonly #badAnswers: string[] = []
  #bad = 0
  #came = 0
  #served = 0
  #left = 0
  #perSecond = 0
  #rateFromMs = 0
  /** Visitors begun since the rate was set. */
  #begun = 0
  #measuredUntilMs = Number.POSITIVE_INFINITY
  #lastShedMs = 0
  #isMeasuring = false
  #isOver = false
  readonly #lateness: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })

  constructor(spec: VisitorsSpec) {
    this.#spec = spec
    this.#requests = new VisitorRequests(spec)
  }

  async run(): Promise<VisitorsResult> {
    const { isShortLived, visitorsPerSecond, warmUpMs, measureMs, after, pids } = this.#spec
    if (!isShortLived) await this.#openKept()
    this.#setRate(visitorsPerSecond)
    const tickMax = isShortLived ? OPENED_MAX : SENT_MAX
    const timer = setInterval(() => this.#sendDue(tickMax), TICK_MS)
    await sleep(warmUpMs)
    const from = takeMark(pids)
    this.#isMeasuring = true
    this.#lateness.enable()
    await sleep(measureMs)
    this.#isMeasuring = false
    this.#lateness.disable()
    const to = takeMark(pids)
    this.#measuredUntilMs = performance.now()
    if (after !== undefined) {
      this.#setRate(after.visitorsPerSecond)
      await sleep(after.ms)
    }
    this.#isOver = true
    await this.#lastAnswers()
    clearInterval(timer)
    for (const line of [...this.#kept, ...this.#shortLived]) line.close()
    return this.#result(from, to)
  }

  /** A few hundred at a time: a listener's backlog holds 512, and others would wait for a second. */
  async #openKept(): Promise<void> {
    const { port, connections } = this.#spec
    while (this.#kept.length < connections) {
      const end = Math.min(connections, this.#kept.length + CONNECTING_MAX)
      while (this.#kept.length < end) this.#kept.push(new Line(this, port))
      while (this.#idle.length < end) {
        if (this.#bad > 0) throw new Error(this.#badAnswers[0])
        await sleep(1)
      }
    }
  }

  async #lastAnswers(): Promise<void> {
    const waiting = () => this.#shortLived.size + this.#kept.filter(line => line.isBusy).length
    const giveUpAt = performance.now() + LAST_ANSWERS_MS
    while (waiting() > 0 && performance.now() < giveUpAt) await sleep(20)
    if (waiting() > 0) this.#note(`${waiting()} connections without an answer`)
  }

  #result(from: Mark, to: Mark): VisitorsResult {
    const { measuredMs, generatorBusy, usages } = stretchBetween(from, to, [])
    const lateMs = (percentile: number) =>
      Math.max(0, this.#lateness.percentile(percentile) / 1e6 - DELAY_RESOLUTION_MS)
    return {
      seconds: measuredMs / 1000,
      came: this.#came,
      served: this.#served,
      left: this.#left,
      admitted: this.#admitted.latencies(),
      shed: this.#shed.latencies(),
      connecting: this.#connecting.latencies(),
      shedOf: this.#shedOf,
      lastShedMs: this.#lastShedMs,
      busy: usages.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / measuredMs,
      ownBusy: generatorBusy,
      ownLateP50Ms: lateMs(50),
      ownLateP99Ms: lateMs(99),
      bad: this.#bad,
      badAnswers: this.#badAnswers,
    }
  }

  /** Sets the rate. Visitors who were due at the old rate and have not begun do not come. */
  #setRate(perSecond: number): void {
    this.#perSecond = perSecond
    this.#rateFromMs = performance.now()
    this.#begun = 0
    // From then on each visitor who leaves makes room for the next.
    if (perSecond === Infinity) this.#sendDue(this.#spec.connections)
  }

  /** @param max how many of the visitors who are due begin now */
  #sendDue(max: number): void {
    if (this.#isOver || this.#perSecond === 0) return
    const passedMs = performance.now() - this.#rateFromMs
    const due = this.#perSecond === Infinity ? Infinity : (passedMs * this.#perSecond) / 1000
    const { isShortLived, connections, port } = this.#spec
    if (due !== Infinity)
      this.#begun = Math.max(this.#begun, Math.floor(due - (this.#perSecond * DUE_MS_MAX) / 1000))
    for (let count = 0; count < max && this.#begun < due; count++) {
      if (isShortLived) {
        if (this.#shortLived.size >= connections) return
        this.#shortLived.add(new Line(this, port))
      } else {
        const line = this.#idle.shift()
        if (line === undefined) return
        this.#begin(line)
      }
      this.#begun++
    }
  }

  #begin(line: Line): void {
    const visitor = nextVisitor++
    if (this.#isMeasuring) this.#came++
    line.send(visitor, 'challenge', this.#requests.challenge(visitor))
  }

  /** Called once for each connection. */
  connected(line: Line): void {
    if (!this.#spec.isShortLived) {
      this.#idle.push(line)
      return
    }
    if (this.#isMeasuring) this.#connecting.add(performance.now() - line.openedAtMs)
    this.#begin(line)
  }

  /** The connection has ended, but not by `close`. */
  lost(line: Line, why: string): void {
    this.#shortLived.delete(line)
    this.#note(`a connection was lost: ${why}`)
  }

  answered(line: Line, answer: string): void {
    const now = performance.now()
    const { step } = line
    if (this.#overloadAnswers.has(answer, step)) {
      this.#shedOf[step]++
      this.#lastShedMs = Math.max(0, now - this.#measuredUntilMs)
      if (this.#isMeasuring) this.#shed.add(now - line.sentAtMs)
    } else if (answer.startsWith('200', 9)) {
      if (this.#isMeasuring) this.#admitted.add(now - line.sentAtMs)
      if (this.#goesOn(line, answer)) return
    } else this.#note(answer)
    this.#end(line)
  }

  /** @returns whether the visitor has sent another request */
  #goesOn(line: Line, answer: string): boolean {
    const { step, visitor } = line
    if (step === 'challenge') {
      if (!answer.includes('"nonce":"')) this.#note(answer)
      if (leaves(visitor, this.#spec.leaveShare ?? 0)) {
        if (this.#isMeasuring) this.#left++
        return false
      }
      line.send(visitor, 'verify', this.#requests.verify(visitor))
      return true
    }
    if (step === 'redeem') {
      if (!answer.includes('"success":true')) this.#note(answer)
      else if (this.#isMeasuring) this.#served++
      return false
    }
    const start = answer.indexOf('"token":"') + 9
    if (start < 9 || !answer.includes('"passed":true')) {
      this.#note(answer)
      return false
    }
    line.send(
      visitor,
      'redeem',
      this.#requests.redeem(visitor, answer.slice(start, answer.indexOf('"', start))),
    )
    return true
  }

  #end(line: Line): void {
    if (this.#spec.isShortLived) {
      this.#shortLived.delete(line)
      line.close()
    } else this.#idle.push(line)
    if (this.#perSecond === Infinity) this.#sendDue(1)
  }

  #note(answer: string): void {
    this.#bad++
    if (this.#badAnswers.length < SHOWN) this.#badAnswers.push(answer.slice(0, 600))
  }
}

/** Whether a visitor leaves, spread evenly over visitors by the golden ratio. */
function leaves(visitor: number, share: number): boolean {
  return share > 0 && (visitor * 0.6180339887498949) % 1 < share
}

/** Measured times, however many, in constant memory. */
class Times {
  readonly #nanoseconds = createHistogram({ figures: 3 })

  add(ms: number): void {
    this.#nanoseconds.record(Math.max(1, Math.round(ms * 1e6)))
  }

  latencies(): Latencies {
    const { count } = this.#nanoseconds
    const at = (percentile: number) => (count === 0 ? 0 : this.#nanoseconds.percentile(percentile) / 1e6)
    return { count, p50Ms: at(50), p99Ms: at(99) }
  }
}

/** Answers of the service are shorter; longer ones arrive in pieces. */
const READ_BYTES = 2048
const LENGTH_NAME = 'Content-Length: '

/** One connection, with at most one unanswered request. */
class Line {
  /** The visitor of the request that was sent last. */
  visitor = 0
  step: Step = 'challenge'
  sentAtMs = 0
  /** Whether an answer is outstanding. */
  isBusy = false
  readonly openedAtMs = performance.now()
  readonly #owner: Visitors
  readonly #socket: Socket
  #isClosed = false
  #received = ''

  constructor(owner: Visitors, port: number) {
    this.#owner = owner
    const callback = (length: number, bytes: Uint8Array) =>
      this.#take((bytes as Buffer).toString('latin1', 0, length))
    const onread = { buffer: Buffer.allocUnsafe(READ_BYTES), callback }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    let why = 'it was closed'
    this.#socket.once('connect', () => owner.connected(this))
    this.#socket.once('error', error => {
      why = error.message
    })
    this.#socket.once('close', () => {
      if (!this.#isClosed) owner.lost(this, why)
    })
  }

  send(visitor: number, step: Step, text: string): void {
    this.visitor = visitor
    this.step = step
    this.isBusy = true
    this.#received = ''
    this.sentAtMs = performance.now()
    this.#socket.write(text, 'latin1')
  }

  /** Ends the connection by a reset, which leaves no port in TIME_WAIT: a minute has more connections than ports. */
  close(): void {
    this.#isClosed = true
    this.#socket.resetAndDestroy()
  }

  #take(text: string): boolean {
    const answer = this.#received === '' ? text : this.#received + text
    this.#received = answer
    const headEnd = answer.indexOf('\r\n\r\n')
    if (headEnd < 0 || !this.isBusy) return true
    const at = answer.indexOf(LENGTH_NAME) + LENGTH_NAME.length
    if (answer.length < headEnd + 4 + Number.parseInt(answer.slice(at, at + 8), 10)) return true
    this.isBusy = false
    this.#owner.answered(this, answer)
    return true
  }
}

const ROLE = 'visitors'

export class VisitorsProcess {
  readonly #process = new OrderProcess<VisitorsSpec>(new URL(import.meta.url), [ROLE])

  run(spec: VisitorsSpec): Promise<VisitorsResult> {
    return this.#process.ask(spec)
  }

  stop(): void {
    this.#process.kill()
  }
}

if (process.argv[2] === ROLE && process.send !== undefined)
  carryOut((spec: VisitorsSpec) => new Visitors(spec).run())
