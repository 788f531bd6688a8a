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
 *   down      when none has for a while, and at level 1 next to nothing was refused
 *
 * New work is refused first. A visitor without a challenge has cost one short answer, and has lost nothing; a refused
 * solution or token is work lost that a browser and this service have done already.
 *
 * A request is refused only in a turn that has used up its budget, so the event loop is never idle while it refuses. Behind a
 * flood of begun work, or of requests that cannot be refused, challenges have a share of their own.
 */

/** `new` work, a challenge or a file, or `begun`: solutions and tokens. */
export type WorkKind = 'new' | 'begun'

/** How often `looked` is to be called. */
export const LOOK_MS = 20
/** By level: how long the delay must last before the next one. A burst of 5,000 requests is answered within half of the first. */
const INTERVALS_MS = [500, 2000]
/** By level, before it goes down. */
const QUIET_MS = [0, 1000, 5000]
/** Of new work, meanwhile: a few long turns below capacity must not keep a worker at level 1. */
const REFUSED_SHARE_MAX = 0.02

/** Budgets, of the target. With 0.2 for new work as many visitors are served, and wait four times as long. */
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
  /** Since when no look has found it there; of that time, new work, and how much of it was refused. */
  #quietSinceMs = 0
  #newSeen = 0
  #newRefused = 0
  #turnAtMs = 0
  readonly #budgetMs = { new: 0, begun: 0 }
  /** Of the turn: challenges and files that were admitted, and all other requests. */
  #newAdmitted = 0
  #others = 0

  /** @param delayMsTarget the queueing delay that a request may have, in milliseconds */
  constructor(delayMsTarget: number) {
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
      this.#startQuiet(nowMs)
      if (this.#level === 2 || nowMs - this.#overSinceMs < INTERVALS_MS[this.#level]!) return
      this.#level++
      this.#overSinceMs = undefined
    } else {
      this.#overSinceMs = undefined
      if (this.#level === 0 || nowMs - this.#quietSinceMs < QUIET_MS[this.#level]!) return
      if (this.#level === 2 || this.#newRefused <= this.#newSeen * REFUSED_SHARE_MAX) this.#level--
      this.#startQuiet(nowMs)
    }
  }

  #startQuiet(nowMs: number): void {
    this.#quietSinceMs = nowMs
    this.#newSeen = 0
    this.#newRefused = 0
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
    this.#newSeen++
    if (!isInBudget && this.#newAdmitted >= this.#others * NEW_PER_OTHER) {
      this.#newRefused++
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
