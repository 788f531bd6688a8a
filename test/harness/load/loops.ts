/**
 * The two load drivers over raw keep-alive connections, each with at most one request under way.
 *
 * `runLoad` is a closed loop: a connection sends its next request when its answer is there. It shares the machine with what it
 * measures, so requests are prebuilt, answers are read into one buffer, and only what has to be checked is looked at. Measured:
 * 6.2 us of CPU a request, beside 6.0 us of a bare uWebSockets.js server, so one core of load keeps a worker over 90 % busy. A
 * stalled server stalls the load too: these latencies say little of what visitors at a fixed rate would wait.
 *
 * `runPacedLoad` is an open loop, free of coordinated omission: request i is due at start + i / rate whatever the server does,
 * and its latency runs from then to the last byte of its answer, a wait for a free connection included.
 *
 *   due:   |  |  |  |  |  |  |  |          sent: at the next tick, or when an answer comes in
 *                   ^--- latency ---^
 *
 * A tick comes every 0.2 ms (ticker.ts), so each latency includes up to 0.2 ms of the generator itself, or more where cores are
 * scarce: `ownDelay...` is this wait of requests that found a connection free. Latencies of the bare server include it as well.
 */

import { createHistogram } from 'node:perf_hooks'
import { type Mark, residentBytesOf, type Stretch, stretchBetween, takeMark } from '../measure.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import { startTicker, type Ticker } from './ticker.ts'
import { requestAt, type Traffic } from './traffic.ts'

export interface LoadSpec {
  readonly port: number
  /** At most; fewer at a low rate, so that each is used every second and none is closed for being idle. */
  readonly connections: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Whether requests may be sent again when they run out. */
  readonly recycles: boolean
  /** What the body of every answer must contain; empty: anything. */
  readonly marker: string
  readonly pids: readonly number[]
  /** Where it begins among the requests; 0 if undefined. */
  readonly firstRequest?: number
}

export interface PacedSpec extends LoadSpec {
  readonly ratePerSecond: number
}

/** Its processes are in the order of `pids`. */
interface AnyResult extends Stretch {
  /** From the first request on. */
  readonly sent: number
  /** The requests were used up before the time was. */
  readonly ranOut: boolean
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  /** Answers other than the one expected, from the first request on, and one of them. */
  readonly badAnswers: number
  readonly badAnswer: string
}

export interface LoadResult extends AnyResult {
  readonly answers: number
  /** Of a whole answer, on average. */
  readonly answerBytes: number
}

export interface PacedResult extends AnyResult {
  /** Due within the measured time; every one of them was answered. */
  readonly requests: number
  /** Of the measured requests, as they were really sent. */
  readonly ratePerSecond: number
  readonly latencyP999Ms: number
  readonly latencyMaxMs: number
  /** How late the generator itself sent; 0 if every request had to wait for a connection. */
  readonly ownDelayP50Ms: number
  readonly ownDelayP99Ms: number
  /** Requests that had to wait for a connection, of all. */
  readonly waitedShare: number
}

/** As fast as the server answers. Rejects if a connection fails, or if there is nothing to measure. */
export async function runLoad(spec: LoadSpec, traffic: Traffic): Promise<LoadResult> {
  const result = await new ClosedLoop(spec, traffic).run()
  if (result.answers === 0) throw new Error('no answer came within the measured time')
  return result
}

/** At a fixed rate. Rejects if a connection fails, or if not every request is answered. */
export async function runPacedLoad(spec: PacedSpec, traffic: Traffic): Promise<PacedResult> {
  return await new OpenLoop(spec, traffic).run()
}

export interface SendOnceSpec extends Pick<LoadSpec, 'port' | 'connections' | 'marker'> {
  /** After so long no further request is sent. */
  readonly msMax: number
}

/**
 * Sends each request once, as fast as the server answers, to prepare a measurement.
 *
 * @returns how many, the first ones; rejects if a connection fails or an answer is not the expected one
 */
export async function sendOnce({ msMax, ...spec }: SendOnceSpec, traffic: Traffic): Promise<number> {
  const all = { ...spec, warmUpMs: 0, measureMs: msMax, recycles: false, pids: [] }
  const { badAnswers, badAnswer, sent } = await new ClosedLoop(all, traffic).run()
  if (badAnswers > 0) {
    throw new Error(`an answer was not the expected one: ${badAnswer.replaceAll('\r\n', ' | ')}`)
  }
  return sent
}

/** A server that lags behind gets this long to answer what is waiting. */
const LAST_ANSWERS_MS = 5000

abstract class Loop<Spec extends LoadSpec, Result> implements ConnectionOwner {
  readonly marker: Buffer
  protected readonly spec: Spec
  protected readonly traffic: Traffic
  protected readonly connections: Connection[] = []
  protected readonly latencies = createHistogram({ figures: 3 })
  protected timer: NodeJS.Timeout | undefined
  protected residentBytesBefore: readonly number[] = []
  /** The request that the run begins with, and how many of those that follow it have been sent. */
  protected readonly first: number
  protected next = 0
  protected answers = 0
  protected badAnswers = 0
  protected badAnswer = ''
  protected isOver = false
  #reject: (error: Error) => void = () => {}

  constructor(spec: Spec, traffic: Traffic) {
    this.spec = spec
    this.traffic = traffic
    this.marker = Buffer.from(spec.marker)
    this.first = spec.firstRequest ?? 0
  }

  run(): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      this.start(resolve)
    })
  }

  protected abstract start(resolve: (result: Result) => void): void
  abstract send(connection: Connection): void
  abstract answered(connection: Connection, latencyMs: number, isGood: boolean): void

  lost(_: Connection, problem: string): void {
    this.fail(problem)
  }

  protected fail(problem: string): void {
    if (this.isOver) return
    this.close()
    this.#reject(
      new Error(this.badAnswers === 0 ? problem : `${problem}; answered before: ${this.badAnswer}`),
    )
  }

  protected connect(count: number): void {
    this.residentBytesBefore = residentBytesOf(this.spec.pids)
    for (let index = 0; index < count; index++) {
      this.connections.push(new Connection(this, this.spec.port))
    }
  }

  protected countBad(connection: Connection): void {
    this.badAnswers++
    if (this.badAnswers === 1) this.badAnswer = connection.lastAnswer
  }

  protected latencyMs(percentile: number): number {
    return this.latencies.percentile(percentile) / 1e6
  }

  protected close(): void {
    this.isOver = true
    clearTimeout(this.timer)
    for (const connection of this.connections) connection.close()
  }
}

class ClosedLoop extends Loop<LoadSpec, LoadResult> {
  #resolve: (result: LoadResult) => void = () => {}
  #phase: 'warming up' | 'measuring' | 'ending' = 'warming up'
  #sent = 0
  #underWay = 0
  #answerBytes = 0
  #ranOut = false
  #from: Mark | undefined
  #to: Mark | undefined

  protected start(resolve: (result: LoadResult) => void): void {
    this.#resolve = resolve
    this.connect(this.spec.connections)
    if (this.spec.warmUpMs === 0) this.#measure()
    else this.timer = setTimeout(() => this.#measure(), this.spec.warmUpMs)
  }

  send(connection: Connection): void {
    if (this.first + this.next === this.traffic.count) {
      if (!this.spec.recycles) {
        this.#runOut()
        return
      }
      this.next = -this.first
    }
    this.#underWay++
    this.#sent++
    connection.send(requestAt(this.traffic, this.first + this.next++))
  }

  answered(connection: Connection, latencyMs: number, isGood: boolean): void {
    this.#underWay--
    if (!isGood) this.countBad(connection)
    if (this.#phase === 'measuring') {
      this.answers++
      this.#answerBytes += connection.lastBytes
      this.latencies.record(nanoseconds(latencyMs))
    }
    if (this.#phase === 'ending') {
      if (this.#underWay === 0) this.#settle()
    } else this.send(connection)
  }

  #measure(): void {
    this.#phase = 'measuring'
    this.#from = takeMark(this.spec.pids)
    this.timer = setTimeout(() => this.#stop(), this.spec.measureMs)
  }

  #runOut(): void {
    if (this.#phase === 'warming up') this.fail('the requests ran out before anything was measured')
    if (this.#phase !== 'measuring') return
    this.#ranOut = true
    this.#stop()
  }

  #stop(): void {
    this.#to = takeMark(this.spec.pids)
    this.#phase = 'ending'
    clearTimeout(this.timer)
    this.timer = setTimeout(
      () => this.fail(`${this.#underWay} requests were not answered within ${LAST_ANSWERS_MS} ms`),
      LAST_ANSWERS_MS,
    )
    if (this.#underWay === 0) this.#settle()
  }

  #settle(): void {
    this.close()
    this.#resolve({
      ...stretchBetween(this.#from!, this.#to!, this.residentBytesBefore),
      answers: this.answers,
      sent: this.#sent,
      ranOut: this.#ranOut,
      answerBytes: this.#answerBytes / this.answers,
      latencyP50Ms: this.latencyMs(50),
      latencyP99Ms: this.latencyMs(99),
      badAnswers: this.badAnswers,
      badAnswer: this.badAnswer,
    })
  }
}

class OpenLoop extends Loop<PacedSpec, PacedResult> {
  /** First in, first out: a connection that is left alone for too long would be closed. */
  readonly #idle: Connection[] = []
  readonly #ownDelays = createHistogram({ figures: 3 })
  readonly #firstMeasured: number
  readonly #total: number
  readonly #ranOut: boolean
  #resolve: (result: PacedResult) => void = () => {}
  #ticker: Ticker | undefined
  #startMs = Number.POSITIVE_INFINITY
  /** What was due by then has been sent, or waits for a connection. */
  #sentUntilMs = 0
  #lastSentMs = 0
  #waited = 0
  #from: Mark | undefined

  constructor(spec: PacedSpec, traffic: Traffic) {
    super(spec, traffic)
    const { ratePerSecond, warmUpMs, measureMs } = spec
    this.#firstMeasured = Math.round((ratePerSecond * warmUpMs) / 1000)
    const wanted = this.#firstMeasured + Math.max(1, Math.round((ratePerSecond * measureMs) / 1000))
    this.#total = spec.recycles ? wanted : Math.min(wanted, traffic.count - this.first)
    this.#ranOut = this.#total < wanted
  }

  protected start(resolve: (result: PacedResult) => void): void {
    this.#resolve = resolve
    const { connections, ratePerSecond } = this.spec
    if (this.#total <= this.#firstMeasured) this.fail('there are too few requests to measure any')
    else this.connect(Math.max(1, Math.min(connections, Math.floor(ratePerSecond))))
  }

  /** A connection is there; the clock starts with the last of them. */
  send(connection: Connection): void {
    if (this.isOver) return
    this.#idle.push(connection)
    if (this.#idle.length < this.connections.length) return
    this.#startMs = performance.now()
    this.#ticker = startTicker(() => this.#sendDue())
    const restMs = this.#dueMs(this.#total) - this.#startMs + LAST_ANSWERS_MS
    this.timer = setTimeout(() => this.#giveUp(), restMs)
  }

  answered(connection: Connection, latencyMs: number, isGood: boolean): void {
    if (this.isOver) return
    if (!isGood) this.countBad(connection)
    if (connection.sinceMs >= this.#dueMs(this.#firstMeasured)) {
      this.answers++
      this.latencies.record(nanoseconds(latencyMs))
    }
    this.#idle.push(connection)
    if (this.next < this.#total) this.#sendDue()
    else if (this.answers === this.#total - this.#firstMeasured) this.#settle()
  }

  #dueMs(index: number): number {
    return this.#startMs + (index * 1000) / this.spec.ratePerSecond
  }

  #giveUp(): void {
    const missing = this.#total - this.#firstMeasured - this.answers
    this.fail(`${missing} requests were not answered ${LAST_ANSWERS_MS} ms after the last was due`)
  }

  #sendDue(): void {
    let now = performance.now()
    while (this.next < this.#total && this.#idle.length > 0) {
      const dueMs = this.#dueMs(this.next)
      if (dueMs > now) break
      if (this.next >= this.#firstMeasured) {
        this.#from ??= takeMark(this.spec.pids)
        if (dueMs > this.#sentUntilMs) this.#ownDelays.record(nanoseconds(now - dueMs))
        else this.#waited++
      }
      this.#idle.shift()!.send(requestAt(this.traffic, (this.first + this.next) % this.traffic.count), dueMs)
      this.next++
      this.#lastSentMs = now
      now = performance.now()
    }
    this.#sentUntilMs = now
  }

  #settle(): void {
    const to = takeMark(this.spec.pids)
    this.close()
    const ownDelayMs = (percentile: number) =>
      this.#ownDelays.count === 0 ? 0 : this.#ownDelays.percentile(percentile) / 1e6
    const sendingMs = this.#lastSentMs - this.#dueMs(this.#firstMeasured)
    this.#resolve({
      ...stretchBetween(this.#from!, to, this.residentBytesBefore),
      requests: this.answers,
      sent: this.next,
      ratePerSecond: (this.answers / (sendingMs + 1000 / this.spec.ratePerSecond)) * 1000,
      ranOut: this.#ranOut,
      latencyP50Ms: this.latencyMs(50),
      latencyP99Ms: this.latencyMs(99),
      latencyP999Ms: this.latencyMs(99.9),
      latencyMaxMs: this.latencies.max / 1e6,
      ownDelayP50Ms: ownDelayMs(50),
      ownDelayP99Ms: ownDelayMs(99),
      waitedShare: this.#waited / this.answers,
      badAnswers: this.badAnswers,
      badAnswer: this.badAnswer,
    })
  }

  protected override close(): void {
    this.#ticker?.stop()
    super.close()
  }
}

/** Histograms count integers from 1 on. */
function nanoseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1e6))
}
