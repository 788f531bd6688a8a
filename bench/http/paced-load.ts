/**
 * Load at a fixed rate (an open loop), free of coordinated omission: request i is due at start + i / rate whatever the
 * server does, its latency runs from that moment to the last byte of its answer, and a request that finds all
 * connections busy waits in line, which counts.
 *
 *   due:   |  |  |  |  |  |  |  |          sent: at the next tick, or when an answer comes in
 *                   ^--- latency ---^
 *
 * A tick comes every 0.2 ms (see ticker.ts), so each latency holds a wait of 0 to 0.2 ms, or more where cores are
 * scarce, that is the generator's own. It is measured (`ownDelay...`: of requests that were sent at the first tick or
 * answer after they were due, with a connection free), and the bare server in the same table has it as well.
 */

import { createHistogram } from 'node:perf_hooks'
import { Connection, type ConnectionOwner } from './connection.ts'
import { type Mark, residentBytesOf, type Stretch, stretchBetween, takeMark } from './meter.ts'
import { startTicker, type Ticker } from './ticker.ts'
import { requestAt, type Traffic } from './traffic.ts'

export interface PacedSpec {
  /** On 127.0.0.1. */
  readonly port: number
  /** At most; fewer at a low rate, so that each is used every second and none is closed for being idle. */
  readonly connections: number
  readonly ratePerSecond: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Whether requests may be sent again when they run out. */
  readonly recycles: boolean
  /** What the body of every answer must contain; empty: anything. */
  readonly marker: string
  /** Processes whose use of CPU and memory is measured. */
  readonly pids: readonly number[]
}

/** Its processes are in the order of `pids`. */
export interface PacedResult extends Stretch {
  /** Due within the measured time; every one of them was answered. */
  readonly requests: number
  /** From the first request on. */
  readonly sent: number
  /** Of the measured requests, as they were really sent. */
  readonly ratePerSecond: number
  readonly ranOut: boolean
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  readonly latencyP999Ms: number
  readonly latencyMaxMs: number
  /** How late the generator itself sent; 0 if every request had to wait for a connection. */
  readonly ownDelayP50Ms: number
  readonly ownDelayP99Ms: number
  /** Requests that had to wait for a connection, of all. */
  readonly waitedShare: number
  readonly badAnswers: number
  readonly badAnswer: string
}

/** Rejects if a connection fails, or if not every request is answered. */
export function runPacedLoad(spec: PacedSpec, traffic: Traffic): Promise<PacedResult> {
  return new Promise((resolve, reject) => new PacedLoad(spec, traffic, resolve, reject).start())
}

/** A server that lags behind gets this long to answer what is waiting. */
const LAST_ANSWERS_MS = 5000

class PacedLoad implements ConnectionOwner {
  readonly marker: Buffer
  readonly #spec: PacedSpec
  readonly #traffic: Traffic
  readonly #resolve: (result: PacedResult) => void
  readonly #reject: (error: Error) => void
  readonly #connections: Connection[] = []
  /** First in, first out: a connection that is left alone for too long would be closed. */
  readonly #idle: Connection[] = []
  readonly #latencies = createHistogram({ figures: 3 })
  readonly #ownDelays = createHistogram({ figures: 3 })
  readonly #firstMeasured: number
  /** How many requests are sent. */
  readonly #total: number
  readonly #ranOut: boolean
  #ticker: Ticker | undefined
  #timer: NodeJS.Timeout | undefined
  #startMs = Number.POSITIVE_INFINITY
  #next = 0
  /** What was due by then has been sent, or waits for a connection. */
  #sentUntilMs = 0
  #lastSentMs = 0
  #answers = 0
  #waited = 0
  #badAnswers = 0
  #badAnswer = ''
  #isOver = false
  #residentBytesBefore: readonly number[] = []
  #from: Mark | undefined

  constructor(
    spec: PacedSpec,
    traffic: Traffic,
    resolve: (result: PacedResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#spec = spec
    this.#traffic = traffic
    this.#resolve = resolve
    this.#reject = reject
    this.marker = Buffer.from(spec.marker)
    const { ratePerSecond, warmUpMs, measureMs } = spec
    this.#firstMeasured = Math.round((ratePerSecond * warmUpMs) / 1000)
    const wanted = this.#firstMeasured + Math.max(1, Math.round((ratePerSecond * measureMs) / 1000))
    this.#total = spec.recycles ? wanted : Math.min(wanted, traffic.count)
    this.#ranOut = this.#total < wanted
  }

  start(): void {
    if (this.#total <= this.#firstMeasured) {
      this.#reject(new Error('there are too few requests to measure any'))
      return
    }
    this.#residentBytesBefore = residentBytesOf(this.#spec.pids)
    const { connections, ratePerSecond, port } = this.#spec
    const count = Math.max(1, Math.min(connections, Math.floor(ratePerSecond)))
    for (let index = 0; index < count; index++) this.#connections.push(new Connection(this, port))
  }

  /** A connection is there; the clock starts with the last of them. */
  send(connection: Connection): void {
    if (this.#isOver) return
    this.#idle.push(connection)
    if (this.#idle.length < this.#connections.length) return
    this.#startMs = performance.now()
    this.#ticker = startTicker(() => this.#sendDue())
    const restMs = this.#dueMs(this.#total) - this.#startMs + LAST_ANSWERS_MS
    this.#timer = setTimeout(() => this.#giveUp(), restMs)
  }

  answered(connection: Connection, latencyMs: number, isGood: boolean): void {
    if (this.#isOver) return
    if (!isGood) {
      this.#badAnswers++
      if (this.#badAnswers === 1) this.#badAnswer = connection.lastAnswer
    }
    if (connection.sinceMs >= this.#dueMs(this.#firstMeasured)) {
      this.#answers++
      this.#latencies.record(nanoseconds(latencyMs))
    }
    this.#idle.push(connection)
    if (this.#next < this.#total) this.#sendDue()
    else if (this.#answers === this.#total - this.#firstMeasured) this.#settle()
  }

  fail(problem: string): void {
    if (this.#isOver) return
    this.#close()
    this.#reject(
      new Error(this.#badAnswers === 0 ? problem : `${problem}; answered before: ${this.#badAnswer}`),
    )
  }

  #dueMs(index: number): number {
    return this.#startMs + (index * 1000) / this.#spec.ratePerSecond
  }

  #giveUp(): void {
    const missing = this.#total - this.#firstMeasured - this.#answers
    this.fail(`${missing} requests were not answered ${LAST_ANSWERS_MS} ms after the last was due`)
  }

  #sendDue(): void {
    let now = performance.now()
    while (this.#next < this.#total && this.#idle.length > 0) {
      const dueMs = this.#dueMs(this.#next)
      if (dueMs > now) break
      if (this.#next >= this.#firstMeasured) {
        this.#from ??= takeMark(this.#spec.pids)
        if (dueMs > this.#sentUntilMs) this.#ownDelays.record(nanoseconds(now - dueMs))
        else this.#waited++
      }
      this.#idle.shift()!.send(requestAt(this.#traffic, this.#next % this.#traffic.count), dueMs)
      this.#next++
      this.#lastSentMs = now
      now = performance.now()
    }
    this.#sentUntilMs = now
  }

  #settle(): void {
    const to = takeMark(this.#spec.pids)
    this.#close()
    const latencyMs = (percentile: number) => this.#latencies.percentile(percentile) / 1e6
    const isEveryWaiting = this.#ownDelays.count === 0
    const ownDelayMs = (percentile: number) =>
      isEveryWaiting ? 0 : this.#ownDelays.percentile(percentile) / 1e6
    const sendingMs = this.#lastSentMs - this.#dueMs(this.#firstMeasured)
    this.#resolve({
      ...stretchBetween(this.#from!, to, this.#residentBytesBefore),
      requests: this.#answers,
      sent: this.#next,
      ratePerSecond: (this.#answers / (sendingMs + 1000 / this.#spec.ratePerSecond)) * 1000,
      ranOut: this.#ranOut,
      latencyP50Ms: latencyMs(50),
      latencyP99Ms: latencyMs(99),
      latencyP999Ms: latencyMs(99.9),
      latencyMaxMs: this.#latencies.max / 1e6,
      ownDelayP50Ms: ownDelayMs(50),
      ownDelayP99Ms: ownDelayMs(99),
      waitedShare: this.#waited / this.#answers,
      badAnswers: this.#badAnswers,
      badAnswer: this.#badAnswer,
    })
  }

  #close(): void {
    this.#isOver = true
    this.#ticker?.stop()
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.close()
  }
}

/** Histograms count integers from 1 on. */
function nanoseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1e6))
}
