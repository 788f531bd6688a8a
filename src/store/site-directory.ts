/**
 * A worker's bounded cache of sites and API keys. While the store is away, the last known copies are used.
 */

import {
  type ApiKeyRecord,
  compileSite,
  type KnownRecords,
  type Site,
  type TestOutcome,
} from '../domain/site.ts'
import { TEST_KEYS, testApiKey, testSite } from '../domain/test-keys.ts'
import type { Done, SiteStore } from './store.ts'

const KNOWN_MAX = 100_000
const UNKNOWN_MAX = 10_000
const UNKNOWN_MS = 1000
/** Reads of the store under way; a flood of made-up keys must not queue without bound. */
const LOADS_MAX = 1000
const REFRESH_CHUNK = 200
/** Cached records that each refresh reads although nothing says that they changed: so a single lost one is noticed too. */
const ROUND_CHUNK = 100

/** null: known not to exist. undefined: unknown, because the store could not be read. */
export type Found<Thing> = Thing | null | undefined

/** Numbers of cached records that the store lacks. */
export interface Lost {
  readonly sites: number
  readonly apiKeys: number
}

export class SiteDirectory {
  readonly sites: RecordCache<Site>
  readonly apiKeys: RecordCache<ApiKeyRecord>
  readonly #store: SiteStore
  readonly #onLost: ((lost: Lost) => void) | undefined
  #revision: number | undefined
  #hadLost = false

  /**
   * @param hasTestKeys whether the published test keys are known, which the store never sees
   * @param hiddenSiteKey of a site that is treated as unknown, with its API keys, though the store has the site
   * @param onLost called when a refresh finds that the store lacks cached records, and when the store has all of them again
   */
  constructor(
    store: SiteStore,
    now: () => number,
    hasTestKeys: boolean,
    hiddenSiteKey?: string,
    onLost?: (lost: Lost) => void,
  ) {
    this.#store = store
    this.#onLost = onLost
    const readSite = async (siteKey: string) => {
      const record = siteKey === hiddenSiteKey ? undefined : await store.readSite(siteKey)
      return record === undefined ? undefined : compileSite(record)
    }
    const tests = hasTestKeys ? (Object.keys(TEST_KEYS) as TestOutcome[]) : []
    const testSites = tests.map(testSite).map(site => [site.record.siteKey, site] as const)
    const testApiKeys = tests.map(testApiKey).map(apiKey => [apiKey.id, apiKey] as const)
    this.sites = new RecordCache(readSite, now, new Map(testSites))
    this.apiKeys = new RecordCache(id => store.readApiKey(id), now, new Map(testApiKeys))
  }

  /** Cached records that the store lacked when they were last read. */
  get lost(): Lost {
    return { sites: this.sites.lost, apiKeys: this.apiKeys.lost }
  }

  get records(): KnownRecords {
    return { sites: this.sites.known.map(({ record }) => record), apiKeys: this.apiKeys.known }
  }

  /** Reads the records that changed since the last call, and some of the others. */
  async refresh(): Promise<void> {
    try {
      await this.#refreshChanged()
      await Promise.all([this.sites.refreshSome(), this.apiKeys.refreshSome()])
    } finally {
      const { lost } = this
      const hasLost = lost.sites + lost.apiKeys > 0
      if (hasLost !== this.#hadLost) this.#onLost?.(lost)
      this.#hadLost = hasLost
    }
  }

  /** The revision moves on only when all changed records were read. */
  async #refreshChanged(): Promise<void> {
    const changes = await this.#store.changesSince(this.#revision)
    // Records that were cached before the first successful poll may have changed meanwhile.
    const mayAllHaveChanged = changes.isReplaced || this.#revision === undefined
    if (mayAllHaveChanged) await Promise.all([this.sites.refreshAll(), this.apiKeys.refreshAll()])
    else await Promise.all([this.sites.refresh(changes.siteKeys), this.apiKeys.refresh(changes.apiKeyIds)])
    this.#revision = changes.revision
  }
}

export class RecordCache<Thing> {
  readonly #read: (key: string) => Promise<Thing | undefined>
  readonly #now: () => number
  /** Those of no store. */
  readonly #fixed: ReadonlyMap<string, Thing>
  readonly #known = new Map<string, Thing>()
  /** Keys that were not found, with the time from which the store is asked again. */
  readonly #unknown = new Map<string, number>()
  readonly #loads = new Map<string, Done<Found<Thing>>[]>()
  /** Known keys that the store lacks. */
  readonly #lost = new Set<string>()
  /** What is left of the present round over the known keys. */
  #round: string[] = []

  constructor(
    read: (key: string) => Promise<Thing | undefined>,
    now: () => number,
    fixed: ReadonlyMap<string, Thing>,
  ) {
    this.#read = read
    this.#now = now
    this.#fixed = fixed
  }

  get lost(): number {
    return this.#lost.size
  }

  get known(): Thing[] {
    return [...this.#known.values()]
  }

  /** The thing if it is cached, null if it is known not to exist, undefined if `load` must be called. */
  cached(key: string): Thing | null | undefined {
    const known = this.#fixed.get(key) ?? this.#known.get(key)
    if (known !== undefined) return known
    const askAgainAt = this.#unknown.get(key)
    return askAgainAt !== undefined && askAgainAt > this.#now() ? null : undefined
  }

  load(key: string, done: Done<Found<Thing>>): void {
    const waiting = this.#loads.get(key)
    if (waiting !== undefined) {
      waiting.push(done)
      return
    }
    if (this.#loads.size >= LOADS_MAX) {
      done(undefined)
      return
    }
    this.#loads.set(key, [done])
    this.#read(key).then(
      thing => {
        this.#keep(key, thing)
        this.#answer(key, thing ?? null)
      },
      () => this.#answer(key, undefined),
    )
  }

  #answer(key: string, found: Found<Thing>): void {
    const waiting = this.#loads.get(key) ?? []
    this.#loads.delete(key)
    for (const done of waiting) done(found)
  }

  /**
   * Reads cached records anew. Nothing is ever deleted from a store (sites are disabled, keys revoked). So a missing record
   * was lost with the store's memory, and its last known copy stays in use.
   */
  async refresh(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#unknown.delete(key)
    const cached = keys.filter(key => this.#known.has(key))
    let failure: PromiseRejectedResult | undefined
    for (let start = 0; start < cached.length; start += REFRESH_CHUNK) {
      const chunk = cached.slice(start, start + REFRESH_CHUNK)
      const results = await Promise.allSettled(chunk.map(key => this.#refreshOne(key)))
      failure ??= results.find(result => result.status === 'rejected')
    }
    // Thrown after everything else was read: the next refresh begins anew.
    if (failure !== undefined) throw failure.reason
  }

  refreshAll(): Promise<void> {
    this.#unknown.clear()
    return this.refresh([...this.#known.keys()])
  }

  async refreshSome(): Promise<void> {
    if (this.#round.length === 0) this.#round = [...this.#known.keys()]
    await this.refresh(this.#round.splice(-ROUND_CHUNK))
  }

  async #refreshOne(key: string): Promise<void> {
    const thing = await this.#read(key)
    if (thing !== undefined) this.#keep(key, thing)
    else if (this.#known.has(key)) this.#lost.add(key)
  }

  #keep(key: string, thing: Thing | undefined): void {
    this.#lost.delete(key)
    if (thing === undefined) {
      this.#known.delete(key)
      this.#unknown.delete(key)
      bound(this.#unknown, UNKNOWN_MAX)
      this.#unknown.set(key, this.#now() + UNKNOWN_MS)
    } else {
      this.#unknown.delete(key)
      if (!this.#known.has(key)) this.#lost.delete(bound(this.#known, KNOWN_MAX) ?? '')
      this.#known.set(key, thing)
    }
  }
}

/** Makes room for one more entry by dropping the oldest, which is returned. */
function bound(map: Map<string, unknown>, sizeMax: number): string | undefined {
  if (map.size < sizeMax) return undefined
  const [oldest] = map.keys()
  map.delete(oldest!)
  return oldest
}
