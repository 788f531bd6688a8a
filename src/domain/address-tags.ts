/**
 * Names of addresses and networks in the store. Each starts with a tag: 48 bits of a hash of the network, keyed with the first
 * secret, without which a store or backup names nobody (docs/security.md#what-is-kept-of-visitors).
 *
 *   | tag of the owner's network 8 | bits within it, hexadecimal |          address, of an IPv6 address its prefix
 *   | tag of the owner's network 8 | or | tag of the wide network 8 |      meter of a network
 *
 * The owner's tag leads to the network's addresses, its meter and its Cluster shard, so a request costs one hash. The bits
 * within the network stay readable, so the embedded store keeps its addresses next to each other.
 */

import { hash } from 'node:crypto'
import { ADDRESS_BITS, type Address, hexOf, isV4, V4_BYTE } from './address.ts'
import type { SigningKey } from './keyring.ts'
import { DEFAULT_POLICY, OWNER_BITS } from './policy.ts'

/** Two of a million networks share a tag with probability 0.002. */
const TAG_LENGTH = 8
/** All IPv4 /16, and more IPv6 /32 than are announced. */
const WIDE_MAX = 200_000

const V4_OWNER_END = V4_BYTE + OWNER_BITS.v4 / 8
const V6_OWNER_END = OWNER_BITS.v6 / 8
const V4_WIDE_END = V4_BYTE + DEFAULT_POLICY.networksV4[1]!.prefixBits / 8
const V6_WIDE_END = DEFAULT_POLICY.networksV6[1]!.prefixBits / 8

const KEY_BYTES = 32
const PREFIX_BYTES_MAX = 6

export class AddressTags {
  /** | key 32 | bytes of the prefix 1 (IPv4 up to 3, IPv6 from 4 on) | prefix, zero-filled 6 | */
  readonly #input = Buffer.alloc(KEY_BYTES + 1 + PREFIX_BYTES_MAX)
  /** A Map lookup takes 0.1 us, a hash 0.7. */
  readonly #wide = new Map<string, string>()
  readonly #shared = new WeakMap<readonly string[], readonly string[]>()

  constructor({ addressKey }: SigningKey) {
    this.#input.set(addressKey)
  }

  keyOf(address: Address, v6PrefixBits: number): string {
    const within = isV4(address)
      ? hexOf(address, V4_OWNER_END, ADDRESS_BITS)
      : hexOf(address, V6_OWNER_END, v6PrefixBits)
    return this.#ownerTag(address) + within
  }

  /** Translates a key that was made with another secret. */
  renamed(key: string, address: Address): string {
    return this.#ownerTag(address) + key.slice(TAG_LENGTH)
  }

  /**
   * Of the owner's network, then of the wide one.
   *
   * @param key from `keyOf`
   */
  networksOf(key: string, address: Address): readonly string[] {
    const prefix = prefixOf(address, V4_WIDE_END, V6_WIDE_END)
    let wide = this.#wide.get(prefix)
    if (wide === undefined) {
      wide = this.#tag(prefix)
      if (this.#wide.size >= WIDE_MAX) this.#wide.clear()
      this.#wide.set(prefix, wide)
    }
    return [ownerKey(key), wide]
  }

  /**
   * A rotation of secrets renames all networks, so their counts start at zero. Their usual rates are taken over the age of the
   * meter of all traffic, so that one starts anew too: by its old age they would seem too low for a day.
   *
   * @param names from `meterNames`
   */
  sharedOf(names: readonly string[]): readonly string[] {
    let own = this.#shared.get(names)
    if (own === undefined) {
      const [all, ...ofSite] = names
      own = [`${all}:${this.#tag('')}`, ...ofSite]
      this.#shared.set(names, own)
    }
    return own
  }

  #ownerTag(address: Address): string {
    return this.#tag(prefixOf(address, V4_OWNER_END, V6_OWNER_END))
  }

  /** One block of SHA-256, where `Hmac.innerHash` takes two. All inputs have one length, so none can be extended. */
  #tag(prefix: string): string {
    const { length } = prefix
    this.#input[KEY_BYTES] = length
    for (let index = 0; index < PREFIX_BYTES_MAX; index++)
      this.#input[KEY_BYTES + 1 + index] = index < length ? prefix.charCodeAt(index) : 0
    return hash('sha256', this.#input, 'base64url').slice(0, TAG_LENGTH)
  }
}

function prefixOf(address: Address, v4End: number, v6End: number): string {
  return isV4(address) ? address.slice(V4_BYTE, v4End) : address.slice(0, v6End)
}

/** @param key of an address or a window */
export function ownerKey(key: string): string {
  return key.slice(0, TAG_LENGTH)
}

/** Requests refused for their site, origin or API key take nothing from others at the address. */
export function windowOfRefused(key: string): string {
  return `${key}r`
}

/** What costs its sender nothing fills no limit that others need. @param key of a caller, or an API key's id */
export function windowOfJunk(key: string): string {
  return `${key}j`
}

/** A known network's limit holds per site. */
export function windowOfKnown(key: string, siteKey: string): string {
  return `${key}n${siteKey}`
}

/** For a site with its own redemption limit. */
export function windowOfSite(key: string, siteKey: string): string {
  return `${key}s${siteKey}`
}
