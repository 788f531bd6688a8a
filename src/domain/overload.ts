/**
 * Which requests are shed when more come than can be answered.
 *
 *   calm     Nothing is counted and nothing refused. A look every 50 ms asks how long the event loop was idle: never for
 *            a while means that requests come faster than they are answered, a queue that stands. A burst does not.
 *   shedding Every turn of the event loop (it reads what has come, answers it, writes to the store) may take so many
 *            challenges and so many other requests, and the rest is refused at once. A turn that takes longer than its
 *            target lowers the number, one that does not raises it. Who waits, waits for
 *            two turns at most.
 *
 * Challenges are refused first: a visitor who gets none costs one short answer, not three long ones, and loses nothing,
 * while a solution or a token that is refused is work lost that a browser and this service have done already: those are
 * refused only when they alone are far too many. But whoever floods with what looks like begun work, or with requests for
 * nothing at all, does not keep challenges out: they have a share.
 */

/** `new` work, a challenge (or a file), or `begun`: solutions and tokens. */
export type WorkKind = 'new' | 'begun'

export interface OverloadOptions {
  /** What a turn may take while requests are shed, in milliseconds. */
  readonly turnMsTarget: number
}

/** How often `looked` is to be called. */
export const LOOK_MS = 50
/** So many looks in a row without idleness are overload, and as many without a refusal are its end. */
export const LOOKS = 4
/** Of a look's time. Less is what the measuring leaves. */
const IDLE_SHARE_MIN = 0.01

/** One long turn may be a garbage collection, or the machine's other work: no turn takes more than this from what is admitted. */
const LOWER_MAX = 0.8
const LOWER_MIN = 0.97
const RAISE_SHARE = 0.02
const RAISE_MIN = 0.5
/** Begun work is refused only where a turn would take so many times its target. */
const BEGUN_TURNS = 20
/** A turn, on average: never nothing, so that it is seen when there is room again. */
const ADMITTED_MIN = 0.05
/** Of all else in a turn, so many challenges are taken whatever it takes. For each, visitors do two other requests. */
const NEW_SHARE_MIN = 0.25

export class Overload {
  /** Whether `admits` is to be asked. */
  isShedding = false
  readonly #turnMsTarget: number
  readonly #new = new Allowance()
  readonly #begun = new Allowance()
  /** Requests of this turn that are of neither kind. */
  #others = 0
  #looks = 0
  #hasShed = false

  constructor({ turnMsTarget }: OverloadOptions) {
    this.#turnMsTarget = turnMsTarget
  }

  /**
   * @param idleMs how long the event loop waited for something to do since the last look, `passedMs` ago
   * @returns whether `isShedding` has changed
   */
  looked(idleMs: number, passedMs: number): boolean {
    const isAsBefore = this.isShedding ? this.#hasShed : idleMs >= passedMs * IDLE_SHARE_MIN
    this.#hasShed = false
    this.#looks = isAsBefore ? 0 : this.#looks + 1
    if (this.#looks < LOOKS) return false
    this.#looks = 0
    this.isShedding = !this.isShedding
    this.#new.open()
    this.#begun.open()
    return true
  }

  /** A turn begins. @param busyMs what the one before took, without the time that it was idle */
  turn(busyMs: number): void {
    if (busyMs > this.#turnMsTarget) {
      const factor = Math.min(LOWER_MIN, Math.max(LOWER_MAX, this.#turnMsTarget / busyMs))
      const isTooMuch = busyMs > this.#turnMsTarget * BEGUN_TURNS
      const newMin = (this.#begun.taken + this.#others) * NEW_SHARE_MIN
      if (!this.#new.lower(factor, newMin) && isTooMuch) this.#begun.lower(factor)
    } else if (!this.#begun.raise()) {
      this.#new.raise()
    }
    this.#new.refill()
    this.#begun.refill()
    this.#others = 0
  }

  /** A request that is answered in any case. */
  seen(): void {
    this.#others++
  }

  admits(kind: WorkKind): boolean {
    const isAdmitted = (kind === 'new' ? this.#new : this.#begun).take()
    if (!isAdmitted) this.#hasShed = true
    return isAdmitted
  }
}

/** How many of a kind a turn may take. */
class Allowance {
  #perTurn = Number.POSITIVE_INFINITY
  /** Of this turn; parts of one are carried over. */
  #left = Number.POSITIVE_INFINITY
  #taken = 0
  #refused = 0

  /** In this turn. */
  get taken(): number {
    return this.#taken
  }

  open(): void {
    this.#perTurn = Number.POSITIVE_INFINITY
    this.#left = Number.POSITIVE_INFINITY
    this.#taken = 0
    this.#refused = 0
  }

  take(): boolean {
    if (this.#left < 1) {
      this.#refused++
      return false
    }
    this.#left--
    this.#taken++
    return true
  }

  /** @returns whether that was something: less than one a turn, or the least, is not worth taking away */
  lower(factor: number, min = ADMITTED_MIN): boolean {
    const isAsked = this.#taken + this.#refused > 0
    if (!isAsked && this.#perTurn === Number.POSITIVE_INFINITY) return false
    const wasSome = this.#perTurn >= 1 && this.#perTurn > min
    // From what there was, where more was allowed.
    const from = this.#refused > 0 || !isAsked ? this.#perTurn : Math.min(this.#perTurn, this.#taken)
    this.#perTurn = Math.max(ADMITTED_MIN, min, from * factor)
    return wasSome
  }

  /** @returns whether any had been refused */
  raise(): boolean {
    if (this.#refused === 0) return false
    this.#perTurn += Math.max(RAISE_MIN, this.#perTurn * RAISE_SHARE)
    return true
  }

  refill(): void {
    this.#taken = 0
    this.#refused = 0
    this.#left = Math.min(this.#left, 1) + this.#perTurn
  }
}
