/**
 * Warns of a backend that nears the redemption limits, judged by the last minute of all workers, and of a backend that never
 * names its visitors' addresses.
 */

import { WINDOW_MS } from '../domain/limits.ts'
import { type BackendCount, COUNTS_MAX } from '../endpoints/backend-counts.ts'

export interface NearLimit {
  readonly caller: string
  /** Busiest first. */
  readonly sites: readonly string[]
  readonly perMinute: number
  readonly limit: number
  readonly isJunk: boolean
  readonly text: string
}

/** Fewer redemptions without a visitor's address may be an accident. */
const UNBOUND_MIN = 20
/** Keys that redeem nothing for this long are forgotten, because they were replaced or revoked. */
const UNBOUND_MS = 86_400_000

const TOLD_SHARE = 1 / 2
const SITES_TOLD_MAX = 3

export class BackendWatch {
  readonly #flags: string
  /** Counts the good tokens of each API key that never named an address. */
  readonly #unbound = new Map<
    string,
    { readonly siteKey: string; readonly count: number; readonly atMs: number }
  >()
  readonly #naming = new Set<string>()
  #last: { readonly atMs: number; readonly counts: readonly BackendCount[] }[] = []

  /** @param flags to end a command with */
  constructor(flags = '') {
    this.#flags = flags
  }

  add(counts: readonly BackendCount[], nowMs: number): void {
    this.#last = this.#last.filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    this.#last.push({ atMs: nowMs, counts })
    for (const { apiKeyId, siteKey, isJunk, count, named } of counts) {
      if (isJunk || this.#naming.has(apiKeyId)) continue
      if (this.#unbound.size + this.#naming.size > COUNTS_MAX) break
      const before = this.#unbound.get(apiKeyId)?.count ?? 0
      if (named === 0) this.#unbound.set(apiKeyId, { siteKey, count: before + count, atMs: nowMs })
      else {
        this.#unbound.delete(apiKeyId)
        this.#naming.add(apiKeyId)
      }
    }
  }

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
   * Each backend has limits for junk and for the rest. Returns, for both, the limit that is nearest, if half used.
   *
   * @param hosts that share the limits, each taken to send as much as this one
   */
  near(nowMs: number, hosts: number): NearLimit[] {
    this.add([], nowMs)
    const windows = new Map<string, Use>()
    const counts = this.#last.flatMap(({ counts }) => counts)
    // A limit that was raised meanwhile also judges what came before.
    const present = new Map(counts.map(counted => [counted.address + counted.apiKeyId, counted]))
    for (const counted of counts) {
      const { callerKey, address, apiKeyId, limits } = present.get(counted.address + counted.apiKeyId)!
      const { isJunk } = counted
      use(windows, `${callerKey} ${isJunk}`, { caller: address, limit: limits[0], isJunk }, counted, hosts)
      const caller = `API key ${apiKeyId}`
      use(windows, `${apiKeyId} ${isJunk}`, { caller, limit: limits[1], isJunk }, counted, hosts)
    }
    const told = new Set<string>()
    return [...windows.values()]
      .filter(({ perMinute, limit }) => perMinute >= limit * TOLD_SHARE)
      .sort((one, other) => other.perMinute / other.limit - one.perMinute / one.limit)
      .map(use => nearLimit(use, this.#flags))
      .filter(
        ({ sites: [site = ''], isJunk }) => !told.has(`${site} ${isJunk}`) && told.add(`${site} ${isJunk}`),
      )
  }
}

interface Use {
  readonly caller: string
  readonly limit: number
  readonly isJunk: boolean
  perMinute: number
  readonly bySite: Map<string, number>
}

function use(
  windows: Map<string, Use>,
  key: string,
  about: Pick<Use, 'caller' | 'limit' | 'isJunk'>,
  { siteKey, count }: BackendCount,
  hosts: number,
): void {
  const found = windows.get(key) ?? { ...about, perMinute: 0, bySite: new Map() }
  found.perMinute += count * hosts
  found.bySite.set(siteKey, (found.bySite.get(siteKey) ?? 0) + count * hosts)
  windows.set(key, found)
}

function nearLimit({ caller, limit, isJunk, perMinute, bySite }: Use, flags: string): NearLimit {
  const bySize = [...bySite].sort(([, one], [, other]) => other - one)
  const sites = bySize.map(([site]) => site)
  const more = sites.length > SITES_TOLD_MAX ? ` and ${sites.length - SITES_TOLD_MAX} more` : ''
  const names = sites.slice(0, SITES_TOLD_MAX).join(', ') + more
  if (isJunk) {
    const text = `${caller} sends ${perMinute} tokens a minute for ${names} that are forged, malformed, expired or used already, of ${limit} that may be: somebody posts junk to a form, or a form is sent twice. It takes nothing from tokens that are redeemed for the first time, so raise no limit for it`
    return { caller, sites, perMinute, limit, isJunk, text }
  }
  const enough = limitFor(perMinute)
  // A site with its own limit no longer counts in the shared window.
  const isOneBusy = bySize[0]![1] >= perMinute / 2
  const remedy = isOneBusy
    ? `powgate site update ${sites[0]} --limit-redeem ${enough}${flags}`
    : `set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to ${enough}`
  const effect = perMinute > limit ? 'those beyond are refused' : 'those beyond would be refused'
  const text = `${caller} sends ${perMinute} redemptions a minute for ${names}, of ${limit} that it may: ${effect}. To raise its limits: ${remedy}`
  return { caller, sites, perMinute, limit, isJunk, text }
}

/** Five times the rate, rounded up to 1, 2 or 5 and zeros. */
function limitFor(perMinute: number): number {
  for (let decade = 100; ; decade *= 10)
    for (const step of [1, 2, 5]) if (step * decade >= 5 * perMinute) return step * decade
}
