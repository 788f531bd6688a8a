/** Watches the event loop, and refuses what it cannot answer: see domain/overload.ts. */

import { performance } from 'node:perf_hooks'
import { LOOK_MS, Overload } from '../domain/overload.ts'
import type { Gate, Part } from './exchange-host.ts'

export interface OverloadGateOptions {
  /** What a turn of the event loop may take while requests are refused, in milliseconds. */
  readonly turnMsTarget: number
  /** @param refused how many have been, since it began */
  readonly onChange: (isShedding: boolean, refused: number) => void
}

export class OverloadGate implements Gate {
  isShedding = false
  readonly #overload: Overload
  readonly #onChange: OverloadGateOptions['onChange']
  #timer: NodeJS.Timeout | undefined
  #refused = 0
  #isInTurn = false
  /** By `performance.eventLoopUtilization`, at the last look and at the begin of the turn. */
  #lookedAt = performance.eventLoopUtilization()
  #turnAt = this.#lookedAt

  constructor({ turnMsTarget, onChange }: OverloadGateOptions) {
    this.#overload = new Overload({ turnMsTarget })
    this.#onChange = onChange
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.isShedding = false
  }

  admits(part: Part): boolean {
    if (!this.#isInTurn) this.#beginTurn()
    const isNew = part === 'challenge' || part === 'content'
    const isAdmitted = this.#overload.admits(isNew ? 'new' : 'begun')
    if (!isAdmitted) this.#refused++
    return isAdmitted
  }

  seen(): void {
    if (!this.#isInTurn) this.#beginTurn()
    this.#overload.seen()
  }

  /** Costs a microsecond or two, while there are too many requests. */
  #beginTurn(): void {
    this.#isInTurn = true
    setImmediate(this.#endTurn)
    const before = this.#turnAt
    this.#turnAt = performance.eventLoopUtilization()
    this.#overload.turn(this.#turnAt.active - before.active)
  }

  readonly #endTurn = (): void => {
    this.#isInTurn = false
  }

  #look(): void {
    const before = this.#lookedAt
    const now = performance.eventLoopUtilization()
    this.#lookedAt = now
    const idleMs = now.idle - before.idle
    if (!this.#overload.looked(idleMs, idleMs + now.active - before.active)) return
    const { isShedding } = this.#overload
    this.#turnAt = now
    this.isShedding = isShedding
    this.#onChange(isShedding, this.#refused)
    if (isShedding) this.#refused = 0
  }
}
