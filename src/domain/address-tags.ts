/**
 * The names that addresses and networks have in the store. A name starts with a tag: 48 bits of a keyed hash of the network.
 * The key follows from the secret, so a store, its append-only file or a backup name nobody to whoever lacks the secret.
 *
 *   | tag of the owner's network 8 | bits within it, hexadecimal |          address, of an IPv6 address its prefix
 *   | tag of the owner's network 8 | or | tag of the wide network 8 |      meter of a network
 *
 * From the owner's tag follow the keys of its addresses, its meter and, on a Cluster, its shard: one hash a request. The bits
 * within the network stay, so in the embedded store the addresses of a network lie next to each other.
 *
 * Each secret has tags of its own, and the first one's are used: docs/security.md says what that means for a rotation.
 */

import { ADDRESS_BITS, type Address, hexOf, isV4, V4_BYTE } from './address.ts'
import { type SigningKey, TAG_MESSAGE_BYTES } from './keyring.ts'
import { DEFAULT_POLICY, OWNER_BITS } from './policy.ts'

/** Characters of base64url. Two of a million networks share a tag with probability 0.002. */
const TAG_LENGTH = 8
/** All IPv4 /16, and more IPv6 /32 than announce an address. */
const WIDE_MAX = 200_000

const V4_OWNER_END = V4_BYTE + OWNER_BITS.v4 / 8
const V6_OWNER_END = OWNER_BITS.v6 / 8
const V4_WIDE_END = V4_BYTE + DEFAULT_POLICY.networksV4[1]!.prefixBits / 8
const V6_WIDE_END = DEFAULT_POLICY.networksV6[1]!.prefixBits / 8

export class AddressTags {
  readonly #mac: SigningKey['addressMac']
  /** A Map is asked in 0.1 us, a hash takes 0.7. */
  readonly #wide = new Map<number, string>()
  readonly #shared = new WeakMap<readonly string[], readonly string[]>()

  constructor({ addressMac }: SigningKey) {
    this.#mac = addressMac
  }

  /** The key under which an address's requests are counted. */
  keyOf(address: Address, v6PrefixBits: number): string {
    return isV4(address)
      ? this.#tag(address, V4_BYTE, V4_OWNER_END) + hexOf(address, V4_OWNER_END, ADDRESS_BITS)
      : this.#tag(address, 0, V6_OWNER_END) + hexOf(address, V6_OWNER_END, v6PrefixBits)
  }

  /** The key that an address has here, by its key under another secret. */
  renamed(key: string, address: Address): string {
    const [start, end] = isV4(address) ? [V4_BYTE, V4_OWNER_END] : [0, V6_OWNER_END]
    return this.#tag(address, start, end) + key.slice(TAG_LENGTH)
  }

  /**
   * Keys of the networks around an address whose proofs are counted: the owner's network, then the wide one. /24 and /16 of
   * IPv4, /48 and /32 of IPv6.
   *
   * @param key of the address, from `keyOf`
   */
  networksOf(key: string, address: Address): readonly string[] {
    const isIPv4 = isV4(address)
    const number = isIPv4 ? numberOf(address, V4_BYTE, V4_WIDE_END) : -1 - numberOf(address, 0, V6_WIDE_END)
    let wide = this.#wide.get(number)
    if (wide === undefined) {
      wide = isIPv4 ? this.#tag(address, V4_BYTE, V4_WIDE_END) : this.#tag(address, 0, V6_WIDE_END)
      if (this.#wide.size >= WIDE_MAX) this.#wide.clear()
      this.#wide.set(number, wide)
    }
    return [ownerKey(key), wide]
  }

  /**
   * The names of shared meters, of which that of all traffic becomes the secret's own. The usual rates of networks are taken
   * over its age. So under a new secret they are right again within minutes, as in a new store.
   *
   * @param names from `meterNames`
   */
  sharedOf(names: readonly string[]): readonly string[] {
    let own = this.#shared.get(names)
    if (own === undefined) {
      const [all, ...ofSite] = names
      own = [`${all}:${this.#tag('', 0, 0)}`, ...ofSite]
      this.#shared.set(names, own)
    }
    return own
  }

  /** | bytes of the prefix 1 | prefix, filled with zeros 6 |: one length, as `innerHash` asks; the four prefixes differ in theirs. */
  #tag(address: Address, start: number, end: number): string {
    const { message } = this.#mac
    message[0] = end - start
    for (let index = 1; index < TAG_MESSAGE_BYTES; index++) {
      const at = start + index - 1
      message[index] = at < end ? address.charCodeAt(at) : 0
    }
    return this.#mac.innerHash(TAG_MESSAGE_BYTES, 'base64url').slice(0, TAG_LENGTH)
  }
}

function numberOf(address: Address, start: number, end: number): number {
  let number = 0
  for (let index = start; index < end; index++) number = number * 256 + address.charCodeAt(index)
  return number
}

/**
 * The tag of the owner's network (OWNER_BITS): on a Cluster, one shard has all that is kept of it.
 *
 * @param key from `keyOf`, `windowOfRefused`, `windowOfKnown` or `windowOfSite`
 */
export function ownerKey(key: string): string {
  return key.slice(0, TAG_LENGTH)
}

/**
 * The key of a separate window, for requests that are refused for their site, their origin or their API key alone. They
 * neither depend on nor use up the limits of other clients behind the same address.
 */
export function windowOfRefused(key: string): string {
  return `${key}r`
}

/**
 * The key of the window that an address of a known network has at one site alone. So a site's limit for known networks takes
 * nothing from the address at other sites, and other sites take nothing from it.
 */
export function windowOfKnown(key: string, siteKey: string): string {
  return `${key}n${siteKey}`
}

/** The key of the window that a backend's address has at a site with its own limit of redemptions. */
export function windowOfSite(key: string, siteKey: string): string {
  return `${key}s${siteKey}`
}
