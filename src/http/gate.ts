/** Measures the queueing delay by which overload.ts decides which requests are shed. */

import type { Work } from '../domain/endpoint.ts'
import { MEASURE_MS, Overload } from './overload.ts'

/** A request takes two ticks of the event loop, because the store answers in a later one. */
const TICKS_PER_REQUEST = 2

export class OverloadGate {
  /** If true, each request must be passed to `admits` or `countOther`. */
  isShedding = false
  readonly #overload: Overload
  readonly #onBegin: () => void
  readonly #onEnd: (shed: number) => void
  #timer: NodeJS.Timeout | undefined
  #measuredAtMs = 0
  #shed = 0
  #isInTick = false

  /** @param onEnd gets the number of requests that were shed since shedding began */
  constructor(delayMsTarget: number, onBegin: () => void, onEnd: (shed: number) => void) {
    this.#overload = new Overload(delayMsTarget)
    this.#onBegin = onBegin
    this.#onEnd = onEnd
  }

  start(): void {
    this.#measuredAtMs = performance.now()
    this.#timer = setInterval(() => this.#measure(), MEASURE_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.isShedding = false
  }

  admits(work: Work): boolean {
    const nowMs = performance.now()
    if (!this.#isInTick) this.#beginTick(nowMs)
    const isAdmitted = this.#overload.admits(work, nowMs)
    if (!isAdmitted) this.#shed++
    return isAdmitted
  }

  countOther(): void {
    if (!this.#isInTick) this.#beginTick(performance.now())
    this.#overload.countOther()
  }

  #beginTick(nowMs: number): void {
    this.#isInTick = true
    setImmediate(this.#endTick)
    this.#overload.startTick(nowMs)
  }

  readonly #endTick = (): void => {
    this.#isInTick = false
  }

  #measure(): void {
    const nowMs = performance.now()
    const lateMs = nowMs - this.#measuredAtMs - MEASURE_MS
    this.#overload.measured(nowMs, lateMs * TICKS_PER_REQUEST)
    this.#measuredAtMs = nowMs
    const { isShedding } = this.#overload
    if (isShedding === this.isShedding) return
    this.isShedding = isShedding
    if (isShedding) this.#onBegin()
    else this.#onEnd(this.#shed)
    this.#shed = 0
  }
}
