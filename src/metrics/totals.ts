/**
 * What all workers have counted, including workers that have ended: kept and added up in the primary process. A worker may run
 * newer code than the primary process. So missing values count as nothing, unknown fields are left out, and counts in unknown
 * buckets go into the known ones.
 */

import { BATCH_BOUNDS, LATENCY_BOUNDS_SECONDS } from './counters.ts'
import {
  type Gauges,
  type Histogram,
  SCORE_BUCKETS,
  SITES_MAX,
  type SiteStats,
  type StatsSnapshot,
} from './snapshot.ts'

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

/** Adds up fields of three kinds: numbers, counts by name, and `scores`. Other fields are left out. */
class FieldSums<Numeric extends string, Named extends string> {
  readonly #numbers: Record<Numeric, number>
  readonly #counts: Record<Named, Counts>
  readonly #scores: number[] = new Array(SCORE_BUCKETS).fill(0)

  constructor(numbers: readonly Numeric[], counts: readonly Named[]) {
    this.#numbers = recordOf(numbers, () => 0)
    this.#counts = recordOf(counts, () => ({}))
  }

  add(
    sent: Sent<Record<Numeric, number> & Record<Named, Readonly<Counts>> & Pick<SiteStats, 'scores'>>,
  ): void {
    for (const name in this.#numbers) this.#numbers[name] += countOf(sent?.[name])
    for (const name in this.#counts) addCounts(this.#counts[name], sent?.[name])
    addList(this.#scores, sent?.scores)
  }

  snapshot(): Record<Numeric, number> & Record<Named, Counts> & Pick<SiteStats, 'scores'> {
    const counts = mapValues(this.#counts, counts => ({ ...counts }))
    return { ...this.#numbers, ...counts, scores: [...this.#scores] }
  }
}

const NUMBERS = ['storeOutages', 'connectionsRefused', 'cpuMicroseconds'] as const
const COUNTS = [
  'answers',
  'aborted',
  'faults',
  'difficulties',
  'reasons',
  'limited',
  'shadowChallenges',
  'shadowBits',
] as const
const SITE_NUMBERS = ['challenges', 'passed', 'failed', 'redeemed'] as const
const SITE_COUNTS = ['refused', 'reasons', 'difficulties'] as const

class SnapshotSum {
  readonly #fields = new FieldSums(NUMBERS, COUNTS)
  readonly #latencies: Record<string, HistogramSum> = {}
  readonly #storeLatency = new HistogramSum(LATENCY_BOUNDS_SECONDS, MICROSECONDS)
  readonly #storeBatch = new HistogramSum(BATCH_BOUNDS, OPERATIONS)
  #scoreHundredths = 0
  readonly #sites: Record<string, FieldSums<(typeof SITE_NUMBERS)[number], (typeof SITE_COUNTS)[number]>> = {}

  /** @param siteKeys the sites that are counted separately; the others are counted under '' */
  add(snapshot: StatsSnapshot, siteKeys: ReadonlySet<string>): void {
    const sent: Sent<StatsSnapshot> = snapshot
    this.#fields.add(sent)
    for (const [part, histogram] of Object.entries(sent.latencies ?? {})) {
      this.#latencies[part] ??= new HistogramSum(LATENCY_BOUNDS_SECONDS, MICROSECONDS)
      this.#latencies[part].add(histogram)
    }
    this.#storeLatency.add(sent.storeLatency)
    this.#storeBatch.add(sent.storeBatch)
    this.#scoreHundredths += Math.round(countOf(sent.scoreSum) * HUNDREDTHS)
    for (const [siteKey, site] of Object.entries(sent.sites ?? {})) {
      const key = siteKeys.has(siteKey) ? siteKey : ''
      this.#sites[key] ??= new FieldSums(SITE_NUMBERS, SITE_COUNTS)
      this.#sites[key].add(site)
    }
  }

  snapshot(gauges: Gauges): StatsSnapshot {
    return {
      ...this.#fields.snapshot(),
      latencies: mapValues(this.#latencies, sum => sum.snapshot()),
      storeLatency: this.#storeLatency.snapshot(),
      storeBatch: this.#storeBatch.snapshot(),
      scoreSum: this.#scoreHundredths / HUNDREDTHS,
      sites: mapValues(this.#sites, sum => sum.snapshot()),
      gauges,
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

function recordOf<Name extends string, Value>(
  names: readonly Name[],
  make: () => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map(name => [name, make()])) as Record<Name, Value>
}

function mapValues<Name extends string, From, To>(
  record: Record<Name, From>,
  map: (value: From) => To,
): Record<Name, To> {
  const entries = Object.entries<From>(record).map(([name, value]) => [name, map(value)])
  return Object.fromEntries(entries) as Record<Name, To>
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
function joinGauges(workers: readonly StatsSnapshot[]): Gauges {
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

export interface WorkerStats {
  readonly worker: string
  /**
   * The worker's slot. While its successor already runs in that slot, the smallest free number. So numbers stay small over
   * any number of restarts.
   */
  readonly number: number
  readonly snapshot: StatsSnapshot
}

/** A worker's last snapshot may arrive after its end is known. Snapshots of this many ended workers are still accepted. */
const LATELY_GONE_MAX = 16
/** For this many workers before them, the names are kept, so that nothing is counted twice. */
const GONE_MAX = 1000

const NOTHING = new SnapshotSum().snapshot(joinGauges([]))

interface Living {
  readonly worker: string
  readonly index: number
  readonly snapshot: StatsSnapshot
}

export class Totals {
  /** In the order of their first snapshot. */
  readonly #living = new Map<string, Living>()
  /** Oldest first; undefined: already part of the retired sum. */
  readonly #gone = new Map<string, StatsSnapshot | undefined>()
  readonly #retired = new SnapshotSum()
  /** In order of appearance, so that a site once counted separately stays so. */
  readonly #siteKeys = new Set<string>()

  /**
   * @param worker names one process: its successor has another name
   * @param index its slot: its successor has the same
   */
  take(worker: string, snapshot: StatsSnapshot, index: number): void {
    if (this.#gone.has(worker)) {
      if (this.#gone.get(worker) === undefined) return
      this.#gone.set(worker, snapshot)
    } else {
      this.#living.set(worker, { worker, index, snapshot })
    }
    for (const siteKey in snapshot.sites) {
      if (this.#siteKeys.size >= SITES_MAX) break
      if (siteKey !== '') this.#siteKeys.add(siteKey)
    }
  }

  /** Keeps the counters of an ended worker, and drops its gauges. */
  gone(worker: string): void {
    if (this.#gone.has(worker)) return
    this.#gone.set(worker, this.#living.get(worker)?.snapshot ?? NOTHING)
    this.#living.delete(worker)
    this.#retire()
  }

  current(): StatsSnapshot {
    const living = [...this.#living.values()].map(({ snapshot }) => snapshot)
    const sum = new SnapshotSum()
    sum.add(this.#retired.snapshot(NOTHING.gauges), this.#siteKeys)
    for (const snapshot of this.#gone.values()) {
      if (snapshot !== undefined) sum.add(snapshot, this.#siteKeys)
    }
    for (const snapshot of living) sum.add(snapshot, this.#siteKeys)
    return sum.snapshot(joinGauges(living))
  }

  /** Running workers, by number; their gauges are complete, whatever version they run. */
  workers(): readonly WorkerStats[] {
    const newest = new Map<number, string>()
    for (const { worker, index } of this.#living.values()) newest.set(index, worker)
    let free = 0
    const freeNumber = () => {
      while (newest.has(free)) free++
      return free++
    }
    return [...this.#living.values()]
      .map(({ worker, index, snapshot }) => ({
        worker,
        number: newest.get(index) === worker ? index : freeNumber(),
        snapshot: { ...snapshot, gauges: joinGauges([snapshot]) },
      }))
      .sort((a, b) => a.number - b.number)
  }

  /** Adds the workers that ended first to the retired sum, and forgets the oldest names. */
  #retire(): void {
    const withSnapshot = [...this.#gone].filter(([, snapshot]) => snapshot !== undefined)
    for (const [worker, snapshot] of withSnapshot.slice(0, -LATELY_GONE_MAX)) {
      this.#retired.add(snapshot!, this.#siteKeys)
      this.#gone.set(worker, undefined)
    }
    for (const worker of [...this.#gone.keys()].slice(0, -GONE_MAX)) this.#gone.delete(worker)
  }
}
