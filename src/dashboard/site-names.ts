/** Names of sites, read from the store while a dashboard is open. */

/** Resolves with names by site key, without sites that the store does not have. */
export type ReadNames = (siteKeys: readonly string[]) => Promise<ReadonlyMap<string, string>>

const FRESH_MS = 30_000
const NAMES_MAX = 2000
/** An answer waits this long for names. Without them it shows site keys. */
const WAIT_MS = 300

export class SiteNames {
  readonly #read: ReadNames
  readonly #now: () => number
  /** Names by site key; undefined if the store has no such site. */
  readonly #names = new Map<string, string | undefined>()
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  /** @param now monotonic milliseconds */
  constructor(read: ReadNames, now: () => number = () => performance.now()) {
    this.#read = read
    this.#now = now
  }

  get(siteKey: string): string | undefined {
    return this.#names.get(siteKey)
  }

  isUnknown(siteKey: string): boolean {
    return this.#names.has(siteKey) && this.get(siteKey) === undefined
  }

  /** Reads names that are old or missing. Resolves within WAIT_MS. */
  async refresh(siteKeys: readonly string[]): Promise<void> {
    if (siteKeys.length === 0) return
    const isComplete = siteKeys.every(siteKey => this.#names.has(siteKey))
    if (this.#now() - this.#readAtMs < (isComplete ? FRESH_MS : FRESH_MS / 10)) return
    this.#reading ??= this.#readAll(siteKeys.slice(0, NAMES_MAX)).finally(() => {
      this.#reading = undefined
    })
    await Promise.race([this.#reading, new Promise(resolve => setTimeout(resolve, WAIT_MS))])
  }

  async #readAll(siteKeys: readonly string[]): Promise<void> {
    this.#readAtMs = this.#now()
    const names = await this.#read(siteKeys).catch(() => undefined) // The problems of the dashboard tell of a store that is away.
    if (names === undefined) return
    this.#names.clear()
    for (const siteKey of siteKeys) this.#names.set(siteKey, names.get(siteKey))
  }
}
