/**
 * When API keys were last used. Each request notes the time in this worker's memory. About once a minute the times are
 * written to the store, so that no request costs a call. Times that could not be written are tried again the next time.
 */

import type { SiteStore } from './store.ts'

const WRITE_MS = 60_000
/** API keys noted within a minute; with more in use, some are noted a minute later. */
const KEYS_MAX = 100_000
/** API keys in one call, so that no call occupies the store for long. */
const CHUNK = 1000

export class KeyUses {
  readonly #store: Pick<SiteStore, 'noteUses'>
  readonly #writeMs: number
  /** Unix milliseconds by API key id. */
  readonly #uses = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<SiteStore, 'noteUses'>, writeMs = WRITE_MS) {
    this.#store = store
    this.#writeMs = writeMs
  }

  /** @param now Unix milliseconds */
  note(keyId: string, now: number): void {
    if (this.#uses.size < KEYS_MAX || this.#uses.has(keyId)) this.#uses.set(keyId, now)
  }

  start(): void {
    const write = async () => {
      await this.write().catch(() => {}) // The request path reports that the store is away.
      this.#timer = setTimeout(write, this.#writeMs).unref()
    }
    this.#timer = setTimeout(write, this.#writeMs).unref()
  }

  /** Writes what is left. Never rejects: a store that is away must not keep the process from ending. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.write().catch(() => {})
  }

  async write(): Promise<void> {
    const uses = [...this.#uses]
    for (let start = 0; start < uses.length; start += CHUNK) {
      const some = uses.slice(start, start + CHUNK)
      await this.#store.noteUses(new Map(some))
      for (const [keyId, atMs] of some) if (this.#uses.get(keyId) === atMs) this.#uses.delete(keyId)
    }
  }
}
