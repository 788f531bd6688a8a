/**
 * Decides which requests a worker sheds when too many arrive (docs/explain/overload.md).
 *
 * Requests that arrive during a tick of the event loop wait for the next. A timer waits as long, so its lateness is the
 * queueing delay. As in CoDel (RFC 8289), a delay that stays above the target counts, a burst does not.
 *
 * Work is new or begun (domain/endpoint.ts). Other requests (HEAD, preflights, wrong paths or methods, the demo's form) are answered.
 *
 *   level 0   All requests are admitted.
 *   level 1   Once a tick's budget is used up, new work is refused until the next tick, but for NEW_PER_OTHER.
 *   level 2   Begun work is refused too, once its own budget is used up.
 *
 *   up        when all measurements of an interval are above the target
 *   down      when none has been for a while, and, at level 1, almost nothing was refused
 *
 * Only a tick that used up its budget refuses requests, so no worker is idle while it refuses.
 */

import type { Work } from '../domain/endpoint.ts'

/** The queueing delay is measured this often. */
export const MEASURE_MS = 20
/** A request takes two ticks of the event loop, because the store answers in a later one. */
export const TICKS_PER_REQUEST = 2
/** Level 0 or 1 is left upwards once the delay was too high for this long. A burst of 5,000 requests is over in 250 ms. */
const RAISE_AFTER_MS = { 0: 500, 1: 2000 }
/** Level 1 or 2 is left downwards once the delay was within the target for this long. */
const LOWER_AFTER_MS = { 1: 1000, 2: 5000 }
/** Level 1 is left once at most this share of new work was refused: a few long ticks refuse some even when load is low. */
const SHED_SHARE_MAX = 0.02

/** A tick's budgets as shares of the target. With 0.2 for new work, visitors would wait four times as long, and no more would be served. */
const BUDGET_SHARE = { new: 0.05, begun: 0.5 }
/** The least share of a budget after a long tick. */
const BUDGET_MIN = 0.1
/**
 * A tick whose budget is used up still admits new work once for four other requests, so that a flood of those keeps nobody out
 * entirely.
 */
const NEW_PER_OTHER = 0.25

export class Overload {
  /** If true, each request must be passed to `admits` or `countOther`. */
  isShedding = false
  readonly #delayMsTarget: number
  readonly #onBegin: () => void
  #timer: NodeJS.Timeout | undefined
  #level: 0 | 1 | 2 = 0
  /** Every measurement from this time on was above the target. */
  #overSinceMs: number | undefined
  /** Every measurement after this time was within the target. `#newSeen` and `#newShed` count since. Each check of the share begins anew. */
  #quietSinceMs = 0
  #newSeen = 0
  #newShed = 0
  #isInTick = false
  #tickAtMs = 0
  readonly #budgetMs = { new: 0, begun: 0 }
  #newAdmitted = 0
  /** Requests of this tick that are not new work. */
  #others = 0

  constructor(delayMsTarget: number, onBegin: () => void) {
    this.#delayMsTarget = delayMsTarget
    this.#onBegin = onBegin
  }

  start(): void {
    let beforeMs = performance.now()
    this.#timer = setInterval(() => {
      const nowMs = performance.now()
      this.measured(nowMs, (nowMs - beforeMs - MEASURE_MS) * TICKS_PER_REQUEST)
      beforeMs = nowMs
    }, MEASURE_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.isShedding = false
  }

  /**
   * @param nowMs any monotonic clock
   * @param delayMs how long a request waits: the delay of one tick of the event loop, times the ticks that it takes
   */
  measured(nowMs: number, delayMs: number): void {
    this.#setLevel(nowMs, delayMs)
    if (this.isShedding === this.#level > 0) return
    this.isShedding = this.#level > 0
    if (this.isShedding) this.#onBegin()
  }

  #setLevel(nowMs: number, delayMs: number): void {
    if (delayMs > this.#delayMsTarget) {
      this.#overSinceMs ??= nowMs
      this.#restartQuiet(nowMs)
      if (this.#level === 2 || nowMs - this.#overSinceMs < RAISE_AFTER_MS[this.#level]) return
      this.#level++
      this.#overSinceMs = undefined // the next level needs an interval of its own
    } else {
      this.#overSinceMs = undefined
      if (this.#level === 0 || nowMs - this.#quietSinceMs < LOWER_AFTER_MS[this.#level]) return
      if (this.#level === 2 || this.#newShed <= this.#newSeen * SHED_SHARE_MAX) this.#level--
      this.#restartQuiet(nowMs)
    }
  }

  #restartQuiet(nowMs: number): void {
    this.#quietSinceMs = nowMs
    this.#newSeen = 0
    this.#newShed = 0
  }

  admits(work: Work, nowMs = performance.now()): boolean {
    this.#startTick(nowMs)
    const isInBudget = nowMs - this.#tickAtMs < this.#budgetMs[work]
    // Begun work needs no budget at level 1.
    const isExcepted = work === 'new' ? this.#newAdmitted < this.#others * NEW_PER_OTHER : this.#level < 2
    const isAdmitted = isInBudget || isExcepted
    if (work === 'begun') this.#others++
    else {
      this.#newSeen++
      if (isAdmitted) this.#newAdmitted++
      else this.#newShed++
    }
    return isAdmitted
  }

  /** Counts a request that is neither new nor begun work. It is always answered, because a refusal would mostly cost as much. */
  countOther(nowMs = performance.now()): void {
    this.#startTick(nowMs)
    this.#others++
  }

  #startTick(nowMs: number): void {
    if (this.#isInTick) return
    this.#isInTick = true
    setImmediate(this.endTick)
    // Idle time counts as a long tick: the least budget still admits what such a load brings.
    const sinceLastMs = nowMs - this.#tickAtMs
    this.#tickAtMs = nowMs
    this.#budgetMs.new = budgetAfter(sinceLastMs, this.#delayMsTarget * BUDGET_SHARE.new)
    this.#budgetMs.begun = budgetAfter(sinceLastMs, this.#delayMsTarget * BUDGET_SHARE.begun)
    this.#newAdmitted = 0
    this.#others = 0
  }

  /** Tests call it, too. */
  readonly endTick = (): void => {
    this.#isInTick = false
  }
}

/** After a tick longer than the budget, the next budget shrinks in proportion, because begun work, refusals and the store take time too. */
function budgetAfter(tickMs: number, budgetMs: number): number {
  return tickMs <= budgetMs ? budgetMs : budgetMs * Math.max(BUDGET_MIN, budgetMs / tickMs)
}
