/** Holds a token until it expires, and tells when to fetch the next one. */

import type { FlowResult } from './flow.ts'

/** When a token is renewed, and when it counts as expired, as shares of its lifetime: the backend needs time to redeem it. */
const RENEW_AT = 0.8
const EXPIRE_AT = 0.97
/** The shortest wait, for tokens that live briefly. */
const RENEW_MS_MIN = 1000

interface Hooks {
  readonly onRenew: () => void
  readonly onExpire: () => void
}

export class HeldToken {
  readonly #hooks: Hooks
  #result: FlowResult | undefined
  #renewsAtMs = 0
  #expiresAtMs = 0
  #timers: ReturnType<typeof setTimeout>[] = []

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  /** Looks at the clock first, because timers stand still while the machine sleeps: a token whose time is over expires now. */
  get result(): FlowResult | undefined {
    this.expireIfDue()
    return this.#result
  }

  get isRenewalDue(): boolean {
    return this.#result !== undefined && Date.now() >= this.#renewsAtMs
  }

  hold(result: FlowResult): void {
    this.drop()
    const renewInMs = Math.max(RENEW_MS_MIN, result.lifetimeMs * RENEW_AT)
    this.#result = result
    this.#renewsAtMs = Date.now() + renewInMs
    this.#expiresAtMs = Date.now() + result.lifetimeMs * EXPIRE_AT
    this.resume()
  }

  /** Starts the timers again, and expires the token first if its time is over. */
  resume(): void {
    if (this.result === undefined) return
    const nowMs = Date.now()
    this.pause()
    this.#timers = [
      setTimeout(this.#hooks.onRenew, this.#renewsAtMs - nowMs),
      setTimeout(() => this.#expire(), this.#expiresAtMs - nowMs),
    ]
  }

  /** Ends the timers, which would keep an element that left the document in memory until its token expires. */
  pause(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }

  drop(): void {
    this.#result = undefined
    this.pause()
  }

  expireIfDue(): void {
    if (this.#result !== undefined && Date.now() >= this.#expiresAtMs) this.#expire()
  }

  #expire(): void {
    this.drop()
    this.#hooks.onExpire()
  }
}
