/**
 * When API keys were last used. Each request notes the time in this worker's memory. About once a minute, and at the end, the
 * times are written to the store, so that no request costs a call.
 */

import type { SiteStore } from './store.ts'

/** API keys noted within a minute; with more in use, some are noted a minute later. */
const KEYS_MAX = 100_000
/** API keys in one call, so that no call occupies the store for long. */
const CHUNK = 1000

export class KeyUses {
  readonly #store: Pick<SiteStore, 'noteUses'>
  /** Unix milliseconds by API key id. */
  readonly #uses = new Map<string, number>()

  constructor(store: Pick<SiteStore, 'noteUses'>) {
    this.#store = store
  }

  /** @param now Unix milliseconds */
  note(keyId: string, now: number): void {
    if (this.#uses.size < KEYS_MAX || this.#uses.has(keyId)) this.#uses.set(keyId, now)
  }

  /** Times that could not be written are written the next time. */
  async write(): Promise<void> {
    const uses = [...this.#uses]
    for (let start = 0; start < uses.length; start += CHUNK) {
      const some = uses.slice(start, start + CHUNK)
      await this.#store.noteUses(new Map(some))
      for (const [keyId, atMs] of some) if (this.#uses.get(keyId) === atMs) this.#uses.delete(keyId)
    }
  }
}
