/**
 * Adds up what workers have counted. A worker may run newer code than the primary process. So missing values count as
 * nothing, unknown fields are left out, and counts in unknown buckets go into the known ones.
 */

import { BATCH_BOUNDS, LATENCY_BOUNDS_SECONDS } from './buckets.ts'
import { type Gauges, type Histogram, SCORE_BUCKETS, type SiteStats, type StatsSnapshot } from './snapshot.ts'

/**
 * Sums are kept as whole numbers of these units, so they are exact in any order of workers. A sum that fell by a rounding
 * error would be read as a counter's reset.
 */
const MICROSECONDS = 1e6
const OPERATIONS = 1
const HUNDREDTHS = 100

type Counts = Record<string, number>
/** As received from another process: any field may be missing. */
type Sent<Thing> = { readonly [Field in keyof Thing]?: Thing[Field] | undefined } | undefined

export class SnapshotSum {
  readonly #answers: Counts = {}
  readonly #latencies: Record<string, HistogramSum> = {}
  readonly #aborted: Counts = {}
  readonly #faults: Counts = {}
  readonly #storeLatency = new HistogramSum(LATENCY_BOUNDS_SECONDS, MICROSECONDS)
  readonly #storeBatch = new HistogramSum(BATCH_BOUNDS, OPERATIONS)
  #storeOutages = 0
  #connectionsRefused = 0
  #cpuMicroseconds = 0
  readonly #difficulties: Counts = {}
  readonly #scores: number[] = new Array(SCORE_BUCKETS).fill(0)
  #scoreHundredths = 0
  readonly #reasons: Counts = {}
  readonly #limited: Counts = {}
  readonly #shadowChallenges: Counts = {}
  readonly #shadowBits: Counts = {}
  readonly #sites: Record<string, SiteSum> = {}

  /** @param siteKeys the sites that are counted separately; the others are counted under '' */
  add(snapshot: StatsSnapshot, siteKeys: ReadonlySet<string>): void {
    const sent: Sent<StatsSnapshot> = snapshot
    addCounts(this.#answers, sent.answers)
    for (const [part, histogram] of Object.entries(sent.latencies ?? {})) {
      this.#latencies[part] ??= new HistogramSum(LATENCY_BOUNDS_SECONDS, MICROSECONDS)
      this.#latencies[part].add(histogram)
    }
    addCounts(this.#aborted, sent.aborted)
    addCounts(this.#faults, sent.faults)
    this.#storeLatency.add(sent.storeLatency)
    this.#storeBatch.add(sent.storeBatch)
    this.#storeOutages += countOf(sent.storeOutages)
    this.#connectionsRefused += countOf(sent.connectionsRefused)
    this.#cpuMicroseconds += countOf(sent.cpuMicroseconds)
    addCounts(this.#difficulties, sent.difficulties)
    addList(this.#scores, sent.scores)
    this.#scoreHundredths += Math.round(countOf(sent.scoreSum) * HUNDREDTHS)
    addCounts(this.#reasons, sent.reasons)
    addCounts(this.#limited, sent.limited)
    addCounts(this.#shadowChallenges, sent.shadowChallenges)
    addCounts(this.#shadowBits, sent.shadowBits)
    for (const [siteKey, site] of Object.entries(sent.sites ?? {})) {
      const key = siteKeys.has(siteKey) ? siteKey : ''
      this.#sites[key] ??= new SiteSum()
      this.#sites[key].add(site)
    }
  }

  snapshot(gauges: Gauges): StatsSnapshot {
    return {
      answers: { ...this.#answers },
      latencies: mapValues(this.#latencies, sum => sum.snapshot()),
      aborted: { ...this.#aborted },
      faults: { ...this.#faults },
      storeLatency: this.#storeLatency.snapshot(),
      storeBatch: this.#storeBatch.snapshot(),
      storeOutages: this.#storeOutages,
      connectionsRefused: this.#connectionsRefused,
      cpuMicroseconds: this.#cpuMicroseconds,
      difficulties: { ...this.#difficulties },
      scores: [...this.#scores],
      scoreSum: this.#scoreHundredths / HUNDREDTHS,
      reasons: { ...this.#reasons },
      limited: { ...this.#limited },
      shadowChallenges: { ...this.#shadowChallenges },
      shadowBits: { ...this.#shadowBits },
      sites: mapValues(this.#sites, sum => sum.snapshot()),
      gauges,
    }
  }
}

class SiteSum {
  #challenges = 0
  #passed = 0
  #failed = 0
  #redeemed = 0
  readonly #refused: Counts = {}
  readonly #reasons: Counts = {}
  readonly #difficulties: Counts = {}
  readonly #scores: number[] = new Array(SCORE_BUCKETS).fill(0)

  add(sent: Sent<SiteStats>): void {
    this.#challenges += countOf(sent?.challenges)
    this.#passed += countOf(sent?.passed)
    this.#failed += countOf(sent?.failed)
    this.#redeemed += countOf(sent?.redeemed)
    addCounts(this.#refused, sent?.refused)
    addCounts(this.#reasons, sent?.reasons)
    addCounts(this.#difficulties, sent?.difficulties)
    addList(this.#scores, sent?.scores)
  }

  snapshot(): SiteStats {
    return {
      challenges: this.#challenges,
      passed: this.#passed,
      failed: this.#failed,
      redeemed: this.#redeemed,
      refused: { ...this.#refused },
      reasons: { ...this.#reasons },
      difficulties: { ...this.#difficulties },
      scores: [...this.#scores],
    }
  }
}

class HistogramSum {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  readonly #partsPerUnit: number
  #parts = 0

  constructor(bounds: readonly number[], partsPerUnit: number) {
    this.#bounds = bounds
    this.#partsPerUnit = partsPerUnit
    this.#counts = new Array(bounds.length + 1).fill(0)
  }

  add(sent: Sent<Histogram>): void {
    const { bounds = [], counts = [] } = sent ?? {}
    counts.forEach((count, bucket) => {
      this.#counts[this.#bucketOf(bounds[bucket] ?? Number.POSITIVE_INFINITY)]! += countOf(count)
    })
    this.#parts += Math.round(countOf(sent?.sum) * this.#partsPerUnit)
  }

  /** The first bucket whose bound is at least as high. */
  #bucketOf(bound: number): number {
    const bucket = this.#bounds.findIndex(own => own >= bound)
    return bucket < 0 ? this.#bounds.length : bucket
  }

  snapshot(): Histogram {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#parts / this.#partsPerUnit }
  }
}

function addCounts(to: Counts, sent: Readonly<Counts> | undefined): void {
  if (sent === undefined) return
  for (const name in sent) to[name] = (to[name] ?? 0) + countOf(sent[name])
}

/** Adds lists by index; entries beyond the known length are added to the last one. */
function addList(to: number[], sent: readonly number[] | undefined): void {
  sent?.forEach((count, index) => {
    to[Math.min(index, to.length - 1)]! += countOf(count)
  })
}

function countOf(sent: unknown): number {
  return typeof sent === 'number' && Number.isFinite(sent) && sent > 0 ? sent : 0
}

function mapValues<From, To>(record: Record<string, From>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
}

const NO_GAUGES: Gauges = {
  storeUp: 0,
  underWay: 0,
  connections: 0,
  connectionsMax: 0,
  residentBytes: 0,
  heapBytes: 0,
  eventLoopLagSeconds: { mean: 0, p99: 0, max: 0 },
}

/**
 * Of all workers: the store is up if all workers reach it; sizes are added up; of lags the worst counts (of means, the mean).
 */
export function joinGauges(workers: readonly StatsSnapshot[]): Gauges {
  const gauges = workers.map(({ gauges }: Sent<StatsSnapshot> & object) => ({ ...NO_GAUGES, ...gauges }))
  const sum = (of: (each: Gauges) => number) => gauges.reduce((total, each) => total + countOf(of(each)), 0)
  const worst = (of: (each: Gauges) => number) => Math.max(0, ...gauges.map(each => countOf(of(each))))
  return {
    storeUp: gauges.length > 0 && gauges.every(({ storeUp }) => storeUp === 1) ? 1 : 0,
    underWay: sum(({ underWay }) => underWay),
    connections: sum(({ connections }) => connections),
    connectionsMax: sum(({ connectionsMax }) => connectionsMax),
    residentBytes: sum(({ residentBytes }) => residentBytes),
    heapBytes: sum(({ heapBytes }) => heapBytes),
    eventLoopLagSeconds: {
      mean: sum(each => each.eventLoopLagSeconds.mean) / Math.max(1, gauges.length),
      p99: worst(each => each.eventLoopLagSeconds.p99),
      max: worst(each => each.eventLoopLagSeconds.max),
    },
  }
}
