/** Judges backends by what all workers counted: which used half of a limit, name no visitor's address, or send a field that powgate does not check. */

import { configFlag } from '../config/config.ts'
import { isNotDemo } from '../demo/site.ts'
import { LIMIT_MAX, WINDOW_MS } from '../domain/limits.ts'
import type { BackendCount } from '../endpoints/backend-counts.ts'
import type { Logger } from '../log/logger.ts'
import { PROGRAM } from '../version.ts'

/** Fewer redemptions without a visitor's address may be an accident. */
const UNBOUND_MIN = 20
/** Keys that redeem nothing for this long are forgotten, because they were replaced or revoked. */
const KEY_UNUSED_MS = 86_400_000
/** Bounds the memory: of further API keys nobody learns whether they name addresses. */
export const API_KEYS_MAX = 1000
/** The use of a limit is told once it reaches this share. */
const TOLD_SHARE = 1 / 2
const SITES_NAMED_MAX = 3
const LOGGED_AGAIN_MS = 600_000
/** Bounds the memory: with more callers than this, some are logged again sooner. */
const CALLERS_LOGGED_MAX = 1000
/** Bounds the log and the memory until a restart, for each event: a backend may pass on whatever fields visitors send. */
const BODIES_LOGGED_MAX = 100
const FIELD_IGNORED = 'a backend sends a field that powgate does not know, so it checks nothing'
const BAD_BODY =
  'a backend has a valid API key, but each of its calls of this form is refused; the answer names what is wrong'

/** Times are `performance.now`, as parameters for the tests. */
export class Backends {
  limitsHalfUsed: readonly LimitUse[] = []
  /** The largest share of a limit that was used in the last minute, junk aside. Above 1, redemptions are refused, if all hosts get as many. */
  redeemLimitUsed = 0
  /** Backends whose redemptions are bound to no address, so that a token solved by anybody is accepted. */
  unbound: readonly { readonly siteKey: string; readonly text: string }[] = []
  readonly #log: Logger
  /** Counts the good tokens of each API key, and of these the ones that came with the visitor's address. */
  readonly #apiKeys = new Map<
    string,
    { readonly siteKey: string; readonly count: number; readonly named: number; readonly atMs: number }
  >()
  /** The reports of the last minute. */
  #reports: { readonly atMs: number; readonly counts: readonly BackendCount[] }[] = []
  /** API keys of `unbound`. */
  #unboundLogged: ReadonlySet<string> = new Set()
  readonly #bodiesLogged = { 'field-ignored': new Set<string>(), 'redemption-malformed': new Set<string>() }
  readonly #limitsLogged = new Map<string, { readonly atMs: number; readonly isOver: boolean }>()

  constructor(log: Logger) {
    this.#log = log
  }

  add(counts: readonly BackendCount[], nowMs = performance.now()): void {
    const own = counts.filter(isNotDemo) // strangers use up the demo's limit
    this.#reports.push({ atMs: nowMs, counts: own.filter(({ badBody }) => badBody === undefined) })
    // Fields, bodies and addresses are judged of the demo, too.
    for (const { apiKeyId, siteKey, isJunk, count, named, ignored, badBody } of counts) {
      if (ignored !== undefined) this.#logOnce('field-ignored', siteKey, { field: ignored }, FIELD_IGNORED)
      if (badBody !== undefined) this.#logOnce('redemption-malformed', siteKey, { reason: badBody }, BAD_BODY)
      const before = this.#apiKeys.get(apiKeyId) ?? { count: 0, named: 0 }
      const isFull = this.#apiKeys.size >= API_KEYS_MAX && !this.#apiKeys.has(apiKeyId)
      if (isJunk || isFull) continue
      const sums = { count: before.count + count, named: before.named + named }
      this.#apiKeys.set(apiKeyId, { siteKey, ...sums, atMs: nowMs })
    }
  }

  /**
   * Called every five seconds: sets `limitsHalfUsed`, `redeemLimitUsed` and `unbound`, and logs what is new in them.
   *
   * @param hosts the number that share the limits; each is assumed to receive as much as this one
   */
  update(hosts: number, nowMs = performance.now()): void {
    this.limitsHalfUsed = this.#limitUses(nowMs, hosts)
    for (const use of this.limitsHalfUsed) this.#logLimit(use, nowMs)
    for (const [apiKeyId, { atMs }] of this.#apiKeys)
      if (nowMs - atMs >= KEY_UNUSED_MS) this.#apiKeys.delete(apiKeyId)
    const unbound = [...this.#apiKeys].filter(([, { count, named }]) => named === 0 && count >= UNBOUND_MIN)
    this.unbound = unbound.map(([apiKeyId, { siteKey, count }]) => {
      const text = `Of ${count} redemptions with API key ${apiKeyId} for ${siteKey} none named the visitor's address, so a token that was solved anywhere else is accepted: send expectedIp, or remoteip to /siteverify`
      if (!this.#unboundLogged.has(apiKeyId))
        this.#log.warn({ event: 'redemption-unbound', site: siteKey }, text)
      return { siteKey, text }
    })
    this.#unboundLogged = new Set(unbound.map(([apiKeyId]) => apiKeyId))
  }

  /**
   * Each caller (here a backend's address or an API key) has a limit for junk and one for other tokens. Returns those that are at
   * least half used, the most used first. Of callers with the same busiest site, only the first of each sort of token is told,
   * because one command raises the limits of all.
   */
  #limitUses(nowMs: number, hosts: number): LimitUse[] {
    this.#reports = this.#reports.filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    const windows = new Map<string, Window>()
    const counts = this.#reports.flatMap(({ counts }) => counts)
    // The latest count of an address and API key tells the limits, and the windows, of the whole minute: limits may have been raised,
    // and a site that got a limit of its own counts in windows of its own.
    const pairOf = ({ caller, apiKeyId }: BackendCount) => `${caller} ${apiKeyId}`
    const latest = new Map(counts.map(counted => [pairOf(counted), counted]))
    for (const counted of counts) {
      const { callerKey, callerText, apiKeyId, limits } = latest.get(pairOf(counted))!
      const [callerLimit, keyLimit] = limits
      const { isJunk, siteKey } = counted
      const callers = [
        { key: callerKey, caller: callerText, limit: callerLimit },
        { key: apiKeyId, caller: `API key ${apiKeyId}`, limit: keyLimit },
      ]
      for (const { key, caller, limit } of callers) {
        const name = `${key} ${isJunk}`
        const window = windows.get(name) ?? { key: name, caller, limit, isJunk, bySite: new Map() }
        window.bySite.set(siteKey, (window.bySite.get(siteKey) ?? 0) + counted.count * hosts)
        windows.set(name, window)
      }
    }
    const mostUsedFirst = [...windows.values()]
      .map(window => useOf(window, hosts))
      .sort((one, other) => other.share - one.share)
    this.redeemLimitUsed = mostUsedFirst.find(({ isJunk }) => !isJunk)?.share ?? 0
    const told = new Map<string, LimitUse>()
    for (const use of mostUsedFirst) {
      if (use.share < TOLD_SHARE) break
      const key = `${use.sites[0]} ${use.isJunk}`
      if (!told.has(key)) told.set(key, use)
    }
    return [...told.values()]
  }

  #logOnce(
    event: 'field-ignored' | 'redemption-malformed',
    site: string,
    fields: Readonly<Record<string, string>>,
    text: string,
  ): void {
    const logged = this.#bodiesLogged[event]
    const key = JSON.stringify([site, fields])
    if (logged.size === BODIES_LOGGED_MAX || logged.has(key)) return
    logged.add(key)
    this.#log[event === 'field-ignored' ? 'info' : 'warn']({ event, site, ...fields }, text)
  }

  /** Logs each caller every ten minutes, and sooner if it was below its limit and now is over it. */
  #logLimit({ key, text, caller, sites, perMinute, limit, isJunk }: LimitUse, nowMs: number): void {
    const isOver = perMinute > limit
    const before = this.#limitsLogged.get(key)
    if (before !== undefined && nowMs - before.atMs < LOGGED_AGAIN_MS && (before.isOver || !isOver)) return
    if (this.#limitsLogged.size > CALLERS_LOGGED_MAX) this.#limitsLogged.clear()
    this.#limitsLogged.set(key, { atMs: nowMs, isOver })
    const event = isJunk ? 'redemption-junk' : 'redemption-limit'
    this.#log.warn({ event, caller, site: sites[0], perMinute, limit }, text)
  }
}

type LimitUse = ReturnType<typeof useOf>

/** What one caller sent within the last minute, junk or not. */
interface Window {
  readonly key: string
  readonly caller: string
  readonly limit: number
  readonly isJunk: boolean
  /** Tokens a minute, if all hosts get as many as this one. */
  readonly bySite: Map<string, number>
}

/** Names the sites of the window, busiest first, and says in words what to do. */
function useOf({ key, caller, limit, isJunk, bySite }: Window, hosts: number) {
  const bySize = [...bySite].sort(([, one], [, other]) => other - one)
  const sites = bySize.map(([site]) => site)
  const perMinute = bySize.reduce((sum, [, count]) => sum + count, 0)
  const more = sites.length > SITES_NAMED_MAX ? ` and ${sites.length - SITES_NAMED_MAX} more` : ''
  const names = sites.slice(0, SITES_NAMED_MAX).join(', ') + more
  const enough = limitFor(perMinute)
  // A limit of its own takes a site out of the window that it shares. Without half of the traffic, that window has room again.
  const isOneBusy = bySize[0]![1] >= perMinute / 2
  const remedy = isOneBusy
    ? `${PROGRAM} site update ${sites[0]} --limit-redeem ${enough}${configFlag()}`
    : `set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to ${enough}`
  const effect = perMinute > limit ? 'those beyond are refused' : 'those beyond would be refused'
  const estimate = hosts > 1 ? `, if each of ${hosts} hosts gets as many as this one` : ''
  const text = isJunk
    ? `${caller} sends ${perMinute} tokens a minute for ${names} that are forged, malformed, expired or used already${estimate}, of ${limit} that may be: somebody posts junk to a form, or a form is sent twice. It takes nothing from tokens that are redeemed for the first time, so raise no limit for it`
    : `${caller} sends ${perMinute} redemptions a minute for ${names}${estimate}, of ${limit} that it may: ${effect}. To raise its limits: ${remedy}`
  return { key, caller, sites, perMinute, limit, share: perMinute / limit, isJunk, text }
}

/** Leaves room for five times the rate, up to LIMIT_MAX. Returns 100 at least, and a number that is 1, 2 or 5 and zeros. */
function limitFor(perMinute: number): number {
  for (let decade = 100; decade < LIMIT_MAX; decade *= 10)
    for (const step of [1, 2, 5]) if (step * decade >= 5 * perMinute) return step * decade
  return LIMIT_MAX
}
