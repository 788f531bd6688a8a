/**
 * Keeps the dashboard's numbers of the last half hour and day in the primary process. With 200 sites, which count about 12 series
 * each, they take 10 MB.
 */

import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName, type TrafficCount } from '../domain/endpoint.ts'
import type { Snapshot } from '../metrics/stats.ts'
import { metricOf, TRAFFIC, type Values } from '../metrics/table.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import { type Columns, rounded } from './columns.ts'
import { OTHER_SITES, type Percentiles, type Range, sum } from './data.ts'
import type { ServiceState } from './service-state.ts'
import { type Increases, type StepGauges, Steps } from './steps.ts'

/** Time between calls of `add`. */
export const ADD_MS = 10_000
/** Half an hour in steps of 10 s, and a day in steps of 2 min. */
const STEPS_MAX = { '30m': 180, '24h': 720 }
const ADDS_PER_STEP = { '30m': 1, '24h': 12 }
const MINUTE_MS = 60_000
/** Sites with a row in the panel of the busiest ones. */
const BUSIEST_MAX = 7
/**
 * A site is told as unredeemed if none of its tokens was redeemed for ten minutes, while at least so many should have been: as large a
 * share of its visitors as redeemed one over the day before. If 10 are expected, the chance that none comes is e^-10, 1 in 22,000.
 */
const UNREDEEMED_MIN = 10
const UNREDEEMED_STEPS_MIN = 60 // of 10 s

/** Body of /dashboard/data.json: an array for each curve, with a number for each step of time. Times are Unix milliseconds. */
export type DashboardData = ReturnType<History['view']> & {
  /** The chosen site is neither in the store nor in the range. */
  readonly isUnknown: boolean
  readonly service: ServiceState
}

export class History {
  readonly #ranges: Readonly<Record<Range, Steps>>
  readonly #siteName: (siteKey: string) => string | undefined
  readonly #aheadMs: () => number
  readonly #startedAtMs: number
  #lastMs: number
  #last: Snapshot = { values: {}, sites: {} }

  /**
   * @param startedAtMs before anything was counted, by a clock that nobody sets, like the times of `add`
   * @param siteName undefined if not known yet
   * @param aheadMs how far Unix time is ahead of that clock
   */
  constructor(startedAtMs: number, siteName: (siteKey: string) => string | undefined, aheadMs = () => 0) {
    const stepsOf = (range: Range) => new Steps(STEPS_MAX[range], ADDS_PER_STEP[range], startedAtMs)
    this.#ranges = { '30m': stepsOf('30m'), '24h': stepsOf('24h') }
    this.#siteName = siteName
    this.#aheadMs = aheadMs
    this.#startedAtMs = startedAtMs
    this.#lastMs = startedAtMs
  }

  add(nowMs: number, totals: Snapshot): void {
    this.#lastMs = nowMs
    const gauges = stepGauges(totals.values)
    const all = increasesOf(totals.values, this.#last.values)
    const sites = new Map<string, Increases>()
    for (const [siteKey, values] of Object.entries(totals.sites))
      sites.set(siteKey, increasesOf(values, this.#last.sites[siteKey]))
    for (const steps of Object.values(this.#ranges)) steps.add(nowMs, gauges, all, sites)
    this.#last = totals
  }

  /** @param site a site key or OTHER_SITES; null for all sites together */
  view(range: Range, site: string | null) {
    const ofRange = this.#ranges[range]
    const { steps } = ofRange
    const aheadMs = this.#aheadMs()
    const all = ofRange.columns(null)
    // Each site has one tally, of all its requests. Those of sites without numbers of their own have the key OTHER_SITES (steps.ts).
    const sites = ofRange.siteKeys
      .flatMap(siteKey => ofRange.columns(siteKey).tallies('requests', () => siteKey))
      .sort((one, other) => other.total - one.total)
    return {
      range,
      nowMs: this.#lastMs + aheadMs,
      startedAtMs: this.#startedAtMs + aheadMs,
      site,
      siteName: site === null ? null : (this.#siteName(site) ?? site),
      sites: sites.map(({ name: siteKey, total }) => {
        return { siteKey, name: this.#siteName(siteKey) ?? siteKey, requests: total }
      }),
      /** True if the chosen site has no numbers of its own while there are Other sites, so it is probably one of them. */
      isAmongOthers:
        !(site === null || site === OTHER_SITES || Object.hasOwn(this.#last.sites, site)) &&
        ofRange.siteKeys.includes(OTHER_SITES),
      busiest: sites.slice(0, BUSIEST_MAX),
      lastMinute: this.#lastMinute(site),
      unredeemed: this.#unredeemed(site),
      /** The end of each step, oldest first. */
      times: steps.map(({ toMs }) => toMs + aheadMs),
      seconds: steps.map(({ fromMs, toMs }) => (toMs - fromMs) / 1000),
      traffic: trafficOf(ofRange.columns(site)),
      limits: all.tallies('limited'),
      latencies: Object.fromEntries(
        ENDPOINT_NAMES.map(endpoint => [endpoint, all.percentiles(`requestSeconds ${endpoint}`)]),
      ) as Record<EndpointName, Percentiles>,
      store: storeOf(steps, all),
      workers: workersOf(steps, all),
    }
  }

  /** The sites (or the chosen one) whose visitors pass while none of their tokens is redeemed, most visitors first. */
  #unredeemed(site: string | null) {
    const found: { readonly name: string; readonly passed: number }[] = []
    for (const siteKey of site === null ? this.#ranges['30m'].siteKeys : [site]) {
      if (siteKey === OTHER_SITES) continue
      const [halfHour, day] = [this.#ranges['30m'].columns(siteKey), this.#ranges['24h'].columns(siteKey)]
      const lastRedeemed = answersOf(halfHour, 'redeemed').findLastIndex(count => count > 0)
      const since = answersOf(halfHour, 'passed').slice(lastRedeemed + 1)
      const passed = sum(since)
      if (passed < UNREDEEMED_MIN || since.length < UNREDEEMED_STEPS_MIN) continue
      const redeemedBefore = sum(answersOf(day, 'redeemed'))
      const passedBefore = sum(answersOf(day, 'passed')) - passed
      // With fewer, the usual share of redeemed tokens is not known.
      if (Math.min(redeemedBefore, passedBefore) < UNREDEEMED_MIN) continue
      const expected = (passed * redeemedBefore) / passedBefore
      if (expected >= UNREDEEMED_MIN) found.push({ name: this.#siteName(siteKey) ?? siteKey, passed })
    }
    return found.sort((one, other) => other.passed - one.passed)
  }

  /** Counts the chosen site's requests; faults and times are those of all sites. */
  #lastMinute(site: string | null) {
    const ofRange = this.#ranges['30m']
    // Six steps: half a step more than a minute forgives that timers are late.
    const steps = ofRange.steps.filter(({ fromMs }) => fromMs > this.#lastMs - MINUTE_MS - ADD_MS / 2)
    const all = ofRange.columns(null, steps.length)
    const ofSite = ofRange.columns(site, steps.length)
    const traffic = trafficOf(ofSite)
    return {
      seconds: steps.reduce((total, { fromMs, toMs }) => total + (toMs - fromMs) / 1000, 0),
      challenges: sum(traffic.challenges),
      passed: sum(traffic.passed),
      failed: sum(traffic.failed),
      redeemed: sum(traffic.redeemed),
      refused: sum(traffic.refused),
      redemptionsRefused: sum(
        ofSite.sumOf('requests', (endpoint, _, outcome) => redeems(endpoint) && isRefusal(outcome)),
      ),
      faults: sum(all.sumOf('faults')),
      verifyP99Ms: all.quantileMs('requestSeconds verify', 0.99),
      storeP99Ms: all.quantileMs('storeSeconds', 0.99),
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
  const lags = Object.keys(values)
    .filter(name => /^lag \S+ p99$/.test(name))
    .map(name => values[name]!)
  return { storeUp: values.storeUp ?? null, lagSeconds: Math.max(0, ...lags) }
}

function storeOf(steps: Steps['steps'], all: Columns) {
  const outages = all.counter('storeOutages')
  return {
    callMs: all.percentiles('storeSeconds'),
    outages,
    /** 0 if a worker lost the store in this step, or lacked it at the end; null if none ran. */
    up: steps.map(({ gauges }, step) => (outages[step] === 0 ? gauges.storeUp : 0)),
  }
}

function workersOf(steps: Steps['steps'], all: Columns) {
  return {
    /** Workers and store processes that ended or hung. */
    crashes: all.sumOf('restarts', cause => cause !== 'roll'),
    /** p99 of the worst worker. */
    lagMs: steps.map(({ gauges }) => rounded(gauges.lagSeconds * 1000)),
    faults: all.sumOf('faults'),
    /** Clients that left before the answer. */
    aborted: all.sumOf('aborted'),
    linesLost: all.counter('logLinesLost'),
  }
}

/** The answers that count as `what`; those that redeem come from two endpoints. */
function answersOf(columns: Columns, what: TrafficCount): readonly number[] {
  return columns.sumOf('requests', (...labels) => TRAFFIC.get(labels.join(' ')) === what)
}

function trafficOf(columns: Columns) {
  return {
    challenges: answersOf(columns, 'challenges'),
    passed: answersOf(columns, 'passed'),
    failed: answersOf(columns, 'failed'),
    redeemed: answersOf(columns, 'redeemed'),
    /** Only the four endpoints count, because a scanner's wrong paths would outnumber visitors. */
    refused: columns.sumOf('requests', (endpoint, _, outcome) => endpoint in ENDPOINTS && isRefusal(outcome)),
    refusals: columns.tallies('requests', (_, __, outcome) => (isRefusal(outcome) ? outcome : undefined)),
    failureReasons: columns.tallies('reasons'),
    difficulty: { sha256: bitsOf(columns, 'sha256'), hashwx: bitsOf(columns, 'hashwx') },
    scores: columns.bucketTotals('scores'),
  }
}

function bitsOf(columns: Columns, puzzle: PuzzleName) {
  const series = `difficulty ${puzzle}` as const
  return { mean: columns.means(series), max: columns.highestBound(series) }
}

/** The metric `requests` has the labels endpoint, status and outcome. */
function isRefusal(outcome: string): boolean {
  return outcome !== 'ok' && outcome !== 'failed'
}

function redeems(endpoint: string): boolean {
  return TRAFFIC.get(`${endpoint} 200 ok`) === 'redeemed'
}
