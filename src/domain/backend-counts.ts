/** Counts what backends with a valid API key send to one worker. process/backends.ts adds the counts up. */

import { type Address, formatAddress, formatNetwork } from '../addresses/address.ts'

/** Includes refused requests. */
export interface BackendCount {
  /** The limit counts by this key; people read `address`. */
  readonly callerKey: string
  readonly address: string
  readonly siteKey: string
  readonly apiKeyId: string
  /** Requests a minute. */
  readonly limits: readonly [address: number, apiKey: number]
  /** Refused tokens that cost their sender nothing. They have windows of their own, with the same limits. */
  readonly isJunk: boolean
  /** A field of the body that powgate does not know. */
  readonly ignored: string | undefined
  count: number
  /** Requests that named the visitor's address. */
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

  /** Returns the counts since the last call. */
  take(): BackendCount[] {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    return counts
  }
}
