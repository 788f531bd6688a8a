/**
 * Warns before a backend hits the redemption limits. Workers count what callers with a valid API key send; the primary process
 * adds up the last minute.
 */

import { type Address, formatAddress, formatNetwork } from './address.ts'
import { WINDOW_MS } from './limits.ts'

/** Refused requests included. */
export interface BackendCount {
  /** The limit counts by it; people read `address`. */
  readonly callerKey: string
  readonly address: string
  readonly siteKey: string
  readonly apiKeyId: string
  /** Per minute. */
  readonly limits: readonly [address: number, apiKey: number]
  count: number
}

/** One entry per caller and API key. */
const COUNTS_MAX = 1000

export class BackendCounts {
  #counts = new Map<string, BackendCount>()
  readonly #addressText: (address: Address) => string

  constructor(isAddressWhole: boolean) {
    this.#addressText = isAddressWhole ? formatAddress : formatNetwork
  }

  note(address: Address, counted: Omit<BackendCount, 'count' | 'address'>): void {
    const key = counted.callerKey + counted.apiKeyId
    const found = this.#counts.get(key)
    if (found !== undefined) found.count++
    else if (this.#counts.size < COUNTS_MAX)
      this.#counts.set(key, { ...counted, address: this.#addressText(address), count: 1 })
  }

  /** Since the last call. */
  take(): BackendCount[] {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    return counts
  }
}

export interface NearLimit {
  readonly caller: string
  /** Busiest first. */
  readonly sites: readonly string[]
  readonly perMinute: number
  readonly limit: number
  readonly text: string
}

const TOLD_SHARE = 1 / 2
const SITES_TOLD_MAX = 3

export class BackendWatch {
  readonly #flags: string
  #last: { readonly atMs: number; readonly counts: readonly BackendCount[] }[] = []

  /** @param flags to end a command with */
  constructor(flags = '') {
    this.#flags = flags
  }

  add(counts: readonly BackendCount[], nowMs: number): void {
    this.#last = this.#last.filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    this.#last.push({ atMs: nowMs, counts })
  }

  /**
   * For each backend the limit it is nearest to, if half used.
   *
   * @param hosts that share the limits, each taken to send as much as this one
   */
  near(nowMs: number, hosts: number): NearLimit[] {
    this.add([], nowMs)
    const windows = new Map<string, Use>()
    for (const counted of this.#last.flatMap(({ counts }) => counts)) {
      const { callerKey, address, apiKeyId, limits } = counted
      use(windows, `${callerKey} ${limits[0]}`, { caller: address, limit: limits[0] }, counted, hosts)
      use(windows, apiKeyId, { caller: `API key ${apiKeyId}`, limit: limits[1] }, counted, hosts)
    }
    const told = new Set<string>()
    return [...windows.values()]
      .filter(({ perMinute, limit }) => perMinute >= limit * TOLD_SHARE)
      .sort((one, other) => other.perMinute / other.limit - one.perMinute / one.limit)
      .map(use => nearLimit(use, this.#flags))
      .filter(({ sites: [site = ''] }) => !told.has(site) && told.add(site))
  }
}

interface Use {
  readonly caller: string
  readonly limit: number
  perMinute: number
  readonly bySite: Map<string, number>
}

function use(
  windows: Map<string, Use>,
  key: string,
  { caller, limit }: Pick<Use, 'caller' | 'limit'>,
  { siteKey, count }: BackendCount,
  hosts: number,
): void {
  const found = windows.get(key) ?? { caller, limit, perMinute: 0, bySite: new Map() }
  found.perMinute += count * hosts
  found.bySite.set(siteKey, (found.bySite.get(siteKey) ?? 0) + count * hosts)
  windows.set(key, found)
}

function nearLimit({ caller, limit, perMinute, bySite }: Use, flags: string): NearLimit {
  const bySize = [...bySite].sort(([, one], [, other]) => other - one)
  const sites = bySize.map(([site]) => site)
  const more = sites.length > SITES_TOLD_MAX ? ` and ${sites.length - SITES_TOLD_MAX} more` : ''
  const names = sites.slice(0, SITES_TOLD_MAX).join(', ') + more
  const enough = roomFor(perMinute)
  // An own limit takes the site's requests out of the shared window.
  const isOneBusy = bySize[0]![1] >= perMinute / 2
  const remedy = isOneBusy
    ? `powgate site update ${sites[0]} --limit-redeem ${enough}${flags}`
    : `set POWGATE_LIMIT_REDEEM_ADDRESS and POWGATE_LIMIT_REDEEM_API_KEY to ${enough}`
  const effect = perMinute > limit ? 'those beyond are refused' : 'those beyond would be refused'
  const text = `${caller} sends ${perMinute} redemptions a minute for ${names}, of ${limit} that it may: ${effect}. To raise its limits: ${remedy}`
  return { caller, sites, perMinute, limit, text }
}

/** Five times the rate, rounded up to 1, 2 or 5 and zeros. */
function roomFor(perMinute: number): number {
  for (let decade = 100; ; decade *= 10)
    for (const step of [1, 2, 5]) if (step * decade >= 5 * perMinute) return step * decade
}
