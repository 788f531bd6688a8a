/**
 * What the service did over the last half hour and the last day, for the dashboard. The history lives in the memory of the
 * primary process and is lost with it; figures that must be kept belong in Prometheus.
 *
 * Memory: at most 900 steps (180 of 10 s, 720 of 2 min) of at most 50 sites and the sum of the others. That is 30 MB if fifty
 * sites use each of the 80 counters in every step, and about 8 MB with fifty usual ones.
 */

import { ENDPOINT_NAMES, type EndpointName, type TrafficCount } from '../domain/endpoint.ts'
import { Columns, rounded, sum } from './columns.ts'
import {
  type HistoryView,
  type LastMinute,
  OTHER_SITES,
  type Range,
  type SiteEntry,
  type StoreHistory,
  type Traffic,
  type WorkerHistory,
} from './history-view.ts'
import type { Snapshot } from './stats.ts'
import { CounterNames, readStep, type Step, type StepGauges, StepRing } from './steps.ts'
import { keyOf, TRAFFIC, type Values } from './table.ts'

/** How often `add` must be called. */
export const ADD_MS = 10_000
const COARSE_MS = 120_000
const HALF_HOUR_STEPS = 180
const DAY_STEPS = 720
const MINUTE_MS = 60_000
/** Sites with a curve of requests of their own. */
const BUSIEST = 7

export class History {
  readonly #names = new CounterNames()
  readonly #rings: Readonly<Record<Range, StepRing>>
  readonly #siteName: (siteKey: string) => string | undefined
  #startedAtMs: number
  #lastMs: number

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
  add(nowMs: number, totals: Snapshot): void {
    const backMs = nowMs < this.#lastMs ? nowMs - this.#lastMs : 0
    this.#startedAtMs += backMs
    this.#lastMs = nowMs
    const gauges = stepGauges(totals.values)
    for (const ring of Object.values(this.#rings)) {
      if (backMs !== 0) ring.shift(backMs)
      ring.add(nowMs, totals, gauges)
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
      limits: all.tallies('limited'),
      latencies: byEndpoint(endpoint => all.percentiles(`requestSeconds ${endpoint}`)),
      store: store(steps, all),
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
        site === null
          ? sum(all.sum('requests', (...labels) => isOfRedemption(labels[0]) && isRefusal(...labels)))
          : null,
      faults: sum(all.sum('faults')),
      p99: byEndpoint(endpoint => all.quantile(`requestSeconds ${endpoint}`, 0.99)),
      storeP99: all.quantile('storeSeconds', 0.99),
    }
  }
}

function stepGauges(values: Readonly<Values>): StepGauges {
  /** Of each worker. */
  const each = (key: string, end = '') =>
    Object.entries(values).flatMap(([name, value]) =>
      keyOf(name) === key && name.endsWith(end) ? [value] : [],
    )
  return {
    storeUp: values.storeUp === 1 ? 1 : 0,
    workers: values.workers ?? 0,
    lagSeconds: Math.max(0, ...each('lag', 'p99')),
    residentBytes: sum(each('residentBytes')),
  }
}

function store(steps: readonly Step[], all: Columns): StoreHistory {
  return {
    callMs: all.percentiles('storeSeconds'),
    batch: all.means('storeBatch'),
    outages: all.column('storeOutages'),
    up: steps.map(({ gauges }) => gauges.storeUp),
  }
}

function workers(steps: readonly Step[], all: Columns): WorkerHistory {
  return {
    running: steps.map(({ gauges }) => gauges.workers),
    crashes: all.sum('restarts', cause => cause !== 'roll'),
    rolls: all.column('restarts roll'),
    lagMs: steps.map(({ gauges }) => rounded(gauges.lagSeconds * 1000)),
    residentBytes: steps.map(({ gauges }) => gauges.residentBytes),
    faults: all.sum('faults'),
    aborted: all.sum('aborted'),
    linesLost: all.column('logLinesLost'),
  }
}

/** Traffic of the whole service, by its answers, which also count requests of no known site. */
function allTraffic(all: Columns): Traffic {
  const count = (what: TrafficCount) =>
    all.sum('requests', (...labels) => TRAFFIC.get(labels.join(' ')) === what)
  return {
    challenges: count('challenges'),
    passed: count('passed'),
    failed: count('failed'),
    redeemed: count('redeemed'),
    refused: all.sum('requests', isRefusal),
    refusals: all.tallies('requests', (...labels) => (isRefusal(...labels) ? labels[2] : undefined)),
    ...judgements(all),
  }
}

function isOfRedemption(endpoint: string | undefined): boolean {
  return TRAFFIC.get(`${endpoint} 200 ok`) === 'redeemed'
}

/** @param labels of an answer */
function isRefusal(...labels: string[]): boolean {
  const outcome = labels[2]
  return outcome !== 'ok' && outcome !== 'failed'
}

function siteTraffic(site: Columns): Traffic {
  return {
    challenges: site.column('challenges'),
    passed: site.column('passed'),
    failed: site.column('failed'),
    redeemed: site.column('redeemed'),
    refused: site.sum('refused'),
    refusals: site.tallies('refused'),
    ...judgements(site),
  }
}

/** Figures with the same names in a site's counters and in those of the whole service. */
function judgements(columns: Columns): Pick<Traffic, 'failureReasons' | 'difficulty' | 'scores'> {
  return {
    failureReasons: columns.tallies('reasons'),
    difficulty: { mean: columns.means('difficulty'), max: columns.highest('difficulty') },
    scores: columns.buckets('scores'),
  }
}

function byEndpoint<Value>(value: (endpoint: EndpointName) => Value): Record<EndpointName, Value> {
  const entries = ENDPOINT_NAMES.map(endpoint => [endpoint, value(endpoint)])
  return Object.fromEntries(entries) as Record<EndpointName, Value>
}
