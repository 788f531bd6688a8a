/**
 * The load generator: visitors come over keep-alive connections, each of which has at most one request under way.
 *
 * At a rate (an open loop) visitor i is due at start + i / rate, whatever the server does. Without one (a closed loop) a visitor
 * comes as soon as another has left: a stalled server stalls the load too, so these latencies say little of what visitors at a
 * rate would wait.
 *
 * The generator shares the machine with what it measures, so answers are read into one buffer, and only what has to be checked
 * is looked at. Measured in a closed loop: 6.2 us of CPU a request, beside 6.0 us of a bare uWebSockets.js server, so one core of
 * load keeps a worker over 90 % busy.
 */

import { createHistogram, type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, PATIENCE_MS } from '../eventually.ts'
import { type Stretch, stretchBetween, takeMark } from '../measure.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import { startTicker } from './ticker.ts'

export interface LoadTarget {
  /** Port on 127.0.0.1. */
  readonly port: number
  /** Most visitors at the same time. */
  readonly connections: number
  /** Whether a lost connection is replaced. Without it an idle one may not be lost either; with it, only a lost request is a failure. */
  readonly reconnects?: boolean
}

export interface LoadTimes {
  /** May be CLOSED_LOOP. */
  readonly visitorsPerSecond: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Processes whose CPU time is measured. */
  readonly pids: readonly number[]
}

export interface Latencies {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

/** The usages of the Stretch are in the order of `pids`. */
export interface Measured extends Stretch {
  /** Delay of the load's own event loop. Latencies include it. */
  readonly ownLateP50Ms: number
  readonly ownLateP99Ms: number
  /** Number of all answers, from the first visitor to the last, that were not as expected; then some of them. */
  readonly bad: number
  readonly badAnswers: readonly string[]
}

/** In place of a rate: a visitor comes as soon as another leaves. */
export const CLOSED_LOOP = Infinity
export const NOBODY = 0

const FAILURES_SHOWN = 5
const FAILURES_KEPT_MAX = 10_000
const FAILURE_CHARACTERS_MAX = 600
const CONNECTING_MAX = 200
const RECONNECT_MS = 5
const LAST_ANSWERS_MS = 10_000
/** Most visitors who begin in one tick, so that answers are read in between: sending a request takes 10 us. */
const SENT_MAX = 256
/** The sleep of the timer that measures the event loop's delay. */
const DELAY_RESOLUTION_MS = 1

/** A connection that carries one visitor at a time. */
export class Line extends Connection {
  visitor = 0
  /** Which of the visitor's requests is under way. */
  step = 0
  isBusy = false
}

export type Request = Buffer | string

/** Nobody comes until `connect` has opened the connections and a rate is set. */
export abstract class Load<Target extends LoadTarget = LoadTarget> implements ConnectionOwner {
  abstract readonly marker: Buffer
  readonly failures: { readonly sentAtMs: number; readonly failedAtMs: number; readonly what: string }[] = []
  sent = 0
  /** Requests without an answer. */
  underWay = 0
  protected readonly target: Target
  /** A visitor who finds no free connection for so long does not come. With Infinity all come, and latencies count from when they were due. */
  protected abstract readonly patienceMs: number
  #bad = 0
  readonly #lines = new Set<Line>()
  /** First in, first out, so that all are used in turn: the server closes one that is unused for ten seconds. */
  readonly #idle: Line[] = []
  /** May be CLOSED_LOOP. */
  #perSecond = NOBODY
  #rateFromMs = 0
  /** Visitors since the rate was set who have begun, or have lost their patience. */
  #begun = 0
  /** The measured time: from when on, and to when. Nobody is due after it. */
  #fromMs = Infinity
  #toMs = Infinity
  #ticker: ReturnType<typeof startTicker> | undefined
  readonly #lateness: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })

  constructor(target: Target) {
    this.target = target
  }

  /** @returns the first request of the next visitor; undefined if there are no more */
  protected abstract begin(line: Line): Request | undefined

  /** Must call `fail` if the answer is a bad one. @returns the next request of the connection's visitor; undefined if they leave */
  protected abstract next(line: Line, latencyMs: number, isGood: boolean): Request | undefined

  async connect(): Promise<void> {
    await this.#openAll().catch(async (error: unknown) => {
      await this.stop()
      throw error
    })
  }

  /** Opens a few hundred connections at a time: a listener's backlog holds 512, and others would wait for a second. */
  async #openAll(): Promise<void> {
    const { connections, port } = this.target
    while (this.#lines.size < connections) {
      const end = Math.min(connections, this.#lines.size + CONNECTING_MAX)
      while (this.#lines.size < end) this.#open()
      await eventually(PATIENCE_MS, `${end} connections to port ${port}`, () => {
        if (this.#bad > 0) throw new Error(this.failures[0]!.what)
        return this.#idle.length >= end
      })
    }
  }

  /** Sets the rate. Visitors who were due at the old rate and have not begun do not come. @param perSecond may be CLOSED_LOOP */
  setRate(perSecond: number): void {
    this.#perSecond = perSecond
    this.#rateFromMs = performance.now()
    this.#begun = 0
    // In a closed loop each answer brings the next visitor.
    if (perSecond !== NOBODY && perSecond !== CLOSED_LOOP) this.#ticker ??= startTicker(() => this.#sendDue())
    this.#sendDue()
  }

  /** Nobody is due any more; resolves when those who are there have their answers. */
  async stop(): Promise<void> {
    const nowMs = performance.now()
    this.#toMs = Math.min(this.#toMs, nowMs)
    while (this.#isAnyLeft() && performance.now() < nowMs + LAST_ANSWERS_MS) await sleep(5)
    this.#perSecond = NOBODY
    this.#ticker?.stop()
    for (const line of this.#lines) {
      if (line.isBusy) this.fail(line, 'no answer')
      line.close()
    }
  }

  /** Measures the visitors of a time, and stops. */
  protected async measured({ visitorsPerSecond, warmUpMs, measureMs, pids }: LoadTimes): Promise<Measured> {
    await this.connect()
    this.#fromMs = performance.now() + warmUpMs
    this.#toMs = this.#fromMs + measureMs
    this.setRate(visitorsPerSecond)
    await this.#until(this.#fromMs)
    const from = takeMark(pids)
    this.#lateness.enable()
    await this.#until(this.#toMs)
    this.#lateness.disable()
    const to = takeMark(pids)
    await this.stop()
    const lateMs = (percentile: number) =>
      Math.max(0, this.#lateness.percentile(percentile) / 1e6 - DELAY_RESOLUTION_MS)
    return {
      ...stretchBetween(from, to),
      ownLateP50Ms: lateMs(50),
      ownLateP99Ms: lateMs(99),
      bad: this.#bad,
      badAnswers: this.failures.slice(0, FAILURES_SHOWN).map(({ what }) => what),
    }
  }

  /** Whether a moment lies in the measured time. */
  protected isMeasured(atMs: number): boolean {
    return atMs >= this.#fromMs && atMs < this.#toMs
  }

  async #until(endMs: number): Promise<void> {
    while (performance.now() < Math.min(endMs, this.#toMs))
      await sleep(Math.min(20, endMs - performance.now())) // so soon the end is seen when requests run out
  }

  #isAnyLeft(): boolean {
    return this.underWay > 0 || (this.#isNextDue(performance.now()) && this.#lines.size > 0)
  }

  #open(): void {
    this.#lines.add(new Line(this, this.target.port))
  }

  #dueMs(): number {
    return this.#rateFromMs + (this.#begun * 1000) / this.#perSecond
  }

  #isNextDue(nowMs: number): boolean {
    if (this.#perSecond === NOBODY) return false
    return this.#perSecond === CLOSED_LOOP ? nowMs < this.#toMs : this.#dueMs() <= Math.min(nowMs, this.#toMs)
  }

  #sendDue(): void {
    const nowMs = performance.now()
    if (this.#perSecond !== CLOSED_LOOP && Number.isFinite(this.patienceMs)) {
      // Counts those as begun who were due before this moment, because their patience has ended.
      const impatientMs = Math.min(nowMs, this.#toMs) - this.patienceMs
      const impatient = Math.floor(((impatientMs - this.#rateFromMs) * this.#perSecond) / 1000)
      this.#begun = Math.max(this.#begun, impatient)
    }
    const isSinceDue = this.patienceMs === Infinity && this.#perSecond !== CLOSED_LOOP
    for (let count = SENT_MAX; count > 0 && this.#isNextDue(nowMs); count--) {
      const line = this.#idle.shift()
      if (line === undefined) return
      const sinceMs = isSinceDue ? this.#dueMs() : undefined
      this.#begun++
      const request = this.begin(line)
      if (request === undefined) {
        this.#toMs = Math.min(this.#toMs, performance.now()) // nobody comes any more
        this.#perSecond = NOBODY
        this.#idle.push(line)
      } else this.#ask(line, request, sinceMs)
    }
  }

  #ask(line: Line, request: Request, sinceMs?: number): void {
    line.isBusy = true
    this.sent++
    this.underWay++
    line.send(request, sinceMs)
  }

  connected(line: Line): void {
    this.#idle.push(line)
    this.#sendDue()
  }

  lost(line: Line, problem: string): void {
    if (!this.#lines.delete(line)) return
    if (line.isBusy || !this.target.reconnects) this.fail(line, problem)
    this.#replace(line)
  }

  #replace(line: Line): void {
    const index = this.#idle.indexOf(line)
    if (index >= 0) this.#idle.splice(index, 1)
    if (this.target.reconnects) setTimeout(() => performance.now() < this.#toMs && this.#open(), RECONNECT_MS)
  }

  answered(line: Line, latencyMs: number, isGood: boolean): void {
    line.isBusy = false
    this.underWay--
    const request = this.next(line, latencyMs, isGood)
    if (request !== undefined) {
      this.#ask(line, request)
      return
    }
    // A proxy announces in its answer that it will close the connection.
    if (this.target.reconnects && /\r\nconnection: close\r\n/i.test(line.text)) {
      this.#lines.delete(line)
      line.close()
      this.#replace(line)
    } else this.#idle.push(line)
    this.#sendDue()
  }

  protected fail(line: Line, what: string): void {
    if (line.isBusy) this.underWay--
    line.isBusy = false
    if (this.#bad++ >= FAILURES_KEPT_MAX) return
    const times = { sentAtMs: line.sinceMs, failedAtMs: performance.now() }
    this.failures.push({ ...times, what: what.slice(0, FAILURE_CHARACTERS_MAX) })
  }
}

/** Measured times, however many, in constant memory. */
export class Times {
  readonly #nanoseconds = createHistogram({ figures: 3 })

  add(ms: number): void {
    this.#nanoseconds.record(Math.max(1, Math.round(ms * 1e6)))
  }

  latencies(): Latencies {
    const { count, max } = this.#nanoseconds
    const at = (percentile: number) => (count === 0 ? 0 : this.#nanoseconds.percentile(percentile) / 1e6)
    return { count, p50Ms: at(50), p99Ms: at(99), p999Ms: at(99.9), maxMs: count === 0 ? 0 : max / 1e6 }
  }
}
