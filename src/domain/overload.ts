/**
 * Decides which requests a worker sheds when too many arrive.
 *
 * Overload is measured by queueing delay, not by CPU use. Each turn of the event loop reads the requests that have arrived,
 * answers them and writes to the store. Later requests wait for the next turn. A timer waits too, so its lateness is the
 * queueing delay. As CoDel (RFC 8289) does for packets, only a delay that stays above its target counts, not a burst.
 *
 *   level 0   All requests are admitted.
 *   level 1   When a turn has used up its budget, new work (a challenge, a file) is refused for the rest of the turn.
 *   level 2   Begun work (solutions and tokens) is refused too, when its own budget is used up.
 *
 *   up        when all measurements of an interval are above the target
 *   down      when none has been for a while, and, at level 1, almost nothing was refused
 *
 * New work is refused first. A refused visitor without a challenge has cost one short answer and lost nothing. A refused
 * solution or token wastes work that a browser and this service have already done.
 *
 * A request is refused only in a turn that has used up its budget, so a worker that refuses is never idle. A share of
 * challenges is admitted even in a flood of begun work, or of requests that cannot be refused.
 */

/** `new` is a challenge or a file, `begun` a solution or a token. */
export type WorkKind = 'new' | 'begun'

/** How often `looked` is to be called with a measurement. */
export const LOOK_MS = 20
/** By level, how long the delay must last before the level rises. A burst of 5,000 requests is answered in half the first. */
const INTERVALS_MS = [500, 2000]
/** By level, how long the delay must stay within its target before the level falls. */
const QUIET_MS = [0, 1000, 5000]
/** Level 1 ends if no more of new work was refused: a few long turns below capacity must not keep a worker there. */
const SHED_SHARE_MAX = 0.02

/** Budgets as shares of the target. With 0.2 for new work, visitors wait four times as long, and no more are served. */
const BUDGET_SHARE = { new: 0.05, begun: 0.5 }
/** The least share of a budget that remains after turns that were too long. */
const BUDGET_MIN = 0.1
/** Challenges admitted for each other request, whatever the budget. A visitor who is served makes one for two others. */
const NEW_PER_OTHER = 0.25

export class Overload {
  #level: 0 | 1 | 2 = 0
  readonly #delayMsTarget: number
  /** Start of the time in which all measurements were above the target. */
  #overSinceMs: number | undefined
  /** Start of the time in which none was above; then the requests for new work in that time, and those refused. */
  #quietSinceMs = 0
  #newSeen = 0
  #newShed = 0
  #turnAtMs = 0
  readonly #budgetMs = { new: 0, begun: 0 }
  /** Challenges and files that were admitted in this turn, and all other requests. */
  #newAdmitted = 0
  #others = 0

  /** @param delayMsTarget the acceptable queueing delay of a request, in milliseconds */
  constructor(delayMsTarget: number) {
    this.#delayMsTarget = delayMsTarget
  }

  /** Whether `turn`, `admits` and `seen` are to be called. */
  get isShedding(): boolean {
    return this.#level > 0
  }

  /**
   * Takes a measurement. All times are milliseconds of one monotonic clock.
   *
   * @param delayMs the lateness of this call, times the number of turns that a request takes
   */
  looked(nowMs: number, delayMs: number): void {
    if (delayMs > this.#delayMsTarget) {
      this.#overSinceMs ??= nowMs
      this.#startQuiet(nowMs)
      if (this.#level === 2 || nowMs - this.#overSinceMs < INTERVALS_MS[this.#level]!) return
      this.#level++
      this.#overSinceMs = undefined
    } else {
      this.#overSinceMs = undefined
      if (this.#level === 0 || nowMs - this.#quietSinceMs < QUIET_MS[this.#level]!) return
      if (this.#level === 2 || this.#newShed <= this.#newSeen * SHED_SHARE_MAX) this.#level--
      this.#startQuiet(nowMs)
    }
  }

  #startQuiet(nowMs: number): void {
    this.#quietSinceMs = nowMs
    this.#newSeen = 0
    this.#newShed = 0
  }

  /** Begins a turn, at its first request. */
  turn(nowMs: number): void {
    const beforeMs = nowMs - this.#turnAtMs
    this.#turnAtMs = nowMs
    this.#budgetMs.new = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.new)
    this.#budgetMs.begun = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.begun)
    this.#newAdmitted = 0
    this.#others = 0
  }

  /** Notes a request that costs as much to refuse as to answer. */
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

/**
 * A turn takes longer than its budget by begun work, refusals and the store's work. So the budget shrinks in proportion if
 * the previous turn was longer.
 */
function budgetAfter(turnMs: number, budgetMs: number): number {
  return turnMs <= budgetMs ? budgetMs : budgetMs * Math.max(BUDGET_MIN, budgetMs / turnMs)
}
