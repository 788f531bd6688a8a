/**
 * What the service did over the last half hour and the last day, for the dashboard. The history lives in the memory of the
 * primary process and is lost with it; figures that must be kept belong in Prometheus.
 *
 * Memory: at most 900 steps (180 of 10 s, 720 of 2 min) of at most 50 sites and the sum of the others. That is 30 MB if fifty
 * sites use each of the 80 counters in every step, and about 8 MB with fifty usual ones.
 */

import { ENDPOINT_NAMES, type EndpointName } from '../domain/endpoint.ts'
import { Columns, rounded } from './columns.ts'
import {
  type HistoryView,
  type LastMinute,
  OTHER_SITES,
  type Percentiles,
  type Range,
  type SiteEntry,
  type StoreHistory,
  type Traffic,
  type WorkerHistory,
} from './history-view.ts'
import { type Restarts, SCORE_BUCKETS, type StatsSnapshot } from './snapshot.ts'
import { CounterNames, readStep, type Step, type StepGauges, StepRing } from './steps.ts'

/** How often `add` must be called. */
export const ADD_MS = 10_000
const COARSE_MS = 120_000
const HALF_HOUR_STEPS = 180
const DAY_STEPS = 720
const MINUTE_MS = 60_000
/** Sites with a curve of requests of their own. */
const BUSIEST = 7

/** What only the primary process knows about the workers. */
export interface Fleet {
  readonly running: number
  readonly restarts: Restarts
}

export class History {
  readonly #names = new CounterNames()
  readonly #rings: Readonly<Record<Range, StepRing>>
  readonly #siteName: (siteKey: string) => string | undefined
  #startedAtMs: number
  #lastMs: number
  #latest: StatsSnapshot | undefined

  /**
   * @param startedAtMs Unix milliseconds, when nothing had been counted
   * @param siteName undefined if the name is unknown, or not known yet
   */
  constructor(startedAtMs: number, siteName: (siteKey: string) => string | undefined) {
    const ring = (stepMs: number, stepsMax: number) =>
      new StepRing({ stepMs, stepsMax, slackMs: ADD_MS / 2 }, startedAtMs, this.#names)
    this.#rings = { '30m': ring(ADD_MS, HALF_HOUR_STEPS), '24h': ring(COARSE_MS, DAY_STEPS) }
    this.#siteName = siteName
    this.#startedAtMs = startedAtMs
    this.#lastMs = startedAtMs
  }

  /**
   * Adds the current totals; to be called every ADD_MS.
   *
   * @param nowMs Unix milliseconds; if the clock was set back, the past is shifted by as much
   */
  add(nowMs: number, snapshot: StatsSnapshot, { running, restarts }: Fleet): void {
    const backMs = nowMs < this.#lastMs ? nowMs - this.#lastMs : 0
    this.#startedAtMs += backMs
    this.#lastMs = nowMs
    this.#latest = snapshot
    const { storeUp, eventLoopLagSeconds, residentBytes } = snapshot.gauges
    const lagSeconds = eventLoopLagSeconds.p99
    const gauges: StepGauges = { storeUp, workers: running, lagSeconds, residentBytes }
    for (const ring of Object.values(this.#rings)) {
      if (backMs !== 0) ring.shift(backMs)
      ring.add(nowMs, { snapshot, restarts }, gauges)
    }
  }

  /** @param site a site key, or OTHER_SITES; null: all sites. A site without requests has zeros everywhere. */
  view(range: Range, site: string | null): HistoryView {
    const { steps } = this.#rings[range]
    const all = this.#columns(steps, null)
    const sites = this.#sites(steps)
    const ofSite = site === null ? all : this.#columns(steps, site)
    return {
      range,
      nowMs: this.#lastMs,
      startedAtMs: this.#startedAtMs,
      site,
      sites,
      busiest: sites.slice(0, BUSIEST).map(({ siteKey, requests }) => ({
        name: siteKey,
        total: requests,
        counts: steps.map(step => step.requests[step.sites.indexOf(siteKey)] ?? 0),
      })),
      lastMinute: this.#lastMinute(site),
      times: steps.map(({ toMs }) => toMs),
      seconds: steps.map(({ fromMs, toMs }) => (toMs - fromMs) / 1000),
      traffic: site === null ? allTraffic(all) : siteTraffic(ofSite),
      limits: all.tallies('limited/'),
      latencies: this.#latencies(all),
      store: this.#store(steps, all),
      workers: workers(steps, all),
    }
  }

  /** Keys of the sites that have numbers of their own in a range. */
  siteKeys(range: Range): string[] {
    return [...new Set(this.#rings[range].steps.flatMap(({ sites }) => sites))].filter(
      siteKey => siteKey !== OTHER_SITES,
    )
  }

  #columns(steps: readonly Step[], site: string | null): Columns {
    const columns = new Columns(steps.length)
    for (const [index, step] of steps.entries()) {
      readStep(step, site, (counter, count) => columns.add(this.#names.nameOf(counter), index, count))
    }
    return columns
  }

  #sites(steps: readonly Step[]): SiteEntry[] {
    const requests = new Map<string, number>()
    for (const step of steps) {
      for (const [index, site] of step.sites.entries()) {
        requests.set(site, (requests.get(site) ?? 0) + step.requests[index]!)
      }
    }
    return [...requests]
      .map(([siteKey, count]) => ({ siteKey, name: this.#siteName(siteKey) ?? siteKey, requests: count }))
      .sort((one, other) => other.requests - one.requests)
  }

  #lastMinute(site: string | null): LastMinute {
    const steps = this.#rings['30m'].steps.filter(
      ({ fromMs }) => fromMs > this.#lastMs - MINUTE_MS - ADD_MS / 2,
    )
    const all = this.#columns(steps, null)
    const traffic = site === null ? allTraffic(all) : siteTraffic(this.#columns(steps, site))
    return {
      seconds: steps.reduce((sum, { fromMs, toMs }) => sum + (toMs - fromMs) / 1000, 0),
      challenges: sum(traffic.challenges),
      passed: sum(traffic.passed),
      failed: sum(traffic.failed),
      redeemed: sum(traffic.redeemed),
      refused: sum(traffic.refused),
      redemptionsRefused:
        site === null ? sum(all.matching(/^answers\/(?:verify-token|siteverify) \d+ (?!ok$)/)) : null,
      faults: sum(all.matching('faults/')),
      p99: byEndpoint(endpoint => all.quantile(`latencies/${endpoint}`, this.#bounds(endpoint), 0.99)),
      storeP99: all.quantile('storeLatency', this.#latest?.storeLatency?.bounds ?? [], 0.99),
    }
  }

  #latencies(all: Columns): Record<EndpointName, Percentiles> {
    return byEndpoint(endpoint => all.percentiles(`latencies/${endpoint}`, this.#bounds(endpoint)))
  }

  #bounds(endpoint: EndpointName): readonly number[] {
    return this.#latest?.latencies?.[endpoint]?.bounds ?? []
  }

  #store(steps: readonly Step[], all: Columns): StoreHistory {
    const calls = all.matching('storeBatch/counts/')
    const operations = all.column('storeBatch/sum')
    return {
      callMs: all.percentiles('storeLatency', this.#latest?.storeLatency?.bounds ?? []),
      batch: calls.map((count, index) => (count === 0 ? null : rounded(operations[index]! / count))),
      outages: all.column('storeOutages'),
      up: steps.map(({ gauges }) => gauges.storeUp),
    }
  }
}

function workers(steps: readonly Step[], all: Columns): WorkerHistory {
  return {
    running: steps.map(({ gauges }) => gauges.workers),
    crashes: all.matching(/^restarts\/(?:crash|hang)$/),
    rolls: all.column('restarts/roll'),
    lagMs: steps.map(({ gauges }) => rounded(gauges.lagSeconds * 1000)),
    residentBytes: steps.map(({ gauges }) => gauges.residentBytes),
    faults: all.matching('faults/'),
    aborted: all.matching('aborted/'),
  }
}

/** Traffic of the whole service, by its answers, which also count requests of no known site. */
function allTraffic(all: Columns): Traffic {
  const refusals = all.tallies(/^answers\/\S+ \d+ (?!ok$|failed$)(.+)$/)
  return {
    challenges: all.column('answers/challenge 200 ok'),
    passed: all.column('answers/verify 200 ok'),
    failed: all.column('answers/verify 200 failed'),
    redeemed: all.matching(/^answers\/(?:verify-token|siteverify) 200 ok$/),
    refused: all.matching(/^answers\/\S+ \d+ (?!ok$|failed$)/),
    refusals,
    ...judgements(all),
  }
}

function siteTraffic(site: Columns): Traffic {
  return {
    challenges: site.column('challenges'),
    passed: site.column('passed'),
    failed: site.column('failed'),
    redeemed: site.column('redeemed'),
    refused: site.matching('refused/'),
    refusals: site.tallies('refused/'),
    ...judgements(site),
  }
}

/** Figures with the same names in a site's counters and in those of the whole service. */
function judgements(columns: Columns): Pick<Traffic, 'failureReasons' | 'difficulty' | 'scores'> {
  return {
    failureReasons: columns.tallies('reasons/'),
    difficulty: columns.meanAndMax('difficulties/'),
    scores: Array.from({ length: SCORE_BUCKETS }, (_, index) => sum(columns.column(`scores/${index}`))),
  }
}

function byEndpoint<Value>(value: (endpoint: EndpointName) => Value): Record<EndpointName, Value> {
  return Object.fromEntries(ENDPOINT_NAMES.map(endpoint => [endpoint, value(endpoint)])) as Record<
    EndpointName,
    Value
  >
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
