/**
 * Visitors who come at a rate, however the service responds (an open loop), or one as soon as another leaves. Each requests a
 * challenge, sends its solution and has the token redeemed, one after the other, over one connection. A visitor who is refused
 * leaves.
 *
 * Latencies count from the moment when a request is written. They include the delay of this process's own event loop before
 * an answer is read; this delay is reported separately.
 */

import { createHistogram, type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Mark, stretchBetween, takeMark } from '../measure.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import { OverloadAnswers, type RequestTarget, type Step, VisitorRequests } from './visitor-requests.ts'

interface VisitorsTarget extends RequestTarget {
  /** Port on 127.0.0.1. */
  readonly port: number
  /** Most visitors at the same time. */
  readonly connections: number
  /** Whether each visitor opens a connection; otherwise they share open ones. */
  readonly isShortLived?: boolean
  /** Whether a lost connection is replaced; the request that it carried has failed either way. */
  readonly reconnects?: boolean
  /** Share of visitors who never send a solution. */
  readonly leaveShare?: number
}

export interface VisitorsSpec extends VisitorsTarget {
  /** Infinity: a new visitor whenever one leaves. */
  readonly visitorsPerSecond: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Processes whose CPU time is measured. */
  readonly pids: readonly number[]
}

interface Latencies {
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
  /** Refused requests by step, from the first visitor to the last. */
  readonly shedOf: Readonly<Record<Step, number>>
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

interface Failure {
  readonly step: Step
  readonly sentAtMs: number
  readonly failedAtMs: number
  readonly what: string
}

/** Refused requests of all steps, from the first visitor to the last. */
export const refusalsOf = ({ shedOf }: VisitorsResult) => shedOf.challenge + shedOf.verify + shedOf.redeem

const SHOWN = 5
const FAILURES_KEPT_MAX = 10_000
const SHOWN_CHARACTERS = 600
const CONNECTING_MAX = 200
const RECONNECT_MS = 5
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

/** Carries one visitor at a time. */
class Line extends Connection {
  visitor = 0
  step: Step = 'challenge'
  isBusy = false
}

/** Nobody comes until `connect` has opened the connections and a rate is set. */
export class VisitorLoad implements ConnectionOwner {
  readonly marker = Buffer.alloc(0)
  /** From the first visitor to the last, as are `answers`, the requests that succeeded, and `sent`. */
  readonly failures: Failure[] = []
  readonly answers: Record<Step, number> = { challenge: 0, verify: 0, redeem: 0 }
  sent = 0
  /** Requests without an answer. */
  underWay = 0
  readonly #target: VisitorsTarget
  readonly #requests: VisitorRequests
  readonly #overloadAnswers = new OverloadAnswers()
  readonly #lines = new Set<Line>()
  /** First in, first out: a connection unused for ten seconds is closed. */
  readonly #idle: Line[] = []
  readonly #admitted = new Times()
  readonly #shed = new Times()
  readonly #shedOf = { challenge: 0, verify: 0, redeem: 0 }
  #bad = 0
  #came = 0
  #served = 0
  #left = 0
  #perSecond = 0
  #rateFromMs = 0
  /** Visitors begun since the rate was set. */
  #begun = 0
  #isMeasuring = false
  #isOver = false
  readonly #timer: NodeJS.Timeout
  readonly #lateness: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })

  constructor(target: VisitorsTarget) {
    this.#target = target
    this.#requests = new VisitorRequests(target)
    const tickMax = target.isShortLived ? OPENED_MAX : SENT_MAX
    this.#timer = setInterval(() => this.#sendDue(tickMax), TICK_MS)
  }

  /** A few hundred at a time: a listener's backlog holds 512, and others would wait for a second. */
  async connect(): Promise<void> {
    const { connections, isShortLived } = this.#target
    while (!isShortLived && this.#lines.size < connections) {
      const end = Math.min(connections, this.#lines.size + CONNECTING_MAX)
      while (this.#lines.size < end) this.#open()
      while (this.#idle.length < end) {
        if (this.#bad > 0) throw new Error(this.failures[0]!.what)
        await sleep(1)
      }
    }
  }

  /** Sets the rate. Visitors who were due at the old rate and have not begun do not come. @param perSecond see VisitorsSpec */
  setRate(perSecond: number): void {
    this.#perSecond = perSecond
    this.#rateFromMs = performance.now()
    this.#begun = 0
    // From then on each visitor who leaves makes room for the next.
    if (perSecond === Infinity) this.#sendDue(this.#target.connections)
  }

  /** How many visitors a second come if one comes as soon as another leaves, for this time. */
  async capacity(ms: number): Promise<number> {
    const [before, startedAtMs] = [this.answers.challenge, performance.now()]
    this.setRate(Infinity)
    await sleep(ms)
    const perSecond = ((this.answers.challenge - before) / (performance.now() - startedAtMs)) * 1000
    this.setRate(0)
    return perSecond
  }

  /** Nobody comes any more; resolves when those who are there have their answers. */
  async stop(): Promise<void> {
    this.#isOver = true
    const giveUpAtMs = performance.now() + LAST_ANSWERS_MS
    while (this.underWay > 0 && performance.now() < giveUpAtMs) await sleep(20)
    clearInterval(this.#timer)
    for (const line of this.#lines) {
      if (line.isBusy) this.#fail(line, 'no answer')
      line.close()
    }
  }

  async measure({ visitorsPerSecond, warmUpMs, measureMs, pids }: VisitorsSpec): Promise<VisitorsResult> {
    this.setRate(visitorsPerSecond)
    await sleep(warmUpMs)
    const from = takeMark(pids)
    this.#isMeasuring = true
    this.#lateness.enable()
    await sleep(measureMs)
    this.#isMeasuring = false
    this.#lateness.disable()
    const to = takeMark(pids)
    await this.stop()
    return this.#result(from, to)
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
      shedOf: this.#shedOf,
      busy: usages.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / measuredMs,
      ownBusy: generatorBusy,
      ownLateP50Ms: lateMs(50),
      ownLateP99Ms: lateMs(99),
      bad: this.#bad,
      badAnswers: this.failures.slice(0, SHOWN).map(({ what }) => what),
    }
  }

  #open(): void {
    this.#lines.add(new Line(this, this.#target.port))
  }

  /** @param max how many of the visitors who are due begin now */
  #sendDue(max: number): void {
    if (this.#isOver || this.#perSecond === 0) return
    const passedMs = performance.now() - this.#rateFromMs
    const due = this.#perSecond === Infinity ? Infinity : (passedMs * this.#perSecond) / 1000
    const { isShortLived, connections } = this.#target
    if (due !== Infinity)
      this.#begun = Math.max(this.#begun, Math.floor(due - (this.#perSecond * DUE_MS_MAX) / 1000))
    for (let count = 0; count < max && this.#begun < due; count++) {
      if (isShortLived) {
        if (this.#lines.size >= connections) return
        this.#open()
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
    this.#ask(line, visitor, 'challenge', this.#requests.challenge(visitor))
  }

  #ask(line: Line, visitor: number, step: Step, request: string): void {
    line.visitor = visitor
    line.step = step
    line.isBusy = true
    this.sent++
    this.underWay++
    line.send(request)
  }

  /** Called once for each connection. */
  send(line: Line): void {
    if (this.#target.isShortLived) this.#begin(line)
    else this.#idle.push(line)
  }

  /** The connection has ended, but not by `close`. */
  lost(line: Line, problem: string): void {
    if (!this.#lines.delete(line)) return
    const { reconnects = false } = this.#target
    if (line.isBusy || !reconnects) this.#fail(line, problem)
    this.#replace(line)
  }

  #replace(line: Line): void {
    const index = this.#idle.indexOf(line)
    if (index >= 0) this.#idle.splice(index, 1)
    if (!this.#isOver && this.#target.reconnects) setTimeout(() => this.#isOver || this.#open(), RECONNECT_MS)
  }

  answered(line: Line, latencyMs: number, isGood: boolean): void {
    line.isBusy = false
    this.underWay--
    const { step, text } = line
    if (this.#overloadAnswers.has(text, step)) {
      this.#shedOf[step]++
      if (this.#isMeasuring) this.#shed.add(latencyMs)
    } else if (isGood) {
      if (this.#isMeasuring) this.#admitted.add(latencyMs)
      if (this.#goesOn(line, text)) return
    } else this.#fail(line, text)
    this.#end(line, text)
  }

  /** @returns whether the visitor has sent another request */
  #goesOn(line: Line, answer: string): boolean {
    const { step, visitor } = line
    const token = step === 'verify' ? /"token":"([^"]+)"/.exec(answer)?.[1] : undefined
    if (!this.#isExpected(line, answer, token)) {
      this.#fail(line, answer)
      return false
    }
    this.answers[step]++
    if (step === 'redeem') {
      if (this.#isMeasuring) this.#served++
      return false
    }
    if (step === 'challenge' && leaves(visitor, this.#target.leaveShare ?? 0)) {
      if (this.#isMeasuring) this.#left++
      return false
    }
    if (step === 'challenge') this.#ask(line, visitor, 'verify', this.#requests.verify(visitor))
    else this.#ask(line, visitor, 'redeem', this.#requests.redeem(visitor, token!))
    return true
  }

  #isExpected({ step, visitor }: Line, answer: string, token: string | undefined): boolean {
    if (step === 'challenge') return answer.includes('"nonce":"')
    if (step === 'verify') return token !== undefined && answer.includes('"passed":true')
    const isOwn = answer.includes(`"ip":"${this.#requests.addressOf(visitor)}"`)
    return isOwn && answer.includes('"success":true')
  }

  #end(line: Line, answer: string): void {
    // A proxy announces in its answer that it will close the connection.
    const isLast = /\r\nconnection: close\r\n/i.test(answer)
    if (this.#target.isShortLived || isLast) {
      this.#lines.delete(line)
      line.close()
      this.#replace(line)
    } else this.#idle.push(line)
    if (this.#perSecond === Infinity) this.#sendDue(1)
  }

  #fail(line: Line, what: string): void {
    if (line.isBusy) this.underWay--
    line.isBusy = false
    if (this.#bad++ >= FAILURES_KEPT_MAX) return
    const times = { sentAtMs: line.sinceMs, failedAtMs: performance.now() }
    this.failures.push({ step: line.step, ...times, what: what.slice(0, SHOWN_CHARACTERS) })
  }
}

/** Measures visitors from the first to the last. */
export async function visit(spec: VisitorsSpec): Promise<VisitorsResult> {
  const visitors = new VisitorLoad(spec)
  await visitors.connect()
  return await visitors.measure(spec)
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
