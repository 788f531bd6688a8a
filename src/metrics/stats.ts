/**
 * Counts what one worker does. Counting an answer takes 0.2 us and makes no garbage. Once a second, or as often as the primary process
 * can take them, the counts go there: that takes 0.3 ms, or 8 ms with a thousand sites.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { ProxyWatch } from '../addresses/trusted-proxies.ts'
import { memoryUsage } from '../config/open-files.ts'
import { type Ending, outcomeLabel } from '../domain/ending.ts'
import { OUTCOMES } from '../domain/outcome.ts'
import type { EndpointLabel, ObservedExchange } from '../http/exchange-host.ts'
import { STORE_CAUSES, type StoreCause } from '../words/reasons.ts'
import { newCounts, newSiteCounts, type SiteCounts, valuesOf } from './counters.ts'
import { SITES_MAX, type Values } from './table.ts'

/** A worker's gauges, and its counts since its start: a lost message loses nothing. */
export interface Snapshot {
  readonly values: Values
  /** Counts of existing sites, by site key; those of sites beyond SITES_MAX are added up under ''. */
  readonly sites: Readonly<Record<string, Values>>
}

interface StatsSources {
  /** Gauges, and counters that are counted elsewhere. */
  readGauges(): Values
  /** @returns undefined while the whole store answers */
  storeTrouble(): { readonly cause: StoreCause } | undefined
  /** @returns the existing site that a refused request named, by a site key or an API key */
  siteNamedBy(siteKey: string, apiKeyId: string | undefined): string | undefined
  readonly metricsSites: readonly string[]
}

export class Stats {
  /** All counts but those in `#sites` and `#otherSites`, which `snapshot` adds. */
  readonly counts = newCounts()
  readonly #sources: StatsSources
  readonly #metricsSites: ReadonlySet<string>
  /** The first SITES_MAX sites that are met. `#otherSites` are all others. */
  readonly #sites = new Map<string, SiteCounts>()
  readonly #otherSites = newSiteCounts()
  readonly #proxyWatch = new ProxyWatch()
  /** undefined while the store answers, and until its first answer, before which no loss is reported. */
  #storeDownSinceMs: number | undefined
  readonly #readLag = measureLag()

  constructor(sources: StatsSources) {
    this.#sources = sources
    this.#metricsSites = new Set(sources.metricsSites)
  }

  answered(exchange: ObservedExchange, endpoint: EndpointLabel, status: number, ending?: Ending): void {
    this.counts.requestSeconds.at(endpoint).add((performance.now() - exchange.receivedAtMs) / 1000)
    if (endpoint === 'challenge') this.#proxyWatch.add(exchange.address)
    const siteKey = this.#siteKeyOf(exchange, ending)
    const counts = siteKey === undefined ? this.counts : this.#countsOf(siteKey)
    const outcome = outcomeLabel(ending)
    counts.requests.at(endpoint).at(status).at(outcome).add()
    if (siteKey !== undefined && this.#metricsSites.has(siteKey))
      this.counts.siteRequests.at(siteKey).at(endpoint).at(outcome).add()
    switch (ending?.kind) {
      case 'issued':
        counts.difficulty.at(ending.puzzle).add(ending.difficulty)
        if ((ending.bounds.raise ?? 0) > 0) this.counts.raisedChallenges.add()
        break
      case 'judged':
        if (ending.score !== null) counts.scores.add(ending.score)
        for (const reason of ending.reasons) counts.reasons.at(reason).add()
        this.#countSolvingTime(ending)
        break
      case 'refused': {
        const { policy, isJunk = false } = ending.refusal
        const limit = isJunk ? 'junk' : policy
        if (limit !== undefined) this.counts.limited.at(endpoint).at(limit).add()
      }
    }
  }

  /** A site's solving time is promised only for challenges at its base. */
  #countSolvingTime({ site, signals }: Extract<Ending, { kind: 'judged' }>): void {
    const { base, solveMs } = site.record.difficulty
    if (solveMs === undefined || signals?.solveTimeMs === undefined || signals.difficulty !== base) return
    this.counts.solvingTimes.at(signals.solveTimeMs <= solveMs ? 'yes' : 'no').add()
  }

  aborted(endpoint: EndpointLabel): void {
    this.counts.aborted.at(endpoint).add()
  }

  shed(endpoint: EndpointLabel): void {
    this.counts.requests.at(endpoint).at(OUTCOMES.overloaded.status).at('overloaded').add()
  }

  faulted(endpoint: EndpointLabel): void {
    this.counts.faults.at(endpoint).add()
  }

  /** Counts a call to the store that was answered or given up. */
  readonly storeCalled = (operations: number, seconds: number): void => {
    this.counts.storeBatch.add(operations)
    this.counts.storeSeconds.add(seconds)
  }

  /**
   * Notes that the store went away or came back, and counts the start of an outage.
   *
   * @returns the outage's seconds once it is over
   */
  storeChanged(up: boolean): number | undefined {
    const sinceMs = this.#storeDownSinceMs
    this.#storeDownSinceMs = up ? undefined : performance.now()
    if (!up) this.counts.storeOutages.add()
    return sinceMs === undefined ? undefined : Math.round(performance.now() - sinceMs) / 1000
  }

  snapshot(): Snapshot {
    const trouble = this.#sources.storeTrouble()
    const { rss, heapUsed } = memoryUsage()
    const { mean, p99, max } = this.#readLag()
    const values: Values = {
      ...valuesOf(this.counts),
      ...this.#sources.readGauges(),
      proxyUntrusted: Number(this.#proxyWatch.isProxyUntrusted),
      storeUp: trouble === undefined ? 1 : 0,
      'lag mean': mean,
      'lag p99': p99,
      'lag max': max,
      cpu: cpuMicroseconds(),
      residentBytes: rss,
      heapBytes: heapUsed,
    }
    for (const cause in STORE_CAUSES) values[`storeDown ${cause}`] = trouble?.cause === cause ? 1 : 0
    const sites = Object.fromEntries([...this.#sites].map(([siteKey, counts]) => [siteKey, valuesOf(counts)]))
    if (this.#sites.size >= SITES_MAX) sites[''] = valuesOf(this.#otherSites)
    for (const counted of Object.values(sites))
      for (const name in counted) values[name] = (values[name] ?? 0) + counted[name]!
    return { values, sites }
  }

  #siteKeyOf(exchange: ObservedExchange, ending: Ending | undefined): string | undefined {
    switch (ending?.kind) {
      case 'issued':
      case 'judged':
        return ending.site.record.siteKey
      case 'redeemed':
        return ending.apiKey.siteKey
      case 'refused': {
        const siteKey = ending.subject?.siteKey ?? exchange.siteKey
        // A site of POWGATE_METRICS_SITES is counted even if the store does not have it.
        return this.#metricsSites.has(siteKey)
          ? siteKey
          : this.#sources.siteNamedBy(siteKey, ending.subject?.apiKeyId)
      }
      default:
        return undefined
    }
  }

  #countsOf(siteKey: string): SiteCounts {
    const found = this.#sites.get(siteKey)
    if (found !== undefined) return found
    if (this.#sites.size >= SITES_MAX) return this.#otherSites
    const counts = newSiteCounts()
    this.#sites.set(siteKey, counts)
    return counts
  }
}

export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

const SAMPLE_MS = 20
const LAG_WINDOW_MS = 10_000
const NS_PER_SECOND = 1e9

/** Measures how late the event loop runs timers. Returns a function that reads the last 10 to 20 seconds. */
export function measureLag() {
  let [older, newer] = [startMonitor(), startMonitor()]
  // The windows overlap, so each stall shows for at least 10 s.
  setInterval(() => {
    older.disable()
    older = newer
    newer = startMonitor()
  }, LAG_WINDOW_MS).unref()
  return () => ({
    mean: lagSeconds(older.mean),
    p99: lagSeconds(older.percentile(99)),
    max: lagSeconds(older.max),
  })
}

function startMonitor(): IntervalHistogram {
  const monitor = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  monitor.enable()
  return monitor
}

/** Subtracts the sampling interval, because the monitor measures the time between samples. NaN (no samples yet) becomes 0. */
function lagSeconds(nanoseconds: number): number {
  const seconds = nanoseconds / NS_PER_SECOND - SAMPLE_MS / 1000
  return seconds > 0 ? Math.round(seconds * 1e6) / 1e6 : 0
}
