/** What all workers have counted, including workers that have ended: kept in the primary process. */

import { SITES_MAX, type StatsSink, type StatsSnapshot } from './snapshot.ts'
import { joinGauges, SnapshotSum } from './sum.ts'

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

export class Totals implements StatsSink {
  /** In the order of their first snapshot. */
  readonly #living = new Map<string, Living>()
  /** Oldest first; undefined: already part of the retired sum. */
  readonly #gone = new Map<string, StatsSnapshot | undefined>()
  readonly #retired = new SnapshotSum()
  /** In order of appearance, so that a site once counted separately stays so. */
  readonly #siteKeys = new Set<string>()

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

  /** The sum over all workers. */
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
