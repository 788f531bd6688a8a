/** What all workers have counted, also those that are gone: kept in the primary. */

import type { StatsSink } from '../cluster.ts'
import { SITES_MAX, type StatsSnapshot } from './snapshot.ts'
import { joinGauges, SnapshotSum } from './sum.ts'

export interface WorkerStats {
  readonly worker: string
  /**
   * Its slot. While its successor is there already, the least number that no other has: so numbers stay few over any
   * number of restarts.
   */
  readonly number: number
  readonly snapshot: StatsSnapshot
}

/** The last words of a worker may arrive after the news of its end: of this many they still count. */
const LATELY_GONE_MAX = 16
/** Of this many before them it is remembered that they were counted. */
const GONE_MAX = 1000

const NOTHING = new SnapshotSum().snapshot(joinGauges([]))

interface Living {
  readonly worker: string
  readonly index: number
  readonly snapshot: StatsSnapshot
}

export class Totals implements StatsSink {
  /** In the order they came. */
  readonly #living = new Map<string, Living>()
  /** Oldest first; undefined: already in the retired sum. */
  readonly #gone = new Map<string, StatsSnapshot | undefined>()
  readonly #retired = new SnapshotSum()
  /** In the order they came, so that no site that has been counted apart is ever counted among the others. */
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

  /** Its counters go on counting, its gauges do not. */
  gone(worker: string): void {
    if (this.#gone.has(worker)) return
    this.#gone.set(worker, this.#living.get(worker)?.snapshot ?? NOTHING)
    this.#living.delete(worker)
    this.#retire()
  }

  /** All workers added up. */
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

  /** The living ones, by number; their gauges are complete, whatever version they are. */
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

  /** Adds those that have been gone for longest to the retired sum, and forgets the names of the very first. */
  #retire(): void {
    const withSnapshot = [...this.#gone].filter(([, snapshot]) => snapshot !== undefined)
    for (const [worker, snapshot] of withSnapshot.slice(0, -LATELY_GONE_MAX)) {
      this.#retired.add(snapshot!, this.#siteKeys)
      this.#gone.set(worker, undefined)
    }
    for (const worker of [...this.#gone.keys()].slice(0, -GONE_MAX)) this.#gone.delete(worker)
  }
}
