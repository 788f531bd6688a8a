/** What all workers have counted, also those that are gone: kept in the primary. */

import type { StatsSink } from '../cluster.ts'
import type { StatsSnapshot } from './stats.ts'

export class Totals implements StatsSink {
  readonly #snapshots = new Map<string, StatsSnapshot>()

  take(worker: string, snapshot: StatsSnapshot): void {
    this.#snapshots.set(worker, snapshot)
  }

  gone(_worker: string): void {}
}
