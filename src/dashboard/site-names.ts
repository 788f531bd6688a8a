/** What the dashboard calls sites: their names, with the bits by which they are raised. Read only while somebody looks. */

import { type CachedRecords, raisedBits } from '../domain/site.ts'

/** The part of process/site-memory.ts that the dashboard needs. */
export interface SiteRecords {
  records(): Promise<Pick<CachedRecords, 'sites'>>
}

const FRESH_MS = 10_000
/** An answer waits this long for names. Without them it shows site keys. */
const WAIT_MS = 300

export class SiteNames {
  readonly #source: SiteRecords
  readonly #now: () => number
  #names: ReadonlyMap<string, string> = new Map()
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  /** @param now monotonic milliseconds */
  constructor(source: SiteRecords, now: () => number = () => performance.now()) {
    this.#source = source
    this.#now = now
  }

  get(siteKey: string): string | undefined {
    return this.#names.get(siteKey)
  }

  /** False also while no names are known: the store may be away. */
  isUnknown(siteKey: string): boolean {
    return this.#names.size > 0 && !this.#names.has(siteKey)
  }

  /** Reads the names if they are old; calls during a read wait for it. Resolves within WAIT_MS. */
  async refresh(): Promise<void> {
    if (this.#now() - this.#readAtMs < FRESH_MS) return
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined))
    await Promise.race([this.#reading, new Promise(resolve => setTimeout(resolve, WAIT_MS))])
  }

  async #read(): Promise<void> {
    const { sites } = await this.#source.records().catch(() => ({ sites: [] })) // the workers log a store that is away
    this.#readAtMs = this.#now()
    // Without sites, most likely the store failed or lost them, so the former names stay.
    if (sites.length === 0) return
    this.#names = new Map(
      sites.map(site => {
        const bits = raisedBits(site, Date.now())
        return [site.siteKey, bits === 0 ? site.name : `${site.name} (raised by ${bits})`]
      }),
    )
  }
}
