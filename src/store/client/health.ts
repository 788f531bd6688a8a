/**
 * Tells if the store is ready, and reports changes. A store is ready if at least half of the shards answer: if one lost primary
 * of three made hosts unready, all would leave the load balancer.
 */

import type { StoreCause } from '../../words/reasons.ts'
import { storeErrorText } from '../../words/system-error.ts'
import type { StoreListener } from '../store.ts'
import { causeOf } from './inspection.ts'
import type { Shard } from './shard.ts'

/** Shards notice a lost server milliseconds apart; one log line reports all. */
const GATHER_MS = 50
const CAUSE_CHECK_MS = 500
const CAUSE_TOLD_MS = 60_000
/** A server that evicts keys may lose some with every call, so the log tells of it at most this often. */
const FORGOTTEN_MS = 10_000
/** The other half of the shards may follow within this time at the start. */
const START_MS = 1000

export class ShardHealth {
  readonly #shards: readonly Shard[]
  readonly #listener: StoreListener
  readonly #connectionError: (slot: number) => string | undefined
  readonly #toldAtMs = new Map<StoreCause, number>()
  readonly #forgotten = new Set<Shard>()
  #forgottenTimer: NodeJS.Timeout | undefined
  #forgottenToldAtMs = Number.NEGATIVE_INFINITY
  #startedAtMs: number | undefined
  #wereAllUp = false
  #isToldDown = true
  #timer: NodeJS.Timeout | undefined

  /** @param connectionError the last of a slot's server since it was ready */
  constructor(
    shards: readonly Shard[],
    listener: StoreListener,
    connectionError: (slot: number) => string | undefined,
  ) {
    this.#shards = shards
    this.#listener = listener
    this.#connectionError = connectionError
    this.#watchCause()
  }

  isReady(): boolean {
    if (this.#upCount() * 2 < this.#shards.length) return false
    if (this.#wereAllUp) return true
    this.#startedAtMs ??= performance.now()
    return performance.now() - this.#startedAtMs > START_MS
  }

  isWhole(): boolean {
    return this.#upCount() === this.#shards.length
  }

  describe(): string {
    const { length } = this.#shards
    const cause = storeErrorText(this.cause())
    return length === 1 ? cause : `${this.#upCount()} of ${length} shards answer: ${cause}`
  }

  /** A connection error says more than its symptoms. */
  cause(): string {
    const down = this.#shards.find(shard => !shard.isUp)
    return down === undefined ? 'the scripts run' : (this.#connectionError(down.slot) ?? down.cause)
  }

  changed(): void {
    if (this.isWhole()) {
      this.#wereAllUp = true
      clearTimeout(this.#timer)
      this.#timer = undefined
      if (this.#isToldDown) this.#listener.onChange?.(true, 'the scripts run')
      this.#isToldDown = false
    } else if (!this.#isToldDown && this.#timer === undefined) {
      if (this.#shards.length === 1) this.#tellDown()
      else this.#timer = setTimeout(() => this.#tellDown(), GATHER_MS).unref()
    }
  }

  forgot(shard: Shard): void {
    this.#listener.onNewEpoch?.()
    this.#forgotten.add(shard)
    if (this.#forgottenTimer !== undefined) return
    const tell = () => {
      this.#forgottenTimer = undefined
      this.#forgottenToldAtMs = performance.now()
      this.#listener.onForgotten?.(this.#forgotten.size, this.#shards.length)
      this.#forgotten.clear()
    }
    const waitMs = Math.max(GATHER_MS, this.#forgottenToldAtMs + FORGOTTEN_MS - performance.now())
    this.#forgottenTimer = setTimeout(tell, waitMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#forgottenTimer)
  }

  #tellDown(): void {
    this.#timer = undefined
    this.#isToldDown = true
    this.#toldAtMs.clear()
    this.#toldAtMs.set(causeOf(this.cause()), performance.now())
    this.#listener.onChange?.(false, this.describe())
    this.#watchCause()
  }

  #watchCause(): void {
    this.#timer = setInterval(() => this.#tellCause(), CAUSE_CHECK_MS).unref()
  }

  /** The first symptom is rarely the cause, and causes change: each is told once a minute. */
  #tellCause(): void {
    const cause = causeOf(this.cause())
    const nowMs = performance.now()
    if (nowMs - (this.#toldAtMs.get(cause) ?? Number.NEGATIVE_INFINITY) < CAUSE_TOLD_MS) return
    this.#toldAtMs.set(cause, nowMs)
    this.#listener.onStillAway?.(this.describe())
  }

  #upCount(): number {
    let count = 0
    for (const shard of this.#shards) if (shard.isUp) count++
    return count
  }
}
