/**
 * The load generator: keep-alive connections, each with one request under way (a closed loop), over raw sockets.
 *
 * It must be cheap, because it shares the machine with what it measures. Requests are prebuilt, answers are read into
 * one buffer per connection, and only what has to be checked is looked at. Measured: 6.2 us CPU a request beside 6.0 us
 * of a bare uWebSockets.js server, so one core of load keeps a worker on another core over 90 % busy; the C program wrk
 * drives the same server some 4 % faster. Sending through the sockets' libuv handles would be as fast as that.
 *
 * In a closed loop a stalled server also stalls the load, so these latencies say little of what visitors at a fixed
 * rate would wait.
 */

import { createHistogram } from 'node:perf_hooks'
import { machineCpuMs, type ProcessUsage, processUsage } from '../support/cpu.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import type { Traffic } from './traffic.ts'

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
}

export interface LoadResult {
  /** Within the measured time. */
  readonly answers: number
  readonly measuredMs: number
  /** The requests were used up before the time was. */
  readonly ranOut: boolean
  /** CPU time of this generator over measured time. */
  readonly generatorBusy: number
  /** CPU time of everything else on the machine over measured time: 1 is a whole core. */
  readonly othersBusy: number
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  /** In the order of `pids`. */
  readonly usages: readonly MeasuredUsage[]
  /** Answers other than the one expected, from the first request on, and one of them. */
  readonly badAnswers: number
  readonly badAnswer: string
}

export interface MeasuredUsage {
  /** Within the measured time. */
  readonly cpuMs: number
  /** Before the first request, and at the end of the measured time. */
  readonly residentBytesBefore: number
  readonly residentBytesAfter: number
}

/** Rejects if a connection fails, or if there is nothing to measure. */
export function runLoad(spec: LoadSpec, traffic: Traffic): Promise<LoadResult> {
  return new Promise((resolve, reject) => new Load(spec, traffic, resolve, reject).start())
}

const LAST_ANSWERS_MS = 2000

interface Mark {
  readonly atMs: number
  readonly generatorCpuMs: number
  readonly machineCpuMs: number
  readonly usages: readonly ProcessUsage[]
}

class Load implements ConnectionOwner {
  readonly marker: Buffer
  readonly #spec: LoadSpec
  readonly #traffic: Traffic
  readonly #resolve: (result: LoadResult) => void
  readonly #reject: (error: Error) => void
  readonly #connections: Connection[] = []
  readonly #latencies = createHistogram({ figures: 3 })
  #phase: 'warming up' | 'measuring' | 'ending' | 'over' = 'warming up'
  #timer: NodeJS.Timeout | undefined
  #next = 0
  #underWay = 0
  #answers = 0
  #badAnswers = 0
  #badAnswer = ''
  #ranOut = false
  #residentBytesBefore: readonly number[] = []
  #from: Mark | undefined
  #to: Mark | undefined

  constructor(
    spec: LoadSpec,
    traffic: Traffic,
    resolve: (result: LoadResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#spec = spec
    this.#traffic = traffic
    this.#resolve = resolve
    this.#reject = reject
    this.marker = Buffer.from(spec.marker)
  }

  start(): void {
    this.#residentBytesBefore = this.#spec.pids.map(pid => processUsage(pid).residentBytes)
    for (let index = 0; index < this.#spec.connections; index++) {
      this.#connections.push(new Connection(this, this.#spec.port))
    }
    this.#timer = setTimeout(() => this.#measure(), this.#spec.warmUpMs)
  }

  /** Sends the next request on a connection that has none under way. */
  send(connection: Connection): void {
    const { count, ends, bytes } = this.#traffic
    if (this.#next === count) {
      if (!this.#spec.recycles) {
        this.#runOut()
        return
      }
      this.#next = 0
    }
    const start = this.#next === 0 ? 0 : ends[this.#next - 1]!
    this.#underWay++
    connection.send(bytes.subarray(start, ends[this.#next++]!))
  }

  answered(connection: Connection, latencyMs: number, isGood: boolean): void {
    this.#underWay--
    if (!isGood) {
      this.#badAnswers++
      if (this.#badAnswers === 1) this.#badAnswer = connection.lastAnswer
    }
    if (this.#phase === 'measuring') {
      this.#answers++
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

  #mark(): Mark {
    const { user, system } = process.cpuUsage()
    const usages = this.#spec.pids.map(processUsage)
    return {
      atMs: performance.now(),
      generatorCpuMs: (user + system) / 1000,
      machineCpuMs: machineCpuMs(),
      usages,
    }
  }

  #settle(): void {
    if (this.#answers === 0) {
      this.fail('no answer came within the measured time')
      return
    }
    this.#close()
    const [from, to] = [this.#from!, this.#to!]
    const measuredMs = to.atMs - from.atMs
    const generatorMs = to.generatorCpuMs - from.generatorCpuMs
    const usages = to.usages.map((usage, index) => ({
      cpuMs: usage.cpuMs - from.usages[index]!.cpuMs,
      residentBytesBefore: this.#residentBytesBefore[index]!,
      residentBytesAfter: usage.residentBytes,
    }))
    const ownMs = usages.reduce((sum, { cpuMs }) => sum + cpuMs, generatorMs)
    this.#resolve({
      answers: this.#answers,
      measuredMs,
      ranOut: this.#ranOut,
      generatorBusy: generatorMs / measuredMs,
      othersBusy: Math.max(0, (to.machineCpuMs - from.machineCpuMs - ownMs) / measuredMs),
      latencyP50Ms: this.#latencies.percentile(50) / 1e6,
      latencyP99Ms: this.#latencies.percentile(99) / 1e6,
      usages,
      badAnswers: this.#badAnswers,
      badAnswer: this.#badAnswer,
    })
  }

  #close(): void {
    this.#phase = 'over'
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.close()
  }
}
