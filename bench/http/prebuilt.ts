/** Loads of requests that were built before, one of each visitor: sending one costs the generator almost nothing. */

import {
  type Latencies,
  type Line,
  Load,
  type LoadTarget,
  type LoadTimes,
  type Measured,
  Times,
} from '../../test/harness/load/load.ts'
import { requestAt, type Traffic } from '../../test/harness/load/traffic.ts'

/** Requests, and which of them is sent next: a load goes on where the last one ended. */
export interface Requests {
  readonly traffic: Traffic
  next: number
}

export interface RunSpec extends LoadTarget, LoadTimes {
  /** Whether requests may be sent again when they run out. */
  readonly recycles: boolean
  /** What the body of every answer must contain; empty: anything. */
  readonly marker: string
}

export interface RunResult extends Measured {
  /** From the first request on. */
  readonly sent: number
  /** The requests were used up before the time was. */
  readonly ranOut: boolean
  /** To what was sent, or due at a rate, within the measured time. */
  readonly answers: number
  /** Length of a whole answer, on average. */
  readonly answerBytes: number
  readonly latencies: Latencies
}

/** Rejects if there was nothing to measure. */
export async function runLoad(spec: RunSpec, requests: Requests): Promise<RunResult> {
  const { connections, visitorsPerSecond } = spec
  // Each connection is used every second, so that none is closed for being idle.
  const used = Math.max(1, Math.min(connections, Math.floor(visitorsPerSecond)))
  return await new PrebuiltLoad({ ...spec, connections: used }, requests).run()
}

class PrebuiltLoad extends Load {
  readonly marker: Buffer
  protected readonly patienceMs = Infinity
  readonly #spec: RunSpec
  readonly #requests: Requests
  readonly #times = new Times()
  #answerBytes = 0
  #ranOut = false

  constructor(spec: RunSpec, requests: Requests) {
    super(spec)
    this.#spec = spec
    this.#requests = requests
    this.marker = Buffer.from(spec.marker)
  }

  async run(): Promise<RunResult> {
    const measured = await this.measured(this.#spec)
    const latencies = this.#times.latencies()
    const { count: answers } = latencies
    const why = this.#ranOut ? 'the requests ran out before' : measured.badAnswers
    if (answers === 0) throw new Error(`nothing was answered within the measured time: ${why}`)
    const answerBytes = this.#answerBytes / answers
    return { ...measured, sent: this.sent, ranOut: this.#ranOut, answers, answerBytes, latencies }
  }

  protected begin(): Buffer | undefined {
    const { traffic, next } = this.#requests
    this.#ranOut = next >= traffic.count && !this.#spec.recycles
    if (this.#ranOut) return undefined
    this.#requests.next++
    return requestAt(traffic, next % traffic.count)
  }

  protected next(line: Line, latencyMs: number, isGood: boolean): undefined {
    if (!isGood) this.fail(line, line.text)
    if (!this.isMeasured(line.sinceMs)) return
    this.#times.add(latencyMs)
    this.#answerBytes += line.bytes
  }
}
