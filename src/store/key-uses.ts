/** Keeps in the worker's memory when API keys were last used, and writes it about once a minute, so that no request needs a call for it. */

import type { SiteStore } from './store.ts'

/** If more keys are used within a minute, the uses of the others are lost. */
const KEYS_MAX = 100_000
const USES_A_CALL = 1000

export class KeyUses {
  readonly #store: Pick<SiteStore, 'noteUses'>
  /** Unix milliseconds. */
  readonly #uses = new Map<string, number>()

  constructor(store: Pick<SiteStore, 'noteUses'>) {
    this.#store = store
  }

  note(keyId: string, nowMs: number): void {
    if (this.#uses.size < KEYS_MAX || this.#uses.has(keyId)) this.#uses.set(keyId, nowMs)
  }

  /** A use that cannot be written is written with the next call. */
  async flush(): Promise<void> {
    const uses = [...this.#uses]
    for (let start = 0; start < uses.length; start += USES_A_CALL) {
      const batch = uses.slice(start, start + USES_A_CALL)
      await this.#store.noteUses(new Map(batch))
      for (const [keyId, atMs] of batch) if (this.#uses.get(keyId) === atMs) this.#uses.delete(keyId)
    }
  }
}
