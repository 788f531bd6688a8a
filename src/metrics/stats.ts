/**
 * What one worker counts. On the request path this is a few additions, without text or garbage: 0.1 us a request, half of it
 * for reading the clock. Once a second the counts become a snapshot with names, which is sent to the primary process.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { EndpointName } from '../domain/endpoint.ts'
import type { Policy } from '../domain/limits.ts'
import { OUTCOMES, type Reason } from '../domain/outcome.ts'
import type { ApiKeyRecord } from '../domain/site.ts'
import type { Events, IssuedChallenge, Judgement } from '../endpoints/service.ts'
import type { Exchange } from '../http/exchange.ts'
import { type ExchangeObserver, PARTS, type Part } from '../http/exchange-host.ts'
import type { ReplyOutcome } from '../http/replies.ts'
import { BATCH_BOUNDS, Buckets, LATENCY_BOUNDS_SECONDS, SiteCounters, Tally } from './counters.ts'
import {
  type Gauges,
  type Histogram,
  SCORE_BUCKETS,
  SITES_MAX,
  type SiteStats,
  type StatsSnapshot,
} from './snapshot.ts'

const { overloaded: OVERLOADED } = OUTCOMES

interface ConnectionCounts {
  readonly open: number
  readonly max: number
  readonly refused: number
}

/** Values that other modules provide. */
interface StatsSources {
  isStoreUp(): boolean
  underWay(): number
  connections(): ConnectionCounts
  /** Key of the site that a refused request named; undefined if there is no such site. */
  siteNamedBy(exchange: Exchange): string | undefined
}

export class Stats implements Events, ExchangeObserver {
  readonly #sources: StatsSources
  readonly #parts = Object.fromEntries(PARTS.map(part => [part, new PartCounters()])) as Readonly<
    Record<Part, PartCounters>
  >
  readonly #sites = new Map<string, SiteCounters>()
  /** Counts for the sites beyond SITES_MAX. */
  readonly #otherSites = new SiteCounters()
  readonly #limited = new Map<EndpointName, Tally<Policy>>()
  /** What shadow policies asked for, against what was asked for. */
  readonly #shadowChallenges = { harder: 0, easier: 0, same: 0 }
  readonly #shadowBits = { harder: 0, easier: 0 }
  readonly #storeLatency = new Buckets(LATENCY_BOUNDS_SECONDS)
  readonly #storeBatch = new Buckets(BATCH_BOUNDS)
  #storeOutages = 0
  #storePartsDown = 0
  #storeDownSinceMs = 0
  readonly #lag = new EventLoopLag()

  constructor(sources: StatsSources) {
    this.#sources = sources
  }

  answered(part: Part, status: number, outcome: ReplyOutcome, startedAtMs: number): void {
    const counters = this.#parts[part]
    counters.latency.add((performance.now() - startedAtMs) / 1000)
    counters.count(status, outcome)
  }

  aborted(part: Part): void {
    this.#parts[part].aborted++
  }

  shed(part: Part): void {
    this.#parts[part].count(OVERLOADED.status, 'overloaded')
  }

  faulted(part: Part, _error: unknown): void {
    this.#parts[part].faults++
  }

  issued(_exchange: Exchange, { site, difficulty, shadowDifficulty }: IssuedChallenge): void {
    this.#site(site.record.siteKey).issued(difficulty)
    if (shadowDifficulty !== undefined) this.#compare(shadowDifficulty - difficulty)
  }

  #compare(moreBits: number): void {
    const verdict = moreBits > 0 ? 'harder' : moreBits < 0 ? 'easier' : 'same'
    this.#shadowChallenges[verdict]++
    if (verdict !== 'same') this.#shadowBits[verdict] += Math.abs(moreBits)
  }

  judged(_exchange: Exchange, { site, passed, score, reasons }: Judgement): void {
    this.#site(site.record.siteKey).judged(passed, score, reasons)
  }

  redeemed(_exchange: Exchange, { siteKey }: ApiKeyRecord): void {
    this.#site(siteKey).redeemed++
  }

  refused(exchange: Exchange, endpoint: EndpointName, reason: Reason, policy?: Policy): void {
    if (policy !== undefined) this.#limitsOf(endpoint).add(policy)
    const siteKey = this.#sources.siteNamedBy(exchange)
    if (siteKey !== undefined) this.#site(siteKey).refused.add(reason)
  }

  /** Counts a call with the operations of one turn, when the store has answered or the call was given up. */
  readonly storeCalled = (operations: number, seconds: number): void => {
    this.#storeBatch.add(operations)
    this.#storeLatency.add(seconds)
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
      this.#storeOutages++
      this.#storeDownSinceMs = nowMs
    }
    return wereDown === 1 && up ? Math.round(nowMs - this.#storeDownSinceMs) / 1000 : undefined
  }

  snapshot(): StatsSnapshot {
    const { answers, latencies, aborted, faults } = this.#partsSnapshot()
    const limited: Record<string, number> = {}
    for (const [endpoint, policies] of this.#limited) {
      for (const [policy, count] of Object.entries(policies.snapshot()))
        limited[`${endpoint} ${policy}`] = count
    }
    return {
      answers,
      latencies,
      aborted,
      faults,
      storeLatency: this.#storeLatency.snapshot(),
      storeBatch: this.#storeBatch.snapshot(),
      storeOutages: this.#storeOutages,
      connectionsRefused: this.#sources.connections().refused,
      cpuMicroseconds: cpuMicroseconds(),
      limited,
      shadowChallenges: { ...this.#shadowChallenges },
      shadowBits: { ...this.#shadowBits },
      ...this.#sitesSnapshot(),
      gauges: this.#gauges(),
    }
  }

  #partsSnapshot() {
    const answers: Record<string, number> = {}
    const latencies: Record<string, Histogram> = {}
    const aborted: Record<string, number> = {}
    const faults: Record<string, number> = {}
    for (const [part, counters] of Object.entries(this.#parts)) {
      for (const [outcome, counts] of counters.answers) {
        for (const { status, count } of counts) answers[`${part} ${status} ${outcome}`] = count
      }
      latencies[part] = counters.latency.snapshot()
      aborted[part] = counters.aborted
      faults[part] = counters.faults
    }
    return { answers, latencies, aborted, faults }
  }

  /** Every challenge and every judgement belongs to a site, so the service's figures are the sum over all sites. */
  #sitesSnapshot() {
    const sites: Record<string, SiteStats> = {}
    const difficulties: Record<string, number> = {}
    const reasons: Record<string, number> = {}
    const scores: number[] = new Array(SCORE_BUCKETS).fill(0)
    let { scoreSum } = this.#otherSites
    for (const [siteKey, counters] of this.#sites) {
      sites[siteKey] = counters.snapshot()
      scoreSum += counters.scoreSum
    }
    if (this.#sites.size === SITES_MAX) sites[''] = this.#otherSites.snapshot()
    for (const site of Object.values(sites)) {
      for (const bits in site.difficulties)
        difficulties[bits] = (difficulties[bits] ?? 0) + site.difficulties[bits]!
      for (const reason in site.reasons) reasons[reason] = (reasons[reason] ?? 0) + site.reasons[reason]!
      for (let bucket = 0; bucket < SCORE_BUCKETS; bucket++) scores[bucket]! += site.scores[bucket]!
    }
    return { sites, difficulties, reasons, scores, scoreSum }
  }

  #gauges(): Gauges {
    const { rss, heapUsed } = process.memoryUsage()
    const { open, max } = this.#sources.connections()
    return {
      storeUp: this.#sources.isStoreUp() ? 1 : 0,
      underWay: this.#sources.underWay(),
      connections: open,
      connectionsMax: max,
      residentBytes: rss,
      heapBytes: heapUsed,
      eventLoopLagSeconds: this.#lag.get(),
    }
  }

  /** @param siteKey of a site that exists */
  #site(siteKey: string): SiteCounters {
    const known = this.#sites.get(siteKey)
    if (known !== undefined) return known
    if (this.#sites.size >= SITES_MAX) return this.#otherSites
    const counters = new SiteCounters()
    this.#sites.set(siteKey, counters)
    return counters
  }

  #limitsOf(endpoint: EndpointName): Tally<Policy> {
    const known = this.#limited.get(endpoint)
    if (known !== undefined) return known
    const tally = new Tally<Policy>()
    this.#limited.set(endpoint, tally)
    return tally
  }
}

/** Processor time of this process since its start. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

interface AnswerCount {
  readonly status: number
  count: number
}

class PartCounters {
  readonly latency = new Buckets(LATENCY_BOUNDS_SECONDS)
  /** An outcome has one status, `ok` has a few. */
  readonly answers = new Map<ReplyOutcome, AnswerCount[]>()
  aborted = 0
  faults = 0

  count(status: number, outcome: ReplyOutcome): void {
    const counts = this.answers.get(outcome)
    if (counts !== undefined) {
      for (let index = 0; index < counts.length; index++) {
        const answers = counts[index]!
        if (answers.status === status) {
          answers.count++
          return
        }
      }
      counts.push({ status, count: 1 })
    } else this.answers.set(outcome, [{ status, count: 1 }])
  }
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
  get(): Gauges['eventLoopLagSeconds'] {
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
