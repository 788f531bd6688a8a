/** Logs which backends are near a limit of redemptions, name no visitor's address, or send a field that powgate does not check. */

import { configFlag } from '../config/config.ts'
import { WINDOW_MS } from '../domain/limits.ts'
import { type BackendCount, COUNTS_MAX } from '../endpoints/backend-counts.ts'
import type { Logger } from '../log/logger.ts'

const WATCH_MS = 5000
const LOGGED_AGAIN_MS = 600_000
/** Bounds the log and the memory, because a backend may pass on whatever fields visitors send. */
const IGNORED_LOGGED_MAX = 100

export class Backends {
  /** Backends that used half of a limit within the last minute, updated every five seconds. */
  near: readonly NearLimit[] = []
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
    this.near = this.#watch.near(performance.now(), Math.max(1, hosts))
    for (const limit of this.near) this.#logLimit(limit)
    this.unbound = this.#watch.unbound(performance.now())
    for (const { siteKey: site, text } of this.unbound) {
      if (this.#unboundLogged.has(site)) continue
      this.#unboundLogged.add(site)
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

  #logLimit({ text, caller: ip, sites, perMinute, limit, isJunk }: NearLimit): void {
    const nowMs = performance.now()
    const isOver = perMinute > limit
    const key = `${ip} ${isJunk}`
    const before = this.#limitsLogged.get(key)
    // Each caller is logged every ten minutes, and sooner if it was near its limit and now is over it.
    if (before !== undefined && nowMs - before.atMs < LOGGED_AGAIN_MS && (before.isOver || !isOver)) return
    if (this.#limitsLogged.size > 1000) this.#limitsLogged.clear()
    this.#limitsLogged.set(key, { atMs: nowMs, isOver })
    this.#log.warn(
      { event: isJunk ? 'redemption-junk' : 'redemption-limit', ip, site: sites[0], perMinute, limit },
      text,
    )
  }
}

type NearLimit = ReturnType<typeof nearLimit>

/** Fewer redemptions without a visitor's address may be an accident. */
const UNBOUND_MIN = 20
/** Keys that redeem nothing for this long are forgotten, because they were replaced or revoked. */
const UNBOUND_MS = 86_400_000

/** A backend that used this share of a limit is near it. */
const NEAR_SHARE = 1 / 2
const SITES_NAMED_MAX = 3

/** Judges backends by what all workers counted. Times are `performance.now`, as parameters for the tests. */
export class BackendWatch {
  /** Counts the good tokens of each API key that never named an address. */
  readonly #unbound = new Map<
    string,
    { readonly siteKey: string; readonly count: number; readonly atMs: number }
  >()
  /** API keys that named an address at least once. */
  readonly #naming = new Set<string>()
  /** The reports of the last minute. */
  #reports: { readonly atMs: number; readonly counts: readonly BackendCount[] }[] = []

  add(counts: readonly BackendCount[], nowMs: number): void {
    this.#reports.push({ atMs: nowMs, counts })
    for (const { apiKeyId, siteKey, isJunk, count, named } of counts) {
      if (isJunk || this.#naming.has(apiKeyId)) continue
      if (!this.#unbound.has(apiKeyId) && this.#unbound.size + this.#naming.size > COUNTS_MAX) continue
      const before = this.#unbound.get(apiKeyId)?.count ?? 0
      if (named === 0) this.#unbound.set(apiKeyId, { siteKey, count: before + count, atMs: nowMs })
      else {
        this.#unbound.delete(apiKeyId)
        this.#naming.add(apiKeyId)
      }
    }
  }

  /** Returns the API keys whose redemptions are bound to no visitor's address, each with a warning. */
  unbound(nowMs: number): { readonly siteKey: string; readonly text: string }[] {
    for (const [apiKeyId, { atMs }] of this.#unbound)
      if (nowMs - atMs >= UNBOUND_MS) this.#unbound.delete(apiKeyId)
    return [...this.#unbound]
      .filter(([, { count }]) => count >= UNBOUND_MIN)
      .map(([apiKeyId, { siteKey, count }]) => {
        const text = `Of ${count} redemptions with API key ${apiKeyId} for ${siteKey} none named the visitor's address, so a token that was solved anywhere else is accepted: send expectedIp, or remoteip to /siteverify`
        return { siteKey, text }
      })
  }

  /**
   * Each caller (an address or an API key) has a limit for junk and one for other tokens. Returns the limits that are at least
   * half used. Of callers with the same busiest site, only the most used limit of either sort is returned.
   *
   * @param hosts that share the limits; each is assumed to receive as much as this one
   */
  near(nowMs: number, hosts: number): NearLimit[] {
    this.#reports = this.#reports.filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    const windows = new Map<string, Window>()
    const counts = this.#reports.flatMap(({ counts }) => counts)
    // The latest limits judge the whole minute: they may have been raised meanwhile, and a site that got its own has other windows.
    const backendOf = ({ address, apiKeyId }: BackendCount) => `${address} ${apiKeyId}`
    const latest = new Map(counts.map(counted => [backendOf(counted), counted]))
    for (const counted of counts) {
      const { callerKey, addressText, apiKeyId, limits } = latest.get(backendOf(counted))!
      const { isJunk, siteKey } = counted
      const callers = [
        { key: callerKey, caller: addressText, limit: limits[0] },
        { key: apiKeyId, caller: `API key ${apiKeyId}`, limit: limits[1] },
      ]
      for (const { key, caller, limit } of callers) {
        const used = windows.get(`${key} ${isJunk}`) ?? { caller, limit, isJunk, bySite: new Map() }
        used.bySite.set(siteKey, (used.bySite.get(siteKey) ?? 0) + counted.count * hosts)
        windows.set(`${key} ${isJunk}`, used)
      }
    }
    const near = [...windows.values()]
      .map(nearLimit)
      .filter(({ perMinute, limit }) => perMinute >= limit * NEAR_SHARE)
      .sort((one, other) => other.perMinute / other.limit - one.perMinute / one.limit)
    const mostUsed = new Map<string, NearLimit>()
    for (const limit of near) {
      const key = `${limit.sites[0]} ${limit.isJunk}`
      if (!mostUsed.has(key)) mostUsed.set(key, limit)
    }
    return [...mostUsed.values()]
  }
}

/** What one caller sent within the last minute, junk or not. */
interface Window {
  readonly caller: string
  readonly limit: number
  readonly isJunk: boolean
  /** Tokens a minute. */
  readonly bySite: Map<string, number>
}

/** Names the sites of the window, busiest first, and says in words what to do. */
function nearLimit({ caller, limit, isJunk, bySite }: Window) {
  const bySize = [...bySite].sort(([, one], [, other]) => other - one)
  const sites = bySize.map(([site]) => site)
  const perMinute = bySize.reduce((sum, [, count]) => sum + count, 0)
  const more = sites.length > SITES_NAMED_MAX ? ` and ${sites.length - SITES_NAMED_MAX} more` : ''
  const names = sites.slice(0, SITES_NAMED_MAX).join(', ') + more
  const enough = limitFor(perMinute)
  // A site with its own limit no longer counts in the shared window.
  const isOneBusy = bySize[0]![1] >= perMinute / 2
  const remedy = isOneBusy
    ? `powgate site update ${sites[0]} --limit-redeem ${enough}${configFlag()}`
    : `set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to ${enough}`
  const effect = perMinute > limit ? 'those beyond are refused' : 'those beyond would be refused'
  const text = isJunk
    ? `${caller} sends ${perMinute} tokens a minute for ${names} that are forged, malformed, expired or used already, of ${limit} that may be: somebody posts junk to a form, or a form is sent twice. It takes nothing from tokens that are redeemed for the first time, so raise no limit for it`
    : `${caller} sends ${perMinute} redemptions a minute for ${names}, of ${limit} that it may: ${effect}. To raise its limits: ${remedy}`
  return { caller, sites, perMinute, limit, isJunk, text }
}

/** Five times the rate, rounded up to 1, 2 or 5 and zeros. */
function limitFor(perMinute: number): number {
  for (let decade = 100; ; decade *= 10)
    for (const step of [1, 2, 5]) if (step * decade >= 5 * perMinute) return step * decade
}
