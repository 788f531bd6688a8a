/**
 * Which requests are refused when more come than can be answered.
 *
 * Overload is a queueing delay, not a lack of idle time. The event loop works in turns: each reads what has come, answers it
 * and writes to the store, and what comes meanwhile waits for the next. A timer waits with it, so its lateness is
 * that delay. As CoDel (RFC 8289) does for packets, only a delay that stays above its target counts: a burst does not.
 *
 *   level 0   All requests are admitted.
 *   level 1   When a turn has used up its budget, new work (a challenge, a file) is refused for the rest of the turn.
 *   level 2   So is begun work: solutions and tokens.
 *
 *   up        when every look of an interval has found the delay above the target
 *   down      when none has for a while, and at level 1 nothing was refused
 *
 * New work is refused first. A visitor without a challenge has cost one short answer, and has lost nothing; a refused
 * solution or token is work lost that a browser and this service have done already.
 *
 * A request is refused only in a turn that has used up its budget, so the event loop is never idle while it refuses. Behind a
 * flood of begun work, or of requests that cannot be refused, challenges have a share of their own.
 */

/** `new` work, a challenge or a file, or `begun`: solutions and tokens. */
export type WorkKind = 'new' | 'begun'

export interface OverloadOptions {
  /** The queueing delay that a request may have, in milliseconds. */
  readonly delayMsTarget: number
}

/** How often `looked` is to be called. */
export const LOOK_MS = 20
/**
 * By level: how long the delay must last before the next one. A burst of 5,000 requests is answered within half of the
 * first; what had begun when level 1 was reached, within the second.
 */
const INTERVALS_MS = [500, 2000]
/** By level, before it goes down. */
const QUIET_MS = [0, 1000, 5000]

/**
 * Budgets, of the target. Turns of three to ten times the budget of new work are what comes of it under 1.5 to 6 times
 * the load. With 0.2 in its place as many visitors are served, and wait four times as long.
 */
const BUDGET_SHARE = { new: 0.05, begun: 0.5 }
/** Of a budget: what is left of it after turns that were too long. */
const BUDGET_MIN = 0.1
/** Challenges for each request of another kind, whatever the budget. Of visitors who are served it is one for two. */
const NEW_PER_OTHER = 0.25

export class Overload {
  #level: 0 | 1 | 2 = 0
  readonly #delayMsTarget: number
  /** Since when every look has found the delay above the target. */
  #overSinceMs: number | undefined
  /** When the delay was last above the target, or a request was refused at level 1. */
  #lastSignMs = 0
  #turnAtMs = 0
  readonly #budgetMs = { new: 0, begun: 0 }
  /** Of the turn: challenges and files that were admitted, and all other requests. */
  #newAdmitted = 0
  #others = 0

  constructor({ delayMsTarget }: OverloadOptions) {
    this.#delayMsTarget = delayMsTarget
  }

  /** Whether `turn`, `admits` and `seen` are to be called. */
  get isShedding(): boolean {
    return this.#level > 0
  }

  /**
   * All times are of one clock that never steps, in milliseconds.
   *
   * @param delayMs how much later this call came than it was due, for each turn that a request takes
   */
  looked(nowMs: number, delayMs: number): void {
    if (delayMs > this.#delayMsTarget) {
      this.#overSinceMs ??= nowMs
      this.#lastSignMs = nowMs
      if (this.#level === 2 || nowMs - this.#overSinceMs < INTERVALS_MS[this.#level]!) return
      this.#level++
      this.#overSinceMs = undefined
    } else {
      this.#overSinceMs = undefined
      if (this.#level === 0 || nowMs - this.#lastSignMs < QUIET_MS[this.#level]!) return
      this.#level--
      this.#lastSignMs = nowMs
    }
  }

  /** A turn begins: its first request has come. */
  turn(nowMs: number): void {
    const beforeMs = nowMs - this.#turnAtMs
    this.#turnAtMs = nowMs
    this.#budgetMs.new = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.new)
    this.#budgetMs.begun = budgetAfter(beforeMs, this.#delayMsTarget * BUDGET_SHARE.begun)
    this.#newAdmitted = 0
    this.#others = 0
  }

  /** A request that costs as much to refuse as to answer. */
  seen(): void {
    this.#others++
  }

  admits(kind: WorkKind, nowMs: number): boolean {
    const isInBudget = nowMs - this.#turnAtMs < this.#budgetMs[kind]
    if (kind === 'begun') {
      this.#others++
      return isInBudget || this.#level < 2
    }
    if (!isInBudget && this.#newAdmitted >= this.#others * NEW_PER_OTHER) {
      if (this.#level === 1) this.#lastSignMs = nowMs
      return false
    }
    this.#newAdmitted++
    return true
  }
}

/**
 * By begun work, refusals and the store's part a turn takes longer than its budget. So the budget becomes smaller where the
 * turn before took longer than that.
 */
function budgetAfter(turnMs: number, budgetMs: number): number {
  return turnMs <= budgetMs ? budgetMs : budgetMs * Math.max(BUDGET_MIN, budgetMs / turnMs)
}
