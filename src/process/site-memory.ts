/**
 * The sites and API keys of Redis that the primary process remembers, by reading every change. What Redis has lost of them is counted,
 * can be exported, and goes to all workers, which serve it from memory.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { DEMO_SITE_KEYS } from '../demo/site.ts'
import type { CachedRecords } from '../domain/site.ts'
import type { Logger } from '../log/logger.ts'
import { connectSites, openSiteStore } from '../store/open.ts'
import { SiteDirectory } from '../store/site-directory.ts'
import type { SiteStore } from '../store/store.ts'

const REFRESH_MS = 500
/** The store reports no change of a record that it has lost, so some are read again this often; a hundred take 5 ms. */
const REREAD_MS = 5000
const IDS_LOGGED_MAX = 10
const NO_RECORDS: CachedRecords = { sites: [], apiKeys: [] }

export class SiteMemory {
  readonly #log: Logger
  /** undefined until `reconnect`. */
  #config: Config | undefined
  /** With the embedded store, there is no connection, and nothing is remembered. */
  #store: { close(): Promise<void> } | undefined
  #directory: SiteDirectory | undefined
  #lostBefore = 0
  /** Called with all lost records whenever their number changes. */
  onLost: (records: CachedRecords) => void = () => {}

  constructor(log: Logger) {
    this.#log = log
  }

  /** The number of remembered records that the store has lost, or has older copies of. */
  get lostCount(): number {
    return countOf(lostOf(this.#directory))
  }

  /** Connects to the Redis of the settings. What is remembered stays, even if it is another server. */
  async reconnect(config: Config): Promise<void> {
    this.#config = config
    if (config.redis === undefined) return // The kind of store changes only with a restart.
    const [storeBefore, directoryBefore] = [this.#store, this.#directory]
    const store = connectSites(config)
    this.#store = store
    this.#directory = directoryOf(store, directoryBefore?.all)
    await storeBefore?.close()
    if (directoryBefore === undefined) void this.#refreshForever()
  }

  /** All sites and API keys: the remembered ones, or with the embedded store what the store has. */
  async records(): Promise<CachedRecords> {
    if (this.#directory !== undefined) return this.#directory.all
    if (this.#config === undefined) return NO_RECORDS // the service is starting
    return withSites(this.#config, async store => ({
      sites: await store.listSites(),
      apiKeys: await store.listApiKeys(),
    }))
  }

  /** Counts the remembered records that the store of `config` lacks. Rejects if the store does not answer. */
  countMissingIn(config: Config): Promise<number> {
    return withSites(config, async store => {
      const directory = directoryOf(store, this.#directory?.all)
      await directory.refresh()
      return countOf(lostOf(directory))
    })
  }

  async #refreshForever(): Promise<void> {
    for (let ms = 0; ; ms += REFRESH_MS) {
      const directory = this.#directory!
      await directory.refresh().catch(() => {}) // workers report a store that is away
      if (ms % REREAD_MS === 0) await directory.refreshSome() // never rejects
      this.#report()
      await sleep(REFRESH_MS, undefined, { ref: false })
    }
  }

  #report(): void {
    const lost = lostOf(this.#directory)
    const [before, now] = [this.#lostBefore, countOf(lost)]
    if (now !== before) this.onLost(lost)
    this.#lostBefore = now
    const hasLost = now > 0
    if (hasLost === before > 0) return
    const text = hasLost
      ? 'the store has lost sites or API keys, or has older copies of them; all workers serve them from memory, and a restart would refuse them or serve the older ones: restart nothing before they are restored'
      : 'the store has all sites and API keys again'
    const counts = { sites: lost.sites.length, apiKeys: lost.apiKeys.length }
    const ids = [...lost.sites.map(({ siteKey }) => siteKey), ...lost.apiKeys.map(({ id }) => id)]
    if (hasLost) this.#log.error({ ...counts, ids: ids.slice(0, IDS_LOGGED_MAX) }, text)
    else this.#log.info(counts, text)
  }
}

function directoryOf(store: SiteStore, records = NO_RECORDS): SiteDirectory {
  const directory = new SiteDirectory(store, () => performance.now(), { hasTestKeys: false, isCopy: true })
  directory.remember(records)
  return directory
}

const countOf = ({ sites, apiKeys }: CachedRecords) => sites.length + apiKeys.length

/** Leaves out the demo's sites, which each start makes anew. */
function lostOf(directory: SiteDirectory | undefined): CachedRecords {
  const { sites, apiKeys } = directory?.lost ?? NO_RECORDS
  const isKept = ({ siteKey }: { readonly siteKey: string }) => !DEMO_SITE_KEYS.has(siteKey)
  return { sites: sites.filter(isKept), apiKeys: apiKeys.filter(isKept) }
}

async function withSites<Result>(
  config: Config,
  read: (store: SiteStore) => Promise<Result>,
): Promise<Result> {
  const store = await openSiteStore(config)
  try {
    return await read(store)
  } finally {
    await store.close()
  }
}
