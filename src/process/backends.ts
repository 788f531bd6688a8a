/** Reports three kinds of backends: near a limit of redemptions, naming no visitor's address, and sending a field that nobody checks. */

import { configFlag } from '../config/config.ts'
import type { BackendCount } from '../endpoints/backend-counts.ts'
import type { Logger } from '../log/logger.ts'
import { BackendWatch, type NearLimit } from './backend-watch.ts'

const WATCH_MS = 5000
const TOLD_AGAIN_MS = 600_000
/** More ignored fields are not logged: a backend may pass on whatever visitors send. */
const IGNORED_TOLD_MAX = 100

export class Backends {
  /** Backends that used half of a limit within the last minute, as of the last look. */
  near: readonly NearLimit[] = []
  /** Backends whose redemptions are bound to no address, so that a token solved by anybody is accepted. */
  unbound: readonly { readonly siteKey: string; readonly text: string }[] = []
  readonly #log: Logger
  readonly #watch = new BackendWatch(configFlag())
  readonly #toldUnbound = new Set<string>()
  readonly #toldIgnored = new Set<string>()
  /** The last report of each caller, by `performance.now`. */
  readonly #told = new Map<string, { readonly atMs: number; readonly isOver: boolean }>()

  /** Looks at the counts every five seconds from now on. @param hosts the number of living ones */
  constructor(log: Logger, hosts: () => number) {
    this.#log = log
    setInterval(() => this.#look(hosts()), WATCH_MS).unref()
  }

  #look(hosts: number): void {
    this.near = this.#watch.near(performance.now(), Math.max(1, hosts))
    for (const limit of this.near) this.#tellLimit(limit)
    this.unbound = this.#watch.unbound(performance.now())
    for (const { siteKey: site, text } of this.unbound) {
      if (this.#toldUnbound.has(site)) continue
      this.#toldUnbound.add(site)
      this.#log.warn({ event: 'redemption-unbound', site }, text)
    }
  }

  /** The largest share of a limit that was used in the last minute, junk aside. Above 1, redemptions are refused. */
  get used(): number {
    const near = this.near.filter(({ isJunk }) => !isJunk)
    return Math.max(0, ...near.map(({ perMinute, limit }) => perMinute / limit))
  }

  add(counts: readonly BackendCount[]): void {
    this.#watch.add(counts, performance.now())
    for (const { siteKey, ignored } of counts) if (ignored !== undefined) this.#tellIgnored(siteKey, ignored)
  }

  #tellIgnored(site: string, field: string): void {
    const key = `${site} ${field}`
    if (this.#toldIgnored.size === IGNORED_TOLD_MAX || this.#toldIgnored.has(key)) return
    this.#toldIgnored.add(key)
    this.#log.info(
      { event: 'field-ignored', site, field },
      'a backend sends a field that powgate does not know, so it checks nothing',
    )
  }

  #tellLimit({ text, caller: ip, sites, perMinute, limit, isJunk }: NearLimit): void {
    const nowMs = performance.now()
    const isOver = perMinute > limit
    const key = `${ip} ${isJunk}`
    const before = this.#told.get(key)
    // Each caller is told of every ten minutes, and sooner if it was near its limit and now is over it.
    if (before !== undefined && nowMs - before.atMs < TOLD_AGAIN_MS && (before.isOver || !isOver)) return
    if (this.#told.size > 1000) this.#told.clear()
    this.#told.set(key, { atMs: nowMs, isOver })
    this.#log.warn(
      { event: isJunk ? 'redemption-junk' : 'redemption-limit', ip, site: sites[0], perMinute, limit },
      text,
    )
  }
}
