/**
 * Tells if the store is ready, and reports changes. A store is ready if at least half of the shards answer: if one lost primary
 * of three made hosts unready, all would leave the load balancer.
 */

import type { StoreCause } from '../../words/reasons.ts'
import { storeErrorText } from '../../words/system-error.ts'
import type { StoreListener } from '../store.ts'
import type { Connection } from './connection.ts'
import type { Shard } from './shard.ts'
import { causeOf } from './trouble.ts'

/** Shards notice a lost server milliseconds apart; one log line reports all. */
const GATHER_MS = 50
/** The cause of an outage is looked at this often. */
const CAUSE_CHECK_MS = 500
/** A cause that was reported is reported again after this time. */
const SAME_CAUSE_MS = 60_000
/** A server that evicts keys may lose some with every call, so that is reported at most this often. */
const FORGOTTEN_MS = 10_000
/** At the start, a store of which half of the shards are up is ready only after this time, in which the others may follow. */
const START_MS = 1000

/** What the log has in place of a cause once all shards answer. The store process, which runs no Lua, has it, too. */
const NO_CAUSE = 'the scripts run'

export class ShardHealth {
  readonly #shards: readonly Shard[]
  readonly #listener: StoreListener
  readonly #causeAt: Connection['causeAt']
  readonly #reportedAtMs = new Map<StoreCause, number>()
  /** The fewest shards up that this outage's reports told. */
  #fewestReported = 0
  readonly #forgotten = new Set<Shard>()
  #forgottenTimer: NodeJS.Timeout | undefined
  #forgottenReportedAtMs = Number.NEGATIVE_INFINITY
  /** When `isReady` first found half of the shards up. */
  #halfUpAtMs: number | undefined
  /** Stays true from then on: later outages are no start. */
  #wereAllUp = false
  /** True at the start too, so that the first contact is reported. */
  #isReportedDown = true
  /** Waits GATHER_MS, after a shard went down, to report it. */
  #gatherTimer: NodeJS.Timeout | undefined
  readonly #causeTimer: NodeJS.Timeout

  constructor(shards: readonly Shard[], listener: StoreListener, causeAt: Connection['causeAt']) {
    this.#shards = shards
    this.#listener = listener
    this.#causeAt = causeAt
    this.#causeTimer = setInterval(() => this.#reportCause(), CAUSE_CHECK_MS).unref()
  }

  isReady(): boolean {
    if (this.#upCount() * 2 < this.#shards.length) return false
    if (this.#wereAllUp) return true
    this.#halfUpAtMs ??= performance.now()
    return performance.now() - this.#halfUpAtMs > START_MS
  }

  isWhole(): boolean {
    return this.#shards.every(shard => shard.isUp)
  }

  describe(): string {
    const { length } = this.#shards
    const cause = storeErrorText(this.cause())
    return length === 1 ? cause : `${this.#upCount()} of ${length} shards answer: ${cause}`
  }

  /** Why the first shard that is down is so: its connection's error if there is one, because the shard's own cause follows from that. */
  cause(): string {
    const down = this.#shards.find(shard => !shard.isUp)
    return down === undefined ? NO_CAUSE : this.#causeAt(down.slot, down.cause)
  }

  /** Call it when a shard went down or came up. */
  changed(): void {
    if (this.isWhole()) {
      this.#wereAllUp = true
      clearTimeout(this.#gatherTimer)
      this.#gatherTimer = undefined
      if (this.#isReportedDown) this.#listener.onChange?.(true, NO_CAUSE)
      this.#isReportedDown = false
    } else if (!this.#isReportedDown && this.#gatherTimer === undefined) {
      if (this.#shards.length === 1) this.#reportDown()
      else this.#gatherTimer = setTimeout(() => this.#reportDown(), GATHER_MS).unref()
    }
  }

  /** Call it when a shard's epoch was replaced. `onNewEpoch` counts each at once; `onForgotten`, which is logged, gathers several. */
  forgot(shard: Shard): void {
    this.#listener.onNewEpoch?.()
    this.#forgotten.add(shard)
    if (this.#forgottenTimer !== undefined) return
    const report = () => {
      this.#forgottenTimer = undefined
      this.#forgottenReportedAtMs = performance.now()
      this.#listener.onForgotten?.(this.#forgotten.size, this.#shards.length)
      this.#forgotten.clear()
    }
    const waitMs = Math.max(GATHER_MS, this.#forgottenReportedAtMs + FORGOTTEN_MS - performance.now())
    this.#forgottenTimer = setTimeout(report, waitMs).unref()
  }

  stop(): void {
    for (const timer of [this.#gatherTimer, this.#causeTimer, this.#forgottenTimer]) clearTimeout(timer)
  }

  #reportDown(): void {
    this.#gatherTimer = undefined
    this.#isReportedDown = true
    this.#reportedAtMs.clear()
    this.#reportedAtMs.set(causeOf(this.cause()), performance.now())
    this.#fewestReported = this.#upCount()
    this.#listener.onChange?.(false, this.describe())
  }

  /** Reports each cause that shows up during an outage, since the first one is rarely the true one, and when more shards have gone. */
  #reportCause(): void {
    if (!this.#isReportedDown) return
    const cause = causeOf(this.cause())
    const [nowMs, upCount] = [performance.now(), this.#upCount()]
    const isNew = nowMs - (this.#reportedAtMs.get(cause) ?? Number.NEGATIVE_INFINITY) >= SAME_CAUSE_MS
    if (!isNew && upCount >= this.#fewestReported) return
    this.#reportedAtMs.set(cause, nowMs)
    this.#fewestReported = Math.min(this.#fewestReported, upCount)
    this.#listener.onStillAway?.(this.describe())
  }

  #upCount(): number {
    return this.#shards.filter(shard => shard.isUp).length
  }
}
