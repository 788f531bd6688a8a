/**
 * Decides which requests a worker sheds when too many arrive.
 *
 * Overload means queueing delay, not CPU use. The event loop reads what has arrived, answers it and writes to the store while
 * later requests wait for its next turn. A timer waits just as long, so its lateness is the queueing delay. As in CoDel (RFC
 * 8289), only a delay that stays above the target counts, not a burst.
 *
 *   level 0   All requests are admitted.
 *   level 1   Once a turn's budget is used up, new work (a challenge, a file) is refused until the next turn.
 *   level 2   Begun work (solutions and tokens) is refused too, once its own budget is used up.
 *
 *   up        when all measurements of an interval are above the target
 *   down      when none has been for a while, and, at level 1, almost nothing was refused
 *
 * New work goes first: refusing it costs one short answer, while refusing begun work wastes what a browser and this service
 * have already computed. Only turns that used up their budget refuse, so a worker is never idle while it refuses. Some
 * challenges are admitted even in a flood of begun work, or of requests that cannot be refused.
 */

/** `new` is a challenge or a file, `begun` a solution or a token. */
export type WorkKind = 'new' | 'begun'

/** How often to call `looked`. */
export const LOOK_MS = 20
/** By level, how long the delay must last before the level rises. A burst of 5,000 requests takes half the first. */
const RAISE_AFTER_MS = [500, 2000]
/** By level, how long the delay must stay within the target before the level falls. */
const LOWER_AFTER_MS = [0, 1000, 5000]
/** Level 1 ends if less new work than this was refused, so a few long turns below capacity do not hold a worker there. */
const SHED_SHARE_MAX = 0.02

/** Of the target. With 0.2 for new work, visitors wait four times as long and no more are served. */
const BUDGET_SHARE = { new: 0.05, begun: 0.5 }
/** What long turns always leave of a budget. */
const BUDGET_MIN = 0.1
/** Challenges admitted per other request, whatever the budget. A served visitor makes one challenge and two other requests. */
const NEW_PER_OTHER = 0.25

export class Overload {
  #level: 0 | 1 | 2 = 0
  readonly #delayMsTarget: number
  /** Since when every measurement was above the target. */
  #overSinceMs: number | undefined
  /** Since when none was; then, since that time, requests for new work and refusals of them. */
  #quietSinceMs = 0
  #newSeen = 0
  #newShed = 0
  #turnAtMs = 0
  readonly #budgetMs = { new: 0, begun: 0 }
  /** In this turn: admitted new work, and all other requests. */
  #newAdmitted = 0
  #others = 0

  /** @param delayMsTarget acceptable queueing delay */
  constructor(delayMsTarget: number) {
    this.#delayMsTarget = delayMsTarget
  }

  /** Whether `turn`, `admits` and `seen` must be called. */
  get isShedding(): boolean {
    return this.#level > 0
  }

  /**
   * @param nowMs any monotonic clock
   * @param delayMs how late this call is, times the number of turns that a request takes
   */
  looked(nowMs: number, delayMs: number): void {
    if (delayMs > this.#delayMsTarget) {
      this.#overSinceMs ??= nowMs
      this.#startQuiet(nowMs)
      if (this.#level === 2 || nowMs - this.#overSinceMs < RAISE_AFTER_MS[this.#level]!) return
      this.#level++
      this.#overSinceMs = undefined
    } else {
      this.#overSinceMs = undefined
      if (this.#level === 0 || nowMs - this.#quietSinceMs < LOWER_AFTER_MS[this.#level]!) return
      if (this.#level === 2 || this.#newShed <= this.#newSeen * SHED_SHARE_MAX) this.#level--
      this.#startQuiet(nowMs)
    }
  }

  #startQuiet(nowMs: number): void {
    this.#quietSinceMs = nowMs
    this.#newSeen = 0
    this.#newShed = 0
  }

  /** Call at a turn's first request. */
  turn(nowMs: number): void {
    const beforeMs = nowMs - this.#turnAtMs
    this.#turnAtMs = nowMs
    this.#budgetMs.new = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.new)
    this.#budgetMs.begun = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.begun)
    this.#newAdmitted = 0
    this.#others = 0
  }

  /** Notes a request that is as cheap to answer as to refuse. */
  seen(): void {
    this.#others++
  }

  admits(kind: WorkKind, nowMs: number): boolean {
    const isInBudget = nowMs - this.#turnAtMs < this.#budgetMs[kind]
    if (kind === 'begun') {
      this.#others++
      return isInBudget || this.#level < 2
    }
    this.#newSeen++
    if (!isInBudget && this.#newAdmitted >= this.#others * NEW_PER_OTHER) {
      this.#newShed++
      return false
    }
    this.#newAdmitted++
    return true
  }
}

/** Begun work, refusals and the store also take time. If they made the last turn too long, the budget shrinks in proportion. */
function budgetAfter(turnMs: number, budgetMs: number): number {
  return turnMs <= budgetMs ? budgetMs : budgetMs * Math.max(BUDGET_MIN, budgetMs / turnMs)
}
