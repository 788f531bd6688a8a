/** Counts the requests of backends with a valid API key in one worker. process/backends.ts adds the counts of all workers up. */

import { type Address, formatNetwork, formatVisitor, PRIVATE } from '../addresses/address.ts'

/** One caller's requests with one API key, refused ones too. A caller is an address, or the IPv6 prefix that counts as one visitor. */
export interface BackendCount {
  /** Names the caller's window of requests in the store. A site with its own limit counts in another (`windowOfSite`). */
  readonly callerKey: string
  /** The caller, whichever window counts it. */
  readonly caller: string
  /** What people are shown of the caller: all, or its network if the log names networks and the address is not private. */
  readonly callerText: string
  readonly siteKey: string
  readonly apiKeyId: string
  /** Requests a minute. */
  readonly limits: readonly [caller: number, apiKey: number]
  /** True if the tokens are forged, malformed, expired or used: these count in windows of their own, with the same limits. */
  readonly isJunk: boolean
  /** One field of the body that powgate does not know, if any. */
  readonly ignored: string | undefined
  /** Why the body is refused, if the backend's own code is the cause: the reason, and the field if it is one that is wrong. */
  readonly badBody: string | undefined
  /** The number of requests. */
  count: number
  /** The number of requests that gave the visitor's address. */
  named: number
}

/** Between two calls of `take`, so many combinations of caller, API key, junk, ignored field and refused body are counted, and further ones are not. */
export const COUNTS_MAX = 1000

export class BackendCounts {
  #counts = new Map<string, BackendCount>()
  readonly #isAddressWhole: boolean
  readonly #ipv6PrefixBits: number

  constructor(isAddressWhole: boolean, ipv6PrefixBits: number) {
    this.#isAddressWhole = isAddressWhole
    this.#ipv6PrefixBits = ipv6PrefixBits
  }

  note(
    address: Address,
    counted: Omit<BackendCount, 'count' | 'named' | 'caller' | 'callerText'>,
    namesVisitor: boolean,
  ): void {
    const key = `${counted.callerKey} ${counted.apiKeyId} ${counted.isJunk} ${counted.ignored} ${counted.badBody}`
    const found = this.#counts.get(key)
    const named = namesVisitor ? 1 : 0
    if (found !== undefined) {
      found.count++
      found.named += named
    } else if (this.#counts.size < COUNTS_MAX) {
      const caller = formatVisitor(address, this.#ipv6PrefixBits)
      const callerText = this.#isAddressWhole || PRIVATE.has(address) ? caller : formatNetwork(address)
      this.#counts.set(key, { ...counted, caller, callerText, count: 1, named })
    }
  }

  /** Returns the counts since the last call. */
  take(): BackendCount[] {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    return counts
  }
}
