/** Measures the event loop's queueing delay for overload.ts. */

import type { WorkKind } from '../domain/endpoint.ts'
import type { Gate } from './exchange-host.ts'
import { LOOK_MS, Overload } from './overload.ts'

interface OverloadGateOptions {
  readonly delayMsTarget: number
  /** Event-loop turns per request: two if the store answers in a later one, else one. */
  readonly turnsPerRequest: number
  /** @param shed requests shed since shedding began */
  readonly onChange: (isShedding: boolean, shed: number) => void
}

export class OverloadGate implements Gate {
  isShedding = false
  readonly #overload: Overload
  readonly #turnsPerRequest: number
  readonly #onChange: OverloadGateOptions['onChange']
  #timer: NodeJS.Timeout | undefined
  #lookedAtMs = 0
  #shed = 0
  #isInTurn = false

  constructor({ delayMsTarget, turnsPerRequest, onChange }: OverloadGateOptions) {
    this.#overload = new Overload(delayMsTarget)
    this.#turnsPerRequest = turnsPerRequest
    this.#onChange = onChange
  }

  start(): void {
    this.#lookedAtMs = performance.now()
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.isShedding = false
  }

  admits(work: WorkKind): boolean {
    const nowMs = performance.now()
    if (!this.#isInTurn) this.#beginTurn(nowMs)
    const isAdmitted = this.#overload.admits(work, nowMs)
    if (!isAdmitted) this.#shed++
    return isAdmitted
  }

  seen(): void {
    if (!this.#isInTurn) this.#beginTurn(performance.now())
    this.#overload.seen()
  }

  #beginTurn(nowMs: number): void {
    this.#isInTurn = true
    setImmediate(this.#endTurn)
    this.#overload.turn(nowMs)
  }

  readonly #endTurn = (): void => {
    this.#isInTurn = false
  }

  #look(): void {
    const nowMs = performance.now()
    const lateMs = nowMs - this.#lookedAtMs - LOOK_MS
    this.#overload.looked(nowMs, lateMs * this.#turnsPerRequest)
    this.#lookedAtMs = nowMs
    const { isShedding } = this.#overload
    if (isShedding === this.isShedding) return
    this.isShedding = isShedding
    this.#onChange(isShedding, this.#shed)
    if (isShedding) this.#shed = 0
  }
}
