/** Adds up in the primary process what it and all workers counted, ended ones too. */

import type { ServerBuild } from '../server-build.ts'
import { newCounts, valuesOf } from './counters.ts'
import type { Snapshot } from './stats.ts'
import { type FlatName, metricOf, ROWS, SITES_MAX, type Values } from './table.ts'

/** What a worker runs: a rolling restart after an upgrade changes it. A worker of an older version leaves the texts empty. */
export interface Build {
  readonly version: string
  readonly node: string
  readonly server?: ServerBuild | undefined
}

interface Worker {
  readonly pid: number | undefined
  readonly build: Build
  readonly isLeaving?: boolean
}

interface WorkerStats {
  readonly worker: Worker
  /** The index of its seat, its place among the workers (process/primary.ts); the smallest free number if its successor has the seat. */
  readonly number: number
  readonly values: Readonly<Values>
}

const NOTHING: Snapshot = { values: {}, sites: {} }

export class Totals {
  readonly counts = newCounts()
  /** Set by the primary process: the cause for which a start waits for its store, later the signing key and the last reload. */
  gauges: Partial<Record<FlatName, number>> = {}
  /** Running workers, in the order of their first snapshots. */
  readonly #living = new Map<Worker, { readonly seatIndex: number; readonly snapshot: Snapshot }>()
  /** The sum of ended workers' last snapshots. */
  readonly #retired = { values: {} as Values, sites: {} as Record<string, Values> }
  /** Sites with counts of their own, the first SITES_MAX that come. They stay, because no counter may shrink. */
  readonly #siteKeys = new Set<string>()
  readonly #readGauges: () => Values

  /** @param readGauges further values of the primary process, as they are now */
  constructor(readGauges: () => Values = () => ({})) {
    this.#readGauges = readGauges
  }

  /** Replaces what the running worker sent before. A worker of another version may send less than a Snapshot. */
  take(worker: Worker, sent: Partial<Snapshot>, seatIndex: number): void {
    const snapshot = { ...NOTHING, ...sent }
    for (const siteKey in snapshot.sites)
      if (siteKey !== '' && this.#siteKeys.size < SITES_MAX) this.#siteKeys.add(siteKey)
    this.#living.set(worker, { seatIndex, snapshot })
  }

  /** Keeps the ended worker's counters, and drops its gauges. */
  gone(worker: Worker): void {
    const { values, sites } = this.#living.get(worker)?.snapshot ?? NOTHING
    addCounts(this.#retired.values, values)
    this.#addSites(this.#retired.sites, sites)
    this.#living.delete(worker)
  }

  /** All counters, and running workers' gauges. */
  values(): Values {
    const values: Values = { ...valuesOf(this.counts), ...this.gauges, ...this.#readGauges() }
    for (const snapshot of this.#snapshots()) addCounts(values, snapshot.values)
    addGauges(values, this.workers())
    return values
  }

  /** Sums for each site key; those of sites without counts of their own are under ''. */
  sites(): Record<string, Values> {
    const sites: Record<string, Values> = {}
    for (const snapshot of this.#snapshots()) this.#addSites(sites, snapshot.sites)
    return sites
  }

  workers(): readonly WorkerStats[] {
    const newest = new Map<number, Worker>()
    for (const [worker, { seatIndex }] of this.#living) newest.set(seatIndex, worker)
    let free = 0
    const freeNumber = () => {
      while (newest.has(free)) free++
      return free++
    }
    return [...this.#living]
      .map(([worker, { seatIndex, snapshot }]) => ({
        worker,
        number: newest.get(seatIndex) === worker ? seatIndex : freeNumber(),
        values: snapshot.values,
      }))
      .sort((a, b) => a.number - b.number)
  }

  #snapshots(): Snapshot[] {
    return [this.#retired, ...[...this.#living.values()].map(({ snapshot }) => snapshot)]
  }

  #addSites(to: Record<string, Values>, sites: Snapshot['sites']): void {
    for (const [siteKey, counted] of Object.entries(sites)) {
      const key = this.#siteKeys.has(siteKey) ? siteKey : ''
      addCounts((to[key] ??= {}), counted)
    }
  }
}

function addCounts(to: Values, counted: Readonly<Values>): void {
  for (const name in counted) {
    const metric = metricOf(name)
    if (metric?.type === 'gauge') continue
    const ownName = metric?.bounds === undefined ? name : inOwnBucket(name, metric.bounds)
    to[ownName] = (to[ownName] ?? 0) + Math.max(0, numberOf(counted[name]))
  }
}

/** Maps the bound of another version to this version's first bound that is at least as high. */
function inOwnBucket(name: string, bounds: readonly number[]): string {
  const end = name.lastIndexOf(' ') + 1
  const bucket = name.slice(end)
  if (bucket === 'sum') return name
  return name.slice(0, end) + (bounds.find(bound => bound >= Number(bucket)) ?? Infinity)
}

/**
 * Adds workers' gauges as the table says: their sum (`inFlight`), their minimum (`storeUp`), or each worker's own number under the first
 * label, which is `worker` (its number) or `process` (worker- and its number). Gauges of the primary process are in `to` already.
 */
function addGauges(to: Values, workers: readonly WorkerStats[]): void {
  to.workers = workers.length
  for (const [key, { workers: combined, labels = [] }] of ROWS) {
    if (combined === 'sum' && labels.length === 0) to[key] = 0
    // Without workers, `storeUp` is not set here: none of them has lost the store.
    if (combined === 'min' && workers.length > 0)
      to[key] = Math.min(...workers.map(({ values }) => numberOf(values[key])))
  }
  for (const { number, values } of workers) {
    for (const name in values) {
      const [key, ...labels] = name.split(' ')
      const metric = metricOf(name)
      const label = metric?.labels?.[0]
      if (metric?.workers === 'sum') to[name] = (to[name] ?? 0) + numberOf(values[name])
      if (label === 'worker') to[[key, number, ...labels].join(' ')] = numberOf(values[name])
      if (label === 'process') to[`${key} worker-${number}`] = numberOf(values[name])
    }
  }
}

function numberOf(sent: unknown): number {
  return typeof sent === 'number' && Number.isFinite(sent) ? sent : 0
}
