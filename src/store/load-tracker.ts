/**
 * How busy each site is, and what networks bring. Counts accepted proofs in this worker, and exchanges the counts through the
 * store once a second, for those of all workers and hosts (domain/load.ts, domain/networks.ts). A worker asks each second for
 * what is above its measure, so one of 64 that sees little of an attack knows as much of it as one of two.
 */

import { decayedRate, isAttack, type Load } from '../domain/load.ts'
import type { SiteRecord } from '../domain/site.ts'
import type { SourceWatch } from '../domain/sources.ts'
import type { SiteLoad, SiteStore, Store } from './store.ts'

/** Sites in one exchange; the busiest go first, the others wait. */
const REPORTS_MAX = 1000
const SITES_MAX = 100_000
/** Networks in the exchanges of all workers of a host: 90 to 170 KiB a second with their answers, if so many have proofs. */
const NETWORKS_MAX = 1500
const NETWORKS_MIN = 20

/** A site whose challenge is asked for is asked for again after so long. */
const ASKED_AGAIN_MS = 1000

const QUIET: Load = { rate: 0, usualRate: 0, growth: 1 }

interface Counts {
  again: number
  once: number
  readonly expected: number
}

type SiteOf = Pick<SiteRecord, 'siteKey' | 'usualRate'>
type LoadStore = Pick<Store, 'exchangeNetworks'> & { readonly sites: Pick<SiteStore, 'exchangeLoad'> }

export class LoadTracker {
  readonly #store: LoadStore
  readonly #sources: SourceWatch
  readonly #networksMax: number
  readonly #now: () => number
  readonly #wallMs: () => number
  readonly #counts = new Map<string, Counts>()
  readonly #loads = new Map<string, SiteLoad & { readonly atMs: number }>()

  /**
   * @param workers of this host
   * @param now milliseconds that never step back
   */
  constructor(
    store: LoadStore,
    sources: SourceWatch,
    workers: number,
    now: () => number,
    wallMs: () => number,
  ) {
    this.#store = store
    this.#sources = sources
    this.#networksMax = Math.max(NETWORKS_MIN, Math.floor(NETWORKS_MAX / workers))
    this.#now = now
    this.#wallMs = wallMs
  }

  /**
   * @param isAgain whether the proof's source comes again
   * @returns whether the proof is load of an attack
   */
  count(site: SiteOf, isAgain: boolean): boolean {
    this.#countsOf(site.siteKey, site.usualRate ?? 0)[isAgain ? 'again' : 'once']++
    return isAgain && isAttack(this.load(site))
  }

  /** In hundredths, so that logs and traces tell the very numbers that decide. */
  load({ siteKey, usualRate: expected = 0 }: SiteOf): Load {
    const load = this.#loads.get(siteKey)
    const elapsedMs = load === undefined ? Number.POSITIVE_INFINITY : this.#now() - load.atMs
    if (elapsedMs >= ASKED_AGAIN_MS) this.#countsOf(siteKey, expected)
    if (load === undefined) return QUIET
    const { usualRate, rate, growth } = load
    return { usualRate, growth, rate: hundredths(decayedRate(rate, elapsedMs)) }
  }

  /** To be called once a second. */
  async exchange(): Promise<void> {
    if (this.#counts.size === 0) return
    const reports = [...this.#counts]
      .map(([siteKey, counts]) => ({ siteKey, ...counts }))
      .sort((a, b) => b.again - a.again || b.once - a.once)
      .slice(0, REPORTS_MAX)
    // Deleted before the call: a report whose answer is lost may have been counted, so it is not sent again.
    for (const { siteKey } of reports) this.#counts.delete(siteKey)
    const loads = await this.#store.sites.exchangeLoad(reports)
    const atMs = this.#now()
    if (this.#loads.size > SITES_MAX) this.#loads.clear()
    for (const [index, { usualRate, growth, ...load }] of loads.entries()) {
      const known = { ...load, usualRate: hundredths(usualRate), growth: hundredths(growth), atMs }
      this.#loads.set(load.siteKey, known)
      if (isAttack(known)) this.#countsOf(load.siteKey, reports[index]!.expected)
    }
  }

  /** What the next exchange reports of a site; counts of zero only ask. */
  #countsOf(siteKey: string, expected: number): Counts {
    let counts = this.#counts.get(siteKey)
    if (counts === undefined) this.#counts.set(siteKey, (counts = { again: 0, once: 0, expected }))
    return counts
  }

  async exchangeNetworks(): Promise<void> {
    const { proofs, reports, take } = this.#sources.report(this.#networksMax)
    take(await this.#store.exchangeNetworks(proofs, reports), this.#wallMs())
  }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
