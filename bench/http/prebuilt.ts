/** Loads of requests that were built before, one of each visitor: sending one costs the generator almost nothing. */

import type { Latencies, Line, LoadTarget, LoadTimes, Measured } from '../../test/harness/load/load.ts'
import { CLOSED_LOOP, Load, Times } from '../../test/harness/load/load.ts'
import { requestAt, type Traffic } from './traffic.ts'

/** Most requests under way at the same time. */
export const CONNECTIONS = 64

/** Requests, and which of them is sent next: a load goes on where the last one ended. */
export interface Requests {
  readonly traffic: Traffic
  next: number
}

export interface RunSpec extends Pick<LoadTarget, 'port'>, Pick<LoadTimes, 'pids' | 'measureMs'> {
  /** What the body of every answer must contain; empty: anything. */
  readonly marker: string
  readonly warmUpMs?: number
  /** Without it, a request follows whenever another was answered. */
  readonly perSecond?: number
  /** Whether requests may be sent again when they run out. */
  readonly recycles?: boolean
}

export interface RunResult extends Measured {
  /** From the first request on. */
  readonly sent: number
  /** The requests were used up before the time was. */
  readonly ranOut: boolean
  /** Number of answers to what was sent (at a rate: was due) within the measured time. */
  readonly answers: number
  /** Length of a whole answer, on average. */
  readonly answerBytes: number
  readonly latencies: Latencies
}

/** Rejects if any answer was not the expected one, or there was nothing to measure. */
export async function runLoad(spec: RunSpec, requests: Requests): Promise<RunResult> {
  return await new PrebuiltLoad(spec, requests).run()
}

/** Load (test/harness/load/load.ts) asks begin() for the one request of each visitor, and calls next() with its answer. */
class PrebuiltLoad extends Load {
  readonly marker: Buffer
  protected readonly patienceMs = Infinity // every visitor comes, however late
  readonly #spec: RunSpec
  readonly #requests: Requests
  readonly #times = new Times()
  #answerBytes = 0
  #ranOut = false

  constructor(spec: RunSpec, requests: Requests) {
    const { port, perSecond = CLOSED_LOOP } = spec
    // Each connection is used every second, so that none is closed for being idle.
    super({ port, connections: Math.max(1, Math.min(CONNECTIONS, Math.floor(perSecond))) })
    this.#spec = spec
    this.#requests = requests
    this.marker = Buffer.from(spec.marker)
  }

  async run(): Promise<RunResult> {
    const { perSecond: visitorsPerSecond = CLOSED_LOOP, warmUpMs = 0, measureMs, pids } = this.#spec
    const measured = await this.measured({ visitorsPerSecond, warmUpMs, measureMs, pids })
    const { bad, badAnswers } = measured
    if (bad > 0) {
      const first = badAnswers[0]!.replaceAll(/\s*\n\s*/g, ' | ')
      throw new Error(`${bad} answers were not the expected one; the first: ${first}`)
    }
    const latencies = this.#times.latencies()
    const { count: answers } = latencies
    const why = this.#ranOut ? ': the requests ran out before' : ''
    if (answers === 0) throw new Error(`nothing was answered within the measured time${why}`)
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
