/**
 * The names of addresses and networks in the store. Each starts with a tag, 48 bits of a keyed hash of the network, whose key
 * comes from the secret. Without the secret, a store, its append-only file or a backup names nobody.
 *
 *   | tag of the owner's network 8 | bits within it, hexadecimal |          address, of an IPv6 address its prefix
 *   | tag of the owner's network 8 | or | tag of the wide network 8 |      meter of a network
 *
 * The owner's tag leads to the network's addresses, its meter and, on a Cluster, its shard, so a request costs one hash. The
 * bits within the network stay readable, so the embedded store keeps a network's addresses next to each other.
 *
 * Each secret has its own tags, and the first secret's are used: docs/security.md says what a rotation means.
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
  /** A Map lookup takes 0.1 us, a hash 0.7. */
  readonly #wide = new Map<string, string>()
  readonly #shared = new WeakMap<readonly string[], readonly string[]>()

  constructor({ addressMac }: SigningKey) {
    this.#mac = addressMac
  }

  /** What an address's requests count under. */
  keyOf(address: Address, v6PrefixBits: number): string {
    const within = isV4(address)
      ? hexOf(address, V4_OWNER_END, ADDRESS_BITS)
      : hexOf(address, V6_OWNER_END, v6PrefixBits)
    return this.#ownerTag(address) + within
  }

  /** Translates a key made with another secret. */
  renamed(key: string, address: Address): string {
    return this.#ownerTag(address) + key.slice(TAG_LENGTH)
  }

  /**
   * Keys of the owner's network (IPv4 /24, IPv6 /48), then of the wide one (/16, /32).
   *
   * @param key of the address, from `keyOf`
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
   * Names of shared meters. The meter of all traffic gets a name per secret, because the networks' usual rates are taken over
   * its age: so under a new secret they are right again within minutes, as in a new store.
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

  /** | bytes of the prefix 1 | prefix, filled with zeros 6 |: `innerHash` needs one length, so the first byte tells it apart. */
  #tag(prefix: string): string {
    const { message } = this.#mac
    message[0] = prefix.length
    for (let index = 1; index < TAG_MESSAGE_BYTES; index++)
      message[index] = index <= prefix.length ? prefix.charCodeAt(index - 1) : 0
    return this.#mac.innerHash(TAG_MESSAGE_BYTES, 'base64url').slice(0, TAG_LENGTH)
  }
}

/** Of IPv4 up to 3 bytes, of IPv6 from 4 on. */
function prefixOf(address: Address, v4End: number, v6End: number): string {
  return isV4(address) ? address.slice(V4_BYTE, v4End) : address.slice(0, v6End)
}

/**
 * Tag of the owner's network (OWNER_BITS), which lies in one shard of a Cluster.
 *
 * @param key from `keyOf`, `windowOfRefused`, `windowOfKnown` or `windowOfSite`
 */
export function ownerKey(key: string): string {
  return key.slice(0, TAG_LENGTH)
}

/**
 * A window for requests refused for their site, origin or API key: they neither use up nor depend on the limits of others
 * behind the address.
 */
export function windowOfRefused(key: string): string {
  return `${key}r`
}

/** A known network's address has its own window at one site, so that site's limit and other sites' do not affect each other. */
export function windowOfKnown(key: string, siteKey: string): string {
  return `${key}n${siteKey}`
}

/** A backend address's window at a site with its own redemption limit. */
export function windowOfSite(key: string, siteKey: string): string {
  return `${key}s${siteKey}`
}
