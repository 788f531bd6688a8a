/**
 * The dashboard's half hour and day, in the primary process: 10 MB with 200 sites and the usual 12 counters of each. A counter
 * has a ring of numbers (steps.ts), one for each step. A site is apart if it has rings of its own; all others add up in
 * OTHER_SITES.
 */

import { ENDPOINT_NAMES, type EndpointName, type TrafficCount } from '../domain/endpoint.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import { Columns, rounded, sum } from './columns.ts'
import { OTHER_SITES, type Range } from './history-view.ts'
import type { Snapshot } from './stats.ts'
import { type Increases, type StepGauges, Steps } from './steps.ts'
import { keyOf, metricOf, TRAFFIC, type Values } from './table.ts'

/** Time between calls of `add`. */
export const ADD_MS = 10_000
const COARSE_MS = 120_000
const HALF_HOUR_STEPS = 180
const DAY_STEPS = 720
const MINUTE_MS = 60_000
const ASKED_MAX = 50
/** Sites with their own curve of requests. */
const BUSIEST = 7

/** What the dashboard shows: an array for each curve, a number for each step of time. Times are Unix milliseconds. */
export type HistoryView = ReturnType<History['view']>
export type Traffic = HistoryView['traffic']

export class History {
  readonly #ranges: Readonly<Record<Range, Steps>>
  readonly #siteName: (siteKey: string) => string | undefined
  readonly #asked: Set<string>
  #startedAtMs: number
  #lastMs: number
  #last: Snapshot = { values: {}, sites: {} }

  /**
   * @param startedAtMs Unix milliseconds, before anything was counted
   * @param siteName undefined if not known yet
   * @param asked filled here with the sites that the dashboard showed last; Totals shares it, so these are counted apart everywhere
   */
  constructor(
    startedAtMs: number,
    siteName: (siteKey: string) => string | undefined,
    asked: Set<string> = new Set(),
  ) {
    const steps = (stepMs: number, stepsMax: number) =>
      new Steps({ stepMs, stepsMax, slackMs: ADD_MS / 2 }, startedAtMs, asked)
    this.#asked = asked
    this.#ranges = { '30m': steps(ADD_MS, HALF_HOUR_STEPS), '24h': steps(COARSE_MS, DAY_STEPS) }
    this.#siteName = siteName
    this.#startedAtMs = startedAtMs
    this.#lastMs = startedAtMs
  }

  /** @param nowMs Unix milliseconds; if the clock was set back, the past shifts with it */
  add(nowMs: number, totals: Snapshot): void {
    const backMs = nowMs < this.#lastMs ? nowMs - this.#lastMs : 0
    this.#startedAtMs += backMs
    this.#lastMs = nowMs
    const gauges = stepGauges(totals.values)
    const all = increasesOf(totals.values, this.#last.values)
    const sites = new Map(
      Object.entries(totals.sites).map(([siteKey, values]) => [
        siteKey,
        increasesOf(values, this.#last.sites[siteKey]),
      ]),
    )
    for (const steps of Object.values(this.#ranges)) {
      if (backMs !== 0) steps.shift(backMs)
      steps.add(nowMs, gauges, all, sites)
    }
    this.#last = totals
  }

  /** @param site a site key or OTHER_SITES; null: all */
  view(range: Range, site: string | null) {
    const ofRange = this.#ranges[range]
    const { steps } = ofRange
    const isChosen = site !== null && site !== OTHER_SITES
    if (isChosen) this.#ask(site)
    const columnsOf = (one: string | null) => new Columns(ofRange.rings(one), ofRange.places())
    const all = columnsOf(null)
    const sites = ofRange.siteKeys
      .map(name => ({ name, ...requestsOf(columnsOf(name)) }))
      .filter(({ total }) => total > 0)
      .sort((one, other) => other.total - one.total)
    return {
      range,
      nowMs: this.#lastMs,
      startedAtMs: this.#startedAtMs,
      site,
      /** If not, the site's figures so far are among OTHER_SITES. */
      isApart: !isChosen || ofRange.isApart(site),
      sites: sites.map(({ name: siteKey, total }) => {
        return { siteKey, name: this.#siteName(siteKey) ?? siteKey, requests: total }
      }),
      busiest: sites.slice(0, BUSIEST),
      lastMinute: this.#lastMinute(site),
      /** The end of each step, oldest first. */
      times: steps.map(({ toMs }) => toMs),
      seconds: steps.map(({ fromMs, toMs }) => (toMs - fromMs) / 1000),
      traffic: trafficOf(columnsOf(site)),
      limits: all.tallies('limited'),
      latencies: byEndpoint(endpoint => all.percentiles(`requestSeconds ${endpoint}`)),
      store: store(steps, all),
      workers: workers(steps, all),
    }
  }

  siteKeys(range: Range): string[] {
    return this.#ranges[range].siteKeys.filter(siteKey => siteKey !== OTHER_SITES)
  }

  #ask(siteKey: string): void {
    this.#asked.delete(siteKey)
    this.#asked.add(siteKey)
    const [oldest] = this.#asked
    if (this.#asked.size > ASKED_MAX) this.#asked.delete(oldest!)
  }

  /** What the site had, or all together; faults and times are of all sites. */
  #lastMinute(site: string | null) {
    const ofRange = this.#ranges['30m']
    const steps = ofRange.steps.filter(({ fromMs }) => fromMs > this.#lastMs - MINUTE_MS - ADD_MS / 2)
    const places = ofRange.places(steps.length)
    const all = new Columns(ofRange.rings(null), places)
    const ofSite = new Columns(ofRange.rings(site), places)
    const traffic = trafficOf(ofSite)
    return {
      seconds: steps.reduce((total, { fromMs, toMs }) => total + (toMs - fromMs) / 1000, 0),
      challenges: sum(traffic.challenges),
      passed: sum(traffic.passed),
      failed: sum(traffic.failed),
      redeemed: sum(traffic.redeemed),
      refused: sum(traffic.refused),
      redemptionsRefused: sum(ofSite.sum('requests', isRefusedRedemption)),
      faults: sum(all.sum('faults')),
      p99: byEndpoint(endpoint => all.quantile(`requestSeconds ${endpoint}`, 0.99)),
      storeP99: all.quantile('storeSeconds', 0.99),
    }
  }
}

/** A counter that is smaller than before was reset, so it grew from zero. */
function increasesOf(current: Readonly<Values>, before: Readonly<Values> = {}): Increases {
  const increases = new Map<string, number>()
  for (const name in current) {
    const now = current[name]!
    const base = before[name] ?? 0
    const increase = base <= now ? now - base : now
    if (increase > 0 && metricOf(name)?.history === true) increases.set(name, increase)
  }
  return increases
}

function stepGauges(values: Readonly<Values>): StepGauges {
  /** One per worker. */
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

function store(steps: Steps['steps'], all: Columns) {
  return {
    callMs: all.percentiles('storeSeconds'),
    /** Mean operations per call. */
    batch: all.means('storeBatch'),
    outages: all.column('storeOutages'),
    /** 1 if all workers had the store all the time. */
    up: steps.map(({ gauges }) => gauges.storeUp),
  }
}

function workers(steps: Steps['steps'], all: Columns) {
  return {
    running: steps.map(({ gauges }) => gauges.workers),
    /** Ended or hung. */
    crashes: all.sum('restarts', cause => cause !== 'roll'),
    rolls: all.column('restarts roll'),
    /** p99 of the worst worker. */
    lagMs: steps.map(({ gauges }) => rounded(gauges.lagSeconds * 1000)),
    residentBytes: steps.map(({ gauges }) => gauges.residentBytes),
    faults: all.sum('faults'),
    /** Clients that left before the answer. */
    aborted: all.sum('aborted'),
    linesLost: all.column('logLinesLost'),
  }
}

function trafficOf(columns: Columns) {
  const count = (what: TrafficCount) =>
    columns.sum('requests', (...labels) => TRAFFIC.get(labels.join(' ')) === what)
  return {
    challenges: count('challenges'),
    passed: count('passed'),
    failed: count('failed'),
    redeemed: count('redeemed'),
    refused: columns.sum('requests', isRefusal),
    refusals: columns.tallies('requests', (...labels) => (isRefusal(...labels) ? labels[2] : undefined)),
    failureReasons: columns.tallies('reasons'),
    difficulty: { sha256: bitsOf(columns, 'sha256'), hashwx: bitsOf(columns, 'hashwx') },
    scores: columns.buckets('scores'),
  }
}

function bitsOf(columns: Columns, puzzle: PuzzleName) {
  const series = `difficulty ${puzzle}`
  return { mean: columns.means(series), max: columns.highest(series) }
}

function requestsOf(columns: Columns): { readonly total: number; readonly counts: readonly number[] } {
  const counts = columns.sum('requests')
  return { total: sum(counts), counts }
}

type AnswerLabels = readonly [endpoint?: string, status?: string, outcome?: string]

function isRefusal(...[, , outcome]: AnswerLabels): boolean {
  return outcome !== 'ok' && outcome !== 'failed'
}

function isRefusedRedemption(...labels: AnswerLabels): boolean {
  const redeems = TRAFFIC.get(`${labels[0]} 200 ok`) === 'redeemed'
  return redeems && isRefusal(...labels)
}

function byEndpoint<Value>(value: (endpoint: EndpointName) => Value): Record<EndpointName, Value> {
  const entries = ENDPOINT_NAMES.map(endpoint => [endpoint, value(endpoint)])
  return Object.fromEntries(entries) as Record<EndpointName, Value>
}
