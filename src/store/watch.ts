/** Warns when the store's clock differs from this host's, or when it evicts keys. */

import { CLOCK_SKEW_MS, CLOCK_WARNING_SECONDS } from '../domain/clock.ts'
import type { StoreClient } from './client/store-client.ts'
import type { StoreStatus } from './store.ts'

/** The operator is warned above each of these differences between the clocks. */
const WARNING_SECONDS = [CLOCK_WARNING_SECONDS, CLOCK_SKEW_MS / 1000]

type Report = (level: 'info' | 'warn' | 'error', about: object, text: string) => void

export class StoreWatch {
  readonly #store: Pick<StoreClient, 'status'>
  readonly #report: Report
  /** undefined until the store has answered. */
  last: StoreStatus | undefined

  constructor(store: Pick<StoreClient, 'status'>, report: Report) {
    this.#store = store
    this.#report = report
  }

  /** Call once a minute, and whenever the store may have lost its memory. Rejects if the store does not answer. */
  async check(): Promise<void> {
    const status = await this.#store.status()
    const last = this.last
    this.last = status
    this.#reportOnClock(status.clockAheadSeconds, last?.clockAheadSeconds ?? 0)
    this.#reportOnEviction(status, last)
  }

  #reportOnClock(aheadSeconds: number, before: number): void {
    const severityOf = (seconds: number) => WARNING_SECONDS.filter(limit => Math.abs(seconds) > limit).length
    const severity = severityOf(aheadSeconds)
    if (severity === severityOf(before)) return
    if (severity > 0)
      this.#report(
        'warn',
        { aheadSeconds },
        'the clocks of this host and of the store are apart: from 5 s on, hosts refuse what others issued; keep both by NTP',
      )
    else this.#report('info', { aheadSeconds }, 'the clocks of this host and of the store agree again')
  }

  /** Warns of what has changed since the last check. */
  #reportOnEviction({ evictsBy, evictedKeys }: StoreStatus, last: StoreStatus | undefined): void {
    if (last !== undefined && evictedKeys > last.evictedKeys)
      this.#report(
        'error',
        { evictedKeys: evictedKeys - last.evictedKeys, policy: evictsBy },
        'Redis has evicted keys, so what was issued before is refused: raise maxmemory, and set maxmemory-policy noeviction',
      )
    else if (evictsBy !== undefined && evictsBy !== last?.evictsBy)
      this.#report(
        'warn',
        { policy: evictsBy },
        'Redis may evict keys: set maxmemory-policy noeviction, or what was issued before is refused with each eviction',
      )
  }
}
