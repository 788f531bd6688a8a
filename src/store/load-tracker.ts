/**
 * How busy each site is. Counts in this worker the accepted proofs of addresses and networks that come again, and exchanges
 * the counts through the store once a second.
 */

import { decayedRate } from '../domain/load.ts'
import type { LoadReport, SiteLoad, Store } from './store.ts'

/** Sites in one exchange; the busiest go first, the others wait. */
const REPORTS_MAX = 1000
const SITES_MAX = 100_000

const QUIET: SiteLoad = { siteKey: '', rate: 0, usualRate: 0 }

export class LoadTracker {
  readonly #store: Pick<Store, 'exchangeLoad'>
  readonly #now: () => number
  readonly #counts = new Map<string, number>()
  readonly #loads = new Map<string, SiteLoad & { readonly atMs: number }>()

  constructor(store: Pick<Store, 'exchangeLoad'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  count(siteKey: string): void {
    this.#counts.set(siteKey, (this.#counts.get(siteKey) ?? 0) + 1)
  }

  /** In hundredths, so that logs and traces tell the very numbers that decide. */
  load(siteKey: string): SiteLoad {
    const load = this.#loads.get(siteKey)
    if (load === undefined) return QUIET
    const { usualRate, rate, atMs } = load
    return { siteKey, usualRate, rate: hundredths(decayedRate(rate, this.#now() - atMs)) }
  }

  /** To be called once a second. */
  async exchange(): Promise<void> {
    if (this.#counts.size === 0) return
    const reports: LoadReport[] = [...this.#counts]
      .map(([siteKey, proofs]) => ({ siteKey, proofs }))
      .sort((a, b) => b.proofs - a.proofs)
      .slice(0, REPORTS_MAX)
    // Deleted before the call: a report whose answer is lost may have been counted, so it is not sent again.
    for (const { siteKey } of reports) this.#counts.delete(siteKey)
    const loads = await this.#store.exchangeLoad(reports)
    const atMs = this.#now()
    if (this.#loads.size > SITES_MAX) this.#loads.clear()
    for (const load of loads)
      this.#loads.set(load.siteKey, { ...load, usualRate: hundredths(load.usualRate), atMs })
  }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
