/**
 * The sites and API keys that the primary process remembers, by reading every change. What the store has lost of them is counted, can be
 * exported, and goes to all workers, which serve it from memory. The dashboard reads them here too, so it makes no store list anything.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { isNotDemo } from '../demo/site.ts'
import type { CachedRecords, SiteRecord } from '../domain/site.ts'
import type { Logger } from '../log/logger.ts'
import { connectSites, reachSites } from '../store/open.ts'
import { SiteDirectory } from '../store/site-directory.ts'
import type { SiteStore } from '../store/store.ts'

const REFRESH_MS = 500
/** A store that hangs must not hold back what is remembered. */
const RECORDS_WAIT_MS = 1000
/** The store reports no change of a record that it has lost, so some are read again this often; a hundred take 5 ms. */
const REREAD_MS = 5000
const IDS_LOGGED_MAX = 10
const NO_RECORDS: CachedRecords = { sites: [], apiKeys: [] }

export class SiteMemory {
  readonly #log: Logger
  // Both are undefined until `reconnect`.
  #store: { close(): Promise<void> } | undefined
  #directory: SiteDirectory | undefined
  /** The refresh that runs. With two at once, each could forget which records the other failed to read. */
  #refreshing: Promise<void> | undefined
  /** What was lost at the last report, as JSON; empty if nothing was. */
  #lostBefore = ''
  /** Called with all lost records whenever they change. */
  onLost: (records: CachedRecords) => void = () => {}

  constructor(log: Logger) {
    this.#log = log
  }

  /** The number of remembered records that the store has lost, or has older copies of. */
  get lostCount(): number {
    return countOf(lostOf(this.#directory))
  }

  get isLoaded(): boolean {
    return this.#directory?.isLoaded === true
  }

  site(siteKey: string): SiteRecord | undefined {
    return this.#directory?.sites.cached(siteKey)?.record
  }

  /** Connects to the store of the settings. What is remembered stays, even if it is another Redis. */
  async reconnect(config: Config): Promise<void> {
    const [storeBefore, directoryBefore] = [this.#store, this.#directory]
    const store = connectSites(config)
    this.#store = store
    this.#directory = directoryOf(store, directoryBefore?.all)
    await storeBefore?.close()
    if (directoryBefore === undefined) void this.#refreshForever()
  }

  /** All remembered sites and API keys, with the last changes if the store answers at once; none while the service starts. */
  async records(): Promise<CachedRecords> {
    await Promise.race([this.#refresh(), sleep(RECORDS_WAIT_MS, undefined, { ref: false })])
    return this.#directory?.all ?? NO_RECORDS
  }

  /** Counts the remembered records that the store of `config` lacks. Rejects if the store does not answer. */
  async countMissingIn(config: Config): Promise<number> {
    const store = await reachSites(config)
    try {
      const directory = directoryOf(store, this.#directory?.all)
      await directory.refresh()
      return countOf(lostOf(directory))
    } finally {
      await store.close()
    }
  }

  /** Never rejects: workers report a store that is away. */
  #refresh(): Promise<void> {
    const refresh = async () => this.#directory?.refresh().catch(() => {})
    this.#refreshing ??= refresh().finally(() => (this.#refreshing = undefined))
    return this.#refreshing
  }

  async #refreshForever(): Promise<void> {
    for (let ms = 0; ; ms += REFRESH_MS) {
      await this.#refresh()
      if (ms % REREAD_MS === 0) await this.#directory!.refreshSome() // never rejects
      this.#report()
      await sleep(REFRESH_MS, undefined, { ref: false })
    }
  }

  #report(): void {
    const lost = lostOf(this.#directory)
    const hasLost = countOf(lost) > 0
    const [before, now] = [this.#lostBefore, hasLost ? JSON.stringify(lost) : '']
    if (now !== before) this.onLost(lost)
    this.#lostBefore = now
    if (hasLost === (before !== '')) return
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
  const directory = new SiteDirectory(store, () => performance.now(), {
    hasTestKeys: false,
    isOfPrimary: true,
  })
  directory.remember(records)
  return directory
}

const countOf = ({ sites, apiKeys }: CachedRecords) => sites.length + apiKeys.length

/** Leaves out the demo's sites, which each start makes anew. */
function lostOf(directory: SiteDirectory | undefined): CachedRecords {
  const { sites, apiKeys } = directory?.lost ?? NO_RECORDS
  return { sites: sites.filter(isNotDemo), apiKeys: apiKeys.filter(isNotDemo) }
}
