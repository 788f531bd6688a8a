/**
 * A cache of sites and API keys, in each worker and in the primary process (process/site-memory.ts). Copies stay in use while the
 * store is away, or has lost them.
 */

import { setImmediate as nextTick } from 'node:timers/promises'
import {
  type ApiKeyRecord,
  type CachedRecords,
  compileSite,
  type Site,
  type TestOutcome,
  updatedAtOf,
} from '../domain/site.ts'
import { TEST_KEYS, testApiKey, testSite } from '../domain/test-keys.ts'
import type { Done, SiteStore } from './store.ts'

/** A worker caches this many sites (about 2 KiB each) and as many API keys, and reads others when they are asked for. */
const CACHED_MAX = 100_000
const UNKNOWN_MAX = 10_000
/** The store is not asked again within this time for a key that it lacks. */
const UNKNOWN_MS = 1000
/** Keys that are read at once. With more, from a flood of made-up keys, a load fails as if the store were away. */
const LOADS_MAX = 1000
/** Records that are read between two ticks of the event loop, in which requests are answered. */
const REFRESH_CHUNK = 200
/** Records that one `refreshSome` reads. No change reports that the store lost a single record, so all are read again and again. */
const REREAD_CHUNK = 100

/** null if there is no such record; undefined if the store must be asked, or could not be read. */
export type Found<Thing> = Thing | null | undefined

interface DirectoryOptions {
  readonly hasTestKeys: boolean
  /** Keys of sites that are answered as unknown. */
  readonly hidden?: ReadonlySet<string> | undefined
  /** The primary process remembers all records. No request asks there, so new ones are taken as they are (see `#unasked`). */
  readonly isOfPrimary?: boolean
}

export class SiteDirectory {
  readonly sites: RecordCache<Site>
  readonly apiKeys: RecordCache<ApiKeyRecord>
  readonly #store: SiteStore
  readonly #isOfPrimary: boolean
  #revision: number | undefined
  /** True once everything that the store had at the first `refresh` was read, but for records that it could not read (`#failed`). */
  isLoaded = false

  constructor(
    store: SiteStore,
    now: () => number,
    { hasTestKeys, hidden, isOfPrimary = false }: DirectoryOptions,
  ) {
    this.#store = store
    this.#isOfPrimary = isOfPrimary
    const readSite = async (siteKey: string) => {
      const record = hidden?.has(siteKey) ? undefined : await store.readSite(siteKey)
      return record === undefined ? undefined : compileSite(record)
    }
    const tests = hasTestKeys ? (Object.keys(TEST_KEYS) as TestOutcome[]) : []
    const testSites = tests.map(testSite).map(site => [site.record.siteKey, site] as const)
    const testApiKeys = tests.map(testApiKey).map(apiKey => [apiKey.id, apiKey] as const)
    const common = { now, cachedMax: isOfPrimary ? Number.POSITIVE_INFINITY : CACHED_MAX }
    this.sites = new RecordCache({
      ...common,
      read: readSite,
      recordOf: ({ record }) => record,
      testThings: new Map(testSites),
    })
    this.apiKeys = new RecordCache({
      ...common,
      read: id => store.readApiKey(id),
      recordOf: apiKey => apiKey,
      testThings: new Map(testApiKeys),
    })
  }

  get all(): CachedRecords {
    return { sites: this.sites.all.map(({ record }) => record), apiKeys: this.apiKeys.all }
  }

  /** Cached records that the store lacks, unless they are deleted, or has an older copy of. */
  get lost(): CachedRecords {
    return { sites: this.sites.lost.map(({ record }) => record), apiKeys: this.apiKeys.lost }
  }

  remember({ sites, apiKeys }: CachedRecords): void {
    for (const site of sites) this.sites.remember(site.siteKey, compileSite(site))
    for (const apiKey of apiKeys) this.apiKeys.remember(apiKey.id, apiKey)
  }

  /** Reads what changed; at first, everything. */
  async refresh(): Promise<void> {
    for (;;) {
      const since = this.#revision
      const changes = await this.#store.changesSince(since ?? 0)
      // Records that were cached before the first answer may have changed since.
      if (changes.isReplaced || since === undefined)
        await Promise.all([this.sites.refreshAll(), this.apiKeys.refreshAll()])
      const areUnasked = this.isLoaded && !this.#isOfPrimary
      await Promise.all([
        this.sites.refresh(changes.siteKeys, areUnasked),
        this.apiKeys.refresh(changes.apiKeyIds, areUnasked),
      ])
      this.#revision = changes.revision
      if (changes.revision === since) break
    }
    this.isLoaded = true
  }

  async refreshSome(): Promise<void> {
    await Promise.all([this.sites.refreshSome(), this.apiKeys.refreshSome()])
  }
}

type StoredRecord = Parameters<typeof updatedAtOf>[0] & { readonly deletedAt?: number }

interface CacheOptions<Thing> {
  readonly read: (key: string) => Promise<Thing | undefined>
  readonly recordOf: (thing: Thing) => StoredRecord
  readonly now: () => number
  /** Those of the published test keys, which are in no store. */
  readonly testThings: ReadonlyMap<string, Thing>
  readonly cachedMax: number
}

export class RecordCache<Thing> {
  readonly #options: CacheOptions<Thing>
  readonly #cached = new Map<string, Thing>()
  /** Keys that the store lacks, and the time by `now`, in milliseconds, from which it is asked again. */
  readonly #unknown = new Map<string, number>()
  /** What `load` answers, by the key that is being read. */
  readonly #loads = new Map<string, Promise<Found<Thing>>>()
  /** Keys of cached records that the store lacks, unless they are deleted, or has an older copy of. */
  readonly #lost = new Set<string>()
  /**
   * Keys of new records that `refresh` cached before any request asked for them. At the first request, `load` reads such a record once
   * more: whoever makes an API key, revokes it at once and tries it must be refused, as if nothing were cached.
   */
  readonly #unasked = new Set<string>()
  /** Keys of changed records that could not be read, for the next `refresh`. */
  #failed: readonly string[] = []
  /** Keys that `refreshSome` has yet to read before it starts over with all. */
  #unread: string[] = []

  constructor(options: CacheOptions<Thing>) {
    this.#options = options
  }

  get lost(): Thing[] {
    return [...this.#lost].map(key => this.#cached.get(key)!)
  }

  get all(): Thing[] {
    return [...this.#cached.values()]
  }

  /** Answers without the store; if that is undefined, call `load`. */
  cached(key: string): Found<Thing> {
    const found = this.#options.testThings.get(key) ?? this.#cached.get(key)
    if (found !== undefined) return this.#unasked.has(key) ? undefined : found
    const askAgainAt = this.#unknown.get(key)
    return askAgainAt !== undefined && askAgainAt > this.#options.now() ? null : undefined
  }

  load(key: string, done: Done<Found<Thing>>): void {
    let load = this.#loads.get(key)
    if (load === undefined) {
      if (this.#loads.size >= LOADS_MAX) return done(undefined)
      load = this.#loadOne(key)
      this.#loads.set(key, load)
    }
    void load.then(done)
  }

  async #loadOne(key: string): Promise<Found<Thing>> {
    const isRead = await this.#readOne(key)
      .then(() => true)
      .catch(() => false)
    this.#loads.delete(key)
    this.#unasked.delete(key)
    return this.#cached.get(key) ?? (isRead ? null : undefined)
  }

  /** Caches a record that another process had, even if the store has lost it. */
  remember(key: string, thing: Thing): void {
    this.#unasked.delete(key)
    this.#keep(key, thing)
  }

  /**
   * Reads cached records again, and others if they fit. What cannot be read is read with the next call.
   *
   * @param areUnasked true if no request has asked for the others yet
   */
  async refresh(keys: readonly string[], areUnasked = false): Promise<void> {
    for (const key of keys) this.#unknown.delete(key)
    let spare = this.#options.cachedMax - this.#cached.size
    const wanted = keys.filter(key => this.#cached.has(key) || spare-- > 0)
    if (areUnasked) for (const key of wanted) if (!this.#cached.has(key)) this.#unasked.add(key)
    this.#failed = await this.#readAll([...new Set([...this.#failed, ...wanted])])
  }

  refreshAll(): Promise<void> {
    this.#unknown.clear()
    return this.refresh([...this.#cached.keys()])
  }

  async refreshSome(): Promise<void> {
    if (this.#unread.length === 0) this.#unread = [...this.#cached.keys()]
    await this.#readAll(this.#unread.splice(-REREAD_CHUNK))
  }

  /** @returns keys that could not be read */
  async #readAll(keys: readonly string[]): Promise<string[]> {
    const failed: string[] = []
    for (let start = 0; start < keys.length; start += REFRESH_CHUNK) {
      const chunk = keys.slice(start, start + REFRESH_CHUNK)
      await Promise.all(chunk.map(key => this.#readOne(key).catch(() => failed.push(key))))
      await nextTick()
    }
    return failed
  }

  async #readOne(key: string): Promise<void> {
    this.#keep(key, await this.#options.read(key))
  }

  #keep(key: string, thing: Thing | undefined): void {
    const before = this.#cached.get(key)
    const recordBefore = before && this.#options.recordOf(before)
    const isOlder =
      recordBefore && thing && updatedAtOf(this.#options.recordOf(thing)) < updatedAtOf(recordBefore)
    // The copy stays in use: a deleted record would have left one with `deletedAt`, and a revoked API key stays revoked.
    if (isOlder || (recordBefore && thing === undefined)) {
      // Nothing of a deleted record needs to be restored if the store lacks it altogether.
      if (isOlder || recordBefore.deletedAt === undefined) this.#lost.add(key)
      else this.#lost.delete(key)
      return
    }
    this.#lost.delete(key)
    this.#unknown.delete(key)
    if (thing === undefined) {
      this.#unasked.delete(key)
      makeRoom(this.#unknown, UNKNOWN_MAX)
      this.#unknown.set(key, this.#options.now() + UNKNOWN_MS)
    } else {
      const evicted = before === undefined ? makeRoom(this.#cached, this.#options.cachedMax) : undefined
      if (evicted !== undefined) for (const keys of [this.#lost, this.#unasked]) keys.delete(evicted)
      this.#cached.set(key, thing)
    }
  }
}

/** Drops the oldest entry of a full map. @returns its key */
function makeRoom(map: Map<string, unknown>, sizeMax: number): string | undefined {
  if (map.size < sizeMax) return undefined
  const [oldest] = map.keys()
  map.delete(oldest!)
  return oldest
}
