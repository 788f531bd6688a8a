/** Measures the event loop's queueing delay for overload.ts. */

import type { Work } from '../domain/endpoint.ts'
import { MEASURE_MS, Overload } from './overload.ts'

interface OverloadGateOptions {
  readonly delayMsTarget: number
  /** Ticks of the event loop per request: two if the store answers in a later tick, else one. */
  readonly ticksPerRequest: number
  /** @param shed requests shed since shedding began */
  readonly onChange: (isShedding: boolean, shed: number) => void
}

export class OverloadGate {
  /** If true, callers must use `admits` or `seen` for each request. */
  isShedding = false
  readonly #overload: Overload
  readonly #ticksPerRequest: number
  readonly #onChange: OverloadGateOptions['onChange']
  #timer: NodeJS.Timeout | undefined
  #measuredAtMs = 0
  #shed = 0
  #isInTick = false

  constructor({ delayMsTarget, ticksPerRequest, onChange }: OverloadGateOptions) {
    this.#overload = new Overload(delayMsTarget)
    this.#ticksPerRequest = ticksPerRequest
    this.#onChange = onChange
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

  seen(): void {
    if (!this.#isInTick) this.#beginTick(performance.now())
    this.#overload.seen()
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
    this.#overload.measured(nowMs, lateMs * this.#ticksPerRequest)
    this.#measuredAtMs = nowMs
    const { isShedding } = this.#overload
    if (isShedding === this.isShedding) return
    this.isShedding = isShedding
    this.#onChange(isShedding, this.#shed)
    if (isShedding) this.#shed = 0
  }
}
