/** What backends with a valid API key send to one worker. The primary process adds it up (process/backend-watch.ts). */

import { type Address, formatAddress, formatNetwork } from '../addresses/address.ts'

/** Refused requests included. */
export interface BackendCount {
  /** The limit counts by it; people read `address`. */
  readonly callerKey: string
  readonly address: string
  readonly siteKey: string
  readonly apiKeyId: string
  /** Per minute. */
  readonly limits: readonly [address: number, apiKey: number]
  /** Refused tokens that cost their sender nothing: they have windows of their own, as large. */
  readonly isJunk: boolean
  /** A field of the body that powgate does not know. */
  readonly ignored: string | undefined
  count: number
  /** How many of them named the visitor's address. */
  named: number
}

/** Entries, one per caller and API key. */
export const COUNTS_MAX = 1000

export class BackendCounts {
  #counts = new Map<string, BackendCount>()
  readonly #addressText: (address: Address) => string

  constructor(isAddressWhole: boolean) {
    this.#addressText = isAddressWhole ? formatAddress : formatNetwork
  }

  note(
    address: Address,
    counted: Omit<BackendCount, 'count' | 'named' | 'address'>,
    namesVisitor: boolean,
  ): void {
    const key = `${counted.callerKey} ${counted.apiKeyId} ${counted.isJunk} ${counted.ignored}`
    const found = this.#counts.get(key)
    const named = namesVisitor ? 1 : 0
    if (found !== undefined) {
      found.count++
      found.named += named
    } else if (this.#counts.size < COUNTS_MAX)
      this.#counts.set(key, { ...counted, address: this.#addressText(address), count: 1, named })
  }

  /** Since the last call. */
  take(): BackendCount[] {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    return counts
  }
}
