/**
 * What one worker counts. On the request path this is a few additions, without text or garbage: 0.1 us an answer, half of it
 * for reading the clock, and up to 0.05 us more for its site. Once a second the counts become a flat record, which is sent to
 * the primary process: 0.3 ms, or 8 ms after requests of a thousand sites.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { EndpointName } from '../domain/endpoint.ts'
import type { Policy } from '../domain/limits.ts'
import { OUTCOMES, type Reason } from '../domain/outcome.ts'
import { STORE_CAUSES, type StoreCause } from '../domain/reason-words.ts'
import type { ApiKeyRecord } from '../domain/site.ts'
import type { Events, IssuedChallenge, Judgement } from '../endpoints/service.ts'
import type { Exchange } from '../http/exchange.ts'
import { type ExchangeObserver, PARTS, type Part } from '../http/exchange-host.ts'
import type { ReplyOutcome } from '../http/replies.ts'
import { newCounts, newSiteCounts, type Series, type SiteCounts, valuesOf } from './counters.ts'
import { metricOf, SITES_MAX, type Values } from './table.ts'

/** Everything that a worker has counted since its start, so that a lost message loses no count; and its gauges. */
export interface Snapshot {
  readonly values: Values
  /** By site key, at most SITES_MAX; further sites are counted under ''. Only sites that exist. */
  readonly sites: Readonly<Record<string, Values>>
}

/** Values that other modules provide. */
interface StatsSources {
  /** undefined if the store answers */
  storeTrouble(): { readonly cause: StoreCause } | undefined
  underWay(): number
  clockAheadSeconds(): number
  evictedKeys(): number
  connections(): { readonly open: number; readonly max: number; readonly refused: number }
  logLinesLost(): number
  /** Key of the site that a refused request named; undefined if there is no such site. */
  siteNamedBy(exchange: Exchange): string | undefined
}

export class Stats implements Events, ExchangeObserver {
  readonly counts = newCounts()
  readonly #sources: StatsSources
  /** What every answer adds to, looked up once. */
  readonly #parts: Readonly<Record<Part, { readonly seconds: Series; readonly answers: Series }>>
  readonly #sites = new Map<string, SiteCounts>()
  /** Of the sites beyond SITES_MAX. */
  readonly #otherSites = newSiteCounts()
  #storePartsDown = 0
  #storeDownSinceMs = 0
  readonly #lag = new EventLoopLag()

  constructor(sources: StatsSources) {
    this.#sources = sources
    const { requestSeconds, requests } = this.counts
    const parts = PARTS.map(part => [part, { seconds: requestSeconds.at(part), answers: requests.at(part) }])
    this.#parts = Object.fromEntries(parts)
  }

  answered(part: Part, status: number, outcome: ReplyOutcome, startedAtMs: number): void {
    const { seconds, answers } = this.#parts[part]
    seconds.add((performance.now() - startedAtMs) / 1000)
    answers.at(status).at(outcome).add()
  }

  aborted(part: Part): void {
    this.counts.aborted.at(part).add()
  }

  shed(part: Part): void {
    this.counts.requests.at(part).at(OUTCOMES.overloaded.status).at('overloaded').add()
  }

  faulted(part: Part, _error: unknown): void {
    this.counts.faults.at(part).add()
  }

  issued(_exchange: Exchange, { site, difficulty, bounds }: IssuedChallenge): void {
    const ofSite = this.#site(site.record.siteKey)
    ofSite.challenges.add()
    ofSite.difficulty.add(difficulty)
    if ((bounds.raise ?? 0) > 0) this.counts.raisedChallenges.add()
  }

  judged(_exchange: Exchange, { site, passed, score, reasons }: Judgement): void {
    const ofSite = this.#site(site.record.siteKey)
    const verdict = passed ? ofSite.passed : ofSite.failed
    verdict.add()
    if (score !== null) ofSite.scores.add(score)
    for (const reason of reasons) ofSite.reasons.at(reason).add()
  }

  redeemed(_exchange: Exchange, { siteKey }: ApiKeyRecord): void {
    this.#site(siteKey).redeemed.add()
  }

  refused(exchange: Exchange, endpoint: EndpointName, reason: Reason, policy?: Policy): void {
    if (policy !== undefined) this.counts.limited.at(endpoint).at(policy).add()
    const siteKey = this.#sources.siteNamedBy(exchange)
    if (siteKey !== undefined) this.#site(siteKey).refused.at(reason).add()
  }

  /** Counts a call with the operations of one turn, when the store has answered or the call was given up. */
  readonly storeCalled = (operations: number, seconds: number): void => {
    this.counts.storeBatch.add(operations)
    this.counts.storeSeconds.add(seconds)
  }

  /**
   * The store, or a part of it, became unavailable or available again. One outage lasts from the first part that goes until
   * the last part is back.
   *
   * @returns its length in seconds, if the outage is over
   */
  storeChanged(up: boolean): number | undefined {
    const nowMs = performance.now()
    const wereDown = this.#storePartsDown
    this.#storePartsDown = Math.max(0, wereDown + (up ? -1 : 1))
    if (wereDown === 0 && !up) {
      this.counts.storeOutages.add()
      this.#storeDownSinceMs = nowMs
    }
    return wereDown === 1 && up ? Math.round(nowMs - this.#storeDownSinceMs) / 1000 : undefined
  }

  snapshot(): Snapshot {
    const { open, max, refused } = this.#sources.connections()
    const trouble = this.#sources.storeTrouble()
    const { rss, heapUsed } = process.memoryUsage()
    const { mean, p99, max: maxLag } = this.#lag.get()
    const values: Values = {
      ...valuesOf(this.counts),
      underWay: this.#sources.underWay(),
      connections: open,
      connectionsMax: max,
      connectionsRefused: refused,
      clockOffset: this.#sources.clockAheadSeconds(),
      evictedKeys: this.#sources.evictedKeys(),
      storeUp: trouble === undefined ? 1 : 0,
      'lag mean': mean,
      'lag p99': p99,
      'lag max': maxLag,
      cpu: cpuMicroseconds(),
      logLinesLost: this.#sources.logLinesLost(),
      residentBytes: rss,
      heapBytes: heapUsed,
    }
    for (const cause in STORE_CAUSES) values[`storeDown ${cause}`] = trouble?.cause === cause ? 1 : 0
    const sites = Object.fromEntries([...this.#sites].map(([siteKey, counts]) => [siteKey, valuesOf(counts)]))
    if (this.#sites.size === SITES_MAX) sites[''] = valuesOf(this.#otherSites)
    // Every challenge and every judgement is one of a site, so these metrics of the service are sums over all sites.
    for (const ofSite of Object.values(sites))
      for (const name in ofSite)
        if (metricOf(name) !== undefined) values[name] = (values[name] ?? 0) + ofSite[name]!
    return { values, sites }
  }

  /** @param siteKey of a site that exists */
  #site(siteKey: string): SiteCounts {
    const known = this.#sites.get(siteKey)
    if (known !== undefined) return known
    if (this.#sites.size >= SITES_MAX) return this.#otherSites
    const counts = newSiteCounts()
    this.#sites.set(siteKey, counts)
    return counts
  }
}

/** Processor time of this process since its start. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

const SAMPLE_MS = 20
const LAG_WINDOW_MS = 10_000
const NS_PER_SECOND = 1e9

/** How late the event loop runs its timers, over the last 10 to 20 seconds. */
export class EventLoopLag {
  #older = startMonitor()
  #newer = startMonitor()

  constructor() {
    // Two overlapping windows: every stall is visible for at least 10 s, also when a window starts during it.
    setInterval(() => {
      this.#older.disable()
      this.#older = this.#newer
      this.#newer = startMonitor()
    }, LAG_WINDOW_MS).unref()
  }

  /** Seconds. */
  get() {
    const monitor = this.#older
    return { mean: lag(monitor.mean), p99: lag(monitor.percentile(99)), max: lag(monitor.max) }
  }
}

function startMonitor(): IntervalHistogram {
  const monitor = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  monitor.enable()
  return monitor
}

/** The histogram holds the time from one sample to the next. NaN (no samples yet) becomes 0. */
function lag(nanoseconds: number): number {
  const seconds = nanoseconds / NS_PER_SECOND - SAMPLE_MS / 1000
  return seconds > 0 ? Math.round(seconds * 1e6) / 1e6 : 0
}

export function both(first: Events, second: Events): Events {
  return {
    issued(exchange, challenge) {
      first.issued(exchange, challenge)
      second.issued(exchange, challenge)
    },
    judged(exchange, judgement) {
      first.judged(exchange, judgement)
      second.judged(exchange, judgement)
    },
    redeemed(exchange, apiKey, claims) {
      first.redeemed(exchange, apiKey, claims)
      second.redeemed(exchange, apiKey, claims)
    },
    refused(exchange, endpoint, reason, policy) {
      first.refused(exchange, endpoint, reason, policy)
      second.refused(exchange, endpoint, reason, policy)
    },
  }
}
