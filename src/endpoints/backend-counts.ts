/** Counts the requests of backends with a valid API key in one worker. process/backends.ts adds the counts of all workers up. */

import { type Address, formatAddress, formatNetwork } from '../addresses/address.ts'

/** One caller's requests with one API key, refused ones too. */
export interface BackendCount {
  /** Names the address' window of requests in the store. A site with its own limit counts in another (`windowOfSite`). */
  readonly callerKey: string
  /** The whole address, which tells callers of one network apart. */
  readonly address: string
  /** What people are shown of it: all of it, or its network if the log names networks. */
  readonly addressText: string
  readonly siteKey: string
  readonly apiKeyId: string
  /** Requests a minute. */
  readonly limits: readonly [address: number, apiKey: number]
  /** True if the tokens are forged, malformed, expired or used: these count in windows of their own, with the same limits. */
  readonly isJunk: boolean
  /** One field of the body that powgate does not know, if any. */
  readonly ignored: string | undefined
  /** The number of requests. */
  count: number
  /** The number of requests that gave the visitor's address. */
  named: number
}

/** Between two calls of `take`, so many combinations of caller, API key, junk and ignored field are counted, and further ones are not. */
export const COUNTS_MAX = 1000

export class BackendCounts {
  #counts = new Map<string, BackendCount>()
  readonly #addressText: (address: Address) => string

  constructor(isAddressWhole: boolean) {
    this.#addressText = isAddressWhole ? formatAddress : formatNetwork
  }

  note(
    address: Address,
    counted: Omit<BackendCount, 'count' | 'named' | 'address' | 'addressText'>,
    namesVisitor: boolean,
  ): void {
    const key = `${counted.callerKey} ${counted.apiKeyId} ${counted.isJunk} ${counted.ignored}`
    const found = this.#counts.get(key)
    const named = namesVisitor ? 1 : 0
    if (found !== undefined) {
      found.count++
      found.named += named
    } else if (this.#counts.size < COUNTS_MAX) {
      const texts = { address: formatAddress(address), addressText: this.#addressText(address) }
      this.#counts.set(key, { ...counted, ...texts, count: 1, named })
    }
  }

  /** Returns the counts since the last call. */
  take(): BackendCount[] {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    return counts
  }
}
