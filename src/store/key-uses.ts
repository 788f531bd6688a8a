/**
 * When API keys were last used. Requests note it in the worker's memory, which is written to the store about once a minute and
 * at the end, so no request costs a store call.
 */

import type { SiteStore } from './store.ts'

/** With more keys in use, some are noted a minute later. */
const KEYS_MAX = 100_000
/** Per call, so that none occupies the store for long. */
const CHUNK = 1000

export class KeyUses {
  readonly #store: Pick<SiteStore, 'noteUses'>
  /** Unix milliseconds. */
  readonly #uses = new Map<string, number>()

  constructor(store: Pick<SiteStore, 'noteUses'>) {
    this.#store = store
  }

  /** @param now Unix milliseconds */
  note(keyId: string, now: number): void {
    if (this.#uses.size < KEYS_MAX || this.#uses.has(keyId)) this.#uses.set(keyId, now)
  }

  /** What cannot be written is written next time. */
  async write(): Promise<void> {
    const uses = [...this.#uses]
    for (let start = 0; start < uses.length; start += CHUNK) {
      const some = uses.slice(start, start + CHUNK)
      await this.#store.noteUses(new Map(some))
      for (const [keyId, atMs] of some) if (this.#uses.get(keyId) === atMs) this.#uses.delete(keyId)
    }
  }
}
