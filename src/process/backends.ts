/** Logs which backends used half of a limit of redemptions, name no visitor's address, or send a field that powgate does not check. */

import type { BackendCount } from '../endpoints/backend-counts.ts'
import type { Logger } from '../log/logger.ts'
import { BackendWatch, type LimitUse } from './backend-watch.ts'

const WATCH_MS = 5000
const LOGGED_AGAIN_MS = 600_000
/** Bounds the memory: with more callers than this, some are logged again sooner. */
const CALLERS_LOGGED_MAX = 1000
/** Bounds the log and the memory, because a backend may pass on whatever fields visitors send. */
const IGNORED_LOGGED_MAX = 100

export class Backends {
  /** Updated every five seconds, as is `unbound`. */
  limitsHalfUsed: readonly LimitUse[] = []
  /** Backends whose redemptions are bound to no address, so that a token solved by anybody is accepted. */
  unbound: readonly { readonly siteKey: string; readonly text: string }[] = []
  readonly #log: Logger
  readonly #watch = new BackendWatch()
  /** Sites whose unbound redemptions were logged. */
  readonly #unboundLogged = new Set<string>()
  readonly #ignoredLogged = new Set<string>()
  /** When each caller's limit was last logged, by `performance.now`. */
  readonly #limitsLogged = new Map<string, { readonly atMs: number; readonly isOver: boolean }>()

  /** @param hosts returns the number of living hosts */
  constructor(log: Logger, hosts: () => number) {
    this.#log = log
    setInterval(() => this.#update(hosts()), WATCH_MS).unref()
  }

  #update(hosts: number): void {
    const nowMs = performance.now()
    this.limitsHalfUsed = this.#watch.limitsHalfUsed(nowMs, Math.max(1, hosts)) // the embedded store notes no host
    for (const use of this.limitsHalfUsed) this.#logLimit(use, nowMs)
    this.unbound = this.#watch.unbound(nowMs)
    for (const { siteKey: site, text } of this.unbound) {
      if (this.#unboundLogged.has(site)) continue
      this.#unboundLogged.add(site)
      this.#log.warn({ event: 'redemption-unbound', site }, text)
    }
  }

  /** The largest share of a limit that was used in the last minute, junk aside; 0 below a half. Above 1, redemptions are refused. */
  get redeemLimitUsed(): number {
    const uses = this.limitsHalfUsed.filter(({ isJunk }) => !isJunk)
    return Math.max(0, ...uses.map(({ perMinute, limit }) => perMinute / limit))
  }

  add(counts: readonly BackendCount[]): void {
    this.#watch.add(counts, performance.now())
    for (const { siteKey, ignored } of counts) if (ignored !== undefined) this.#logIgnored(siteKey, ignored)
  }

  #logIgnored(site: string, field: string): void {
    const key = `${site} ${field}`
    if (this.#ignoredLogged.size === IGNORED_LOGGED_MAX || this.#ignoredLogged.has(key)) return
    this.#ignoredLogged.add(key)
    this.#log.info(
      { event: 'field-ignored', site, field },
      'a backend sends a field that powgate does not know, so it checks nothing',
    )
  }

  /** Logs each caller every ten minutes, and sooner if it was below its limit and now is over it. */
  #logLimit({ text, caller, sites, perMinute, limit, isJunk }: LimitUse, nowMs: number): void {
    const isOver = perMinute > limit
    const key = `${caller} ${isJunk}`
    const before = this.#limitsLogged.get(key)
    if (before !== undefined && nowMs - before.atMs < LOGGED_AGAIN_MS && (before.isOver || !isOver)) return
    if (this.#limitsLogged.size > CALLERS_LOGGED_MAX) this.#limitsLogged.clear()
    this.#limitsLogged.set(key, { atMs: nowMs, isOver })
    this.#log.warn(
      { event: isJunk ? 'redemption-junk' : 'redemption-limit', caller, site: sites[0], perMinute, limit },
      text,
    )
  }
}
