/**
 * The load generator: keep-alive connections, each with one request under way (a closed loop), over raw sockets.
 *
 * It must be cheap, because it shares the machine with what it measures. Requests are prebuilt, answers are read into
 * one buffer per connection, and only what has to be checked is looked at. Measured: 6.2 us CPU a request beside 6.0 us
 * of a bare uWebSockets.js server, so one core of load keeps a worker on another core over 90 % busy; the C program wrk
 * drives the same server some 4 % faster. Sending through the sockets' libuv handles would be as fast as that.
 *
 * In a closed loop a stalled server also stalls the load, so these latencies say little of what visitors at a fixed
 * rate would wait: that is measured by paced-load.ts.
 */

import { createHistogram } from 'node:perf_hooks'
import { Connection, type ConnectionOwner } from './connection.ts'
import { type Mark, residentBytesOf, type Stretch, stretchBetween, takeMark } from './meter.ts'
import { countsBetween, openRedisCounters, type RedisCounters, type RedisCounts } from './redis-counters.ts'
import { requestAt, type Traffic } from './traffic.ts'

export type { MeasuredUsage } from './meter.ts'

export interface LoadSpec {
  /** On 127.0.0.1. */
  readonly port: number
  readonly connections: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Whether requests may be sent again when they run out. */
  readonly recycles: boolean
  /** What the body of every answer must contain; empty: anything. */
  readonly marker: string
  /** Processes whose use of CPU and memory is measured. */
  readonly pids: readonly number[]
  /** Redis servers on 127.0.0.1 that are asked for their counters. */
  readonly redisPorts?: readonly number[]
}

/** Its processes are in the order of `pids`. */
export interface LoadResult extends Stretch {
  /** Within the measured time. */
  readonly answers: number
  /** From the first request on. */
  readonly sent: number
  /** The requests were used up before the time was. */
  readonly ranOut: boolean
  /** Of a whole answer, on average. */
  readonly answerBytes: number
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  /** Within the measured time; only with `redisPorts`. */
  readonly redis?: RedisCounts
  /** Answers other than the one expected, from the first request on, and one of them. */
  readonly badAnswers: number
  readonly badAnswer: string
}

/** Rejects if a connection fails, or if there is nothing to measure. */
export async function runLoad(spec: LoadSpec, traffic: Traffic): Promise<LoadResult> {
  const { redisPorts = [] } = spec
  const counters = redisPorts.length === 0 ? undefined : await openRedisCounters(redisPorts)
  try {
    return await new Promise((resolve, reject) => new Load(spec, traffic, counters, resolve, reject).start())
  } finally {
    counters?.close()
  }
}

const LAST_ANSWERS_MS = 2000

/** A moment, and what Redis had counted by then. */
interface CountedMark extends Mark {
  readonly redis: Promise<RedisCounts> | undefined
}

class Load implements ConnectionOwner {
  readonly marker: Buffer
  readonly #spec: LoadSpec
  readonly #traffic: Traffic
  readonly #counters: RedisCounters | undefined
  readonly #resolve: (result: LoadResult) => void
  readonly #reject: (error: Error) => void
  readonly #connections: Connection[] = []
  readonly #latencies = createHistogram({ figures: 3 })
  #phase: 'warming up' | 'measuring' | 'ending' | 'over' = 'warming up'
  #timer: NodeJS.Timeout | undefined
  #next = 0
  #sent = 0
  #underWay = 0
  #answers = 0
  #answerBytes = 0
  #badAnswers = 0
  #badAnswer = ''
  #ranOut = false
  #residentBytesBefore: readonly number[] = []
  #from: CountedMark | undefined
  #to: CountedMark | undefined

  constructor(
    spec: LoadSpec,
    traffic: Traffic,
    counters: RedisCounters | undefined,
    resolve: (result: LoadResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#spec = spec
    this.#traffic = traffic
    this.#counters = counters
    this.#resolve = resolve
    this.#reject = reject
    this.marker = Buffer.from(spec.marker)
  }

  start(): void {
    this.#residentBytesBefore = residentBytesOf(this.#spec.pids)
    for (let index = 0; index < this.#spec.connections; index++) {
      this.#connections.push(new Connection(this, this.#spec.port))
    }
    this.#timer = setTimeout(() => this.#measure(), this.#spec.warmUpMs)
  }

  /** Sends the next request on a connection that has none under way. */
  send(connection: Connection): void {
    if (this.#next === this.#traffic.count) {
      if (!this.#spec.recycles) {
        this.#runOut()
        return
      }
      this.#next = 0
    }
    this.#underWay++
    this.#sent++
    connection.send(requestAt(this.#traffic, this.#next++))
  }

  answered(connection: Connection, latencyMs: number, isGood: boolean): void {
    this.#underWay--
    if (!isGood) {
      this.#badAnswers++
      if (this.#badAnswers === 1) this.#badAnswer = connection.lastAnswer
    }
    if (this.#phase === 'measuring') {
      this.#answers++
      this.#answerBytes += connection.lastBytes
      this.#latencies.record(Math.max(1, Math.round(latencyMs * 1e6)))
    }
    if (this.#phase === 'ending') {
      if (this.#underWay === 0) this.#settle()
    } else this.send(connection)
  }

  fail(problem: string): void {
    if (this.#phase === 'over') return
    this.#close()
    this.#reject(
      new Error(this.#badAnswers === 0 ? problem : `${problem}; answered before: ${this.#badAnswer}`),
    )
  }

  #measure(): void {
    this.#phase = 'measuring'
    this.#from = this.#mark()
    this.#timer = setTimeout(() => this.#stop(), this.#spec.measureMs)
  }

  #runOut(): void {
    if (this.#phase === 'warming up') this.fail('the requests ran out before anything was measured')
    if (this.#phase !== 'measuring') return
    this.#ranOut = true
    this.#stop()
  }

  #stop(): void {
    this.#to = this.#mark()
    this.#phase = 'ending'
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => this.fail(`${this.#underWay} requests were not answered within ${LAST_ANSWERS_MS} ms`),
      LAST_ANSWERS_MS,
    )
    if (this.#underWay === 0) this.#settle()
  }

  #mark(): CountedMark {
    const redis = this.#counters?.read()
    redis?.catch(() => {}) // told when both are there
    return { ...takeMark(this.#spec.pids), redis }
  }

  #settle(): void {
    if (this.#answers === 0) {
      this.fail('no answer came within the measured time')
      return
    }
    this.#close()
    this.#result().then(this.#resolve, this.#reject)
  }

  async #result(): Promise<LoadResult> {
    const [from, to] = [this.#from!, this.#to!]
    const [countsFrom, countsTo] = await Promise.all([from.redis, to.redis])
    return {
      ...stretchBetween(from, to, this.#residentBytesBefore),
      answers: this.#answers,
      sent: this.#sent,
      ranOut: this.#ranOut,
      answerBytes: this.#answerBytes / this.#answers,
      latencyP50Ms: this.#latencies.percentile(50) / 1e6,
      latencyP99Ms: this.#latencies.percentile(99) / 1e6,
      ...(countsFrom && countsTo && { redis: countsBetween(countsFrom, countsTo) }),
      badAnswers: this.#badAnswers,
      badAnswer: this.#badAnswer,
    }
  }

  #close(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.close()
  }
}
