/** Names of sites, read from the store only while a dashboard is open. */

/** Reads names from the store. Sites without a known name are missing in the result. */
export type ReadNames = (siteKeys: readonly string[]) => Promise<ReadonlyMap<string, string>>

const FRESH_MS = 30_000
const NAMES_MAX = 2000
/** An answer waits this long for names. Then the dashboard shows site keys, and the names in a later answer. */
const WAIT_MS = 300

export class SiteNames {
  readonly #read: ReadNames
  readonly #now: () => number
  readonly #names = new Map<string, string>()
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

  /** Reads all names if they are old or some are missing. Resolves within WAIT_MS, whatever the store does. */
  async refresh(siteKeys: readonly string[]): Promise<void> {
    if (siteKeys.length === 0) return
    const ageMs = this.#now() - this.#readAtMs
    const areNamed = siteKeys.every(siteKey => this.#names.has(siteKey))
    if (ageMs < (areNamed ? FRESH_MS : FRESH_MS / 10)) return
    this.#reading ??= this.#readAll(siteKeys.slice(0, NAMES_MAX)).finally(() => {
      this.#reading = undefined
    })
    await Promise.race([this.#reading, new Promise(resolve => setTimeout(resolve, WAIT_MS))])
  }

  async #readAll(siteKeys: readonly string[]): Promise<void> {
    this.#readAtMs = this.#now()
    // Errors of the store are ignored here: the workers report its state, and names can wait.
    const names = await this.#read(siteKeys).catch(() => undefined)
    if (names === undefined) return
    this.#names.clear()
    for (const [siteKey, name] of names) this.#names.set(siteKey, name)
  }
}
