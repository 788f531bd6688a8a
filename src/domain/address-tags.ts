/**
 * Names of addresses and networks in the store. A tag is 48 bits of a hash of a network, keyed with the first secret, without which
 * a store or backup names nobody (docs/security.md#what-is-kept-of-visitors). An address has two networks: its owner's (IPv4 /24,
 * IPv6 /48) and the wide one around it (/16, /32). A meter counts the proofs of one, by puzzle (meters.ts). Lengths are in characters.
 *
 *   | shard 2 | tag of the owner's network 8 | masked bits within it, hexadecimal |   key of an address; of IPv6, of its prefix
 *   | e: | shard 2 | tag of the owner's network 8 | h of HashWX |                 name of the owner's network's meter
 *   | e: | tag of the wide network 8 | h of HashWX |                           name of the wide network's meter
 *
 * The shard is the start of the wide network's tag: on a Cluster, an address and the meters of both its networks lie together.
 * An address and its owner's network share their start, so a request costs one hash, and a lookup of the wide network's tag.
 * The bits are masked with more of the tag's hash: a log may tell which network a key is of, by a nonce, but not which address. All keys
 * of a network have one mask, so whoever knows the address of one can read the others.
 */

import { hash } from 'node:crypto'
import { ADDRESS_BITS, type Address, isV4, V4_BYTE } from '../addresses/address.ts'
import { PUZZLES, type PuzzleName } from '../protocol/proof.ts'
import type { SigningKey } from './keyring.ts'
import { PRICING } from './pricing.ts'

/** In a million networks, two share a tag with probability 0.002. */
const TAG_LENGTH = 8
/** 4,096 values, spread over a Cluster's shards. */
const SHARD_LENGTH = 2
const OWNER_LENGTH = SHARD_LENGTH + TAG_LENGTH
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** What each character of base64url stands for, by its code. */
const SIX_BITS = Uint8Array.from({ length: 128 }, (_, code) => {
  return Buffer.from(`${String.fromCharCode(code)}A`, 'base64url')[0]! >> 2
})
/** Bounds the tags kept in memory: all IPv4 /16, and more IPv6 /32 than are announced. */
const WIDE_MAX = 200_000

/** Starts the names of all meters. No site key, and no tag, is `born`. */
const METER = 'e:'
const FIRST_PROOF = `${METER}born`
/** Ends the names of networks' meters. With one meter for both puzzles, cheap proofs of SHA-256 would make visitors pay in HashWX. */
const PUZZLE_END: Readonly<Record<PuzzleName, string>> = { sha256: '', hashwx: 'h' }
const KEY_BYTES = 32
const PREFIX_BYTES_MAX = 6

/** The end of the bytes of the owner's network, and of the wide one, in an address, which is 16 one-byte characters. */
const OWNER_END = endsOf('owner')
const WIDE_END = endsOf('wide')

export class AddressTags {
  /** | key 32 | bytes of the prefix 1 (IPv4 up to 3, IPv6 from 4 on) | prefix, zero-filled 6 | */
  readonly #input = Buffer.alloc(KEY_BYTES + 1 + PREFIX_BYTES_MAX)
  /** Tags by prefixes: a Map lookup takes 0.1 us, a hash 0.7. */
  readonly #wide = new Map<string, string>()
  /**
   * Names of two times in the store: when the shard's first proof came, which is the age of its sites' meters, and when the first under
   * this secret came, the age of its networks' meters. A new first secret renames all networks, so their meters start at zero.
   * With the sites' age, nothing would seem usual for them, and each proof an excess.
   */
  readonly firstProofNames: readonly [ofSites: string, ofNetworks: string]

  constructor({ tagKey }: SigningKey) {
    this.#input.set(tagKey)
    this.firstProofNames = [FIRST_PROOF, `${FIRST_PROOF}:${this.#tag('')}`] // '' is no network, so this tag only names the secret
  }

  /** The key of an address; of IPv6, of the prefix that counts as one visitor. */
  keyOf(address: Address, v6PrefixBits: number): string {
    const shard = this.#wideTag(address).slice(0, SHARD_LENGTH)
    const digest = this.#digest(prefixOf(address, OWNER_END))
    const within = isV4(address)
      ? maskedHex(address, OWNER_END.v4, ADDRESS_BITS, digest)
      : maskedHex(address, OWNER_END.v6, v6PrefixBits, digest)
    return shard + digest.slice(0, TAG_LENGTH) + within
  }

  /** Turns the address's key by another secret, with what a window's name adds, into the one by this. */
  translated(key: string, address: Address, v6PrefixBits: number): string {
    const own = this.keyOf(address, v6PrefixBits)
    return own + key.slice(own.length)
  }

  /**
   * Names of the meters of an address' networks for proofs of this puzzle, the owner's first.
   *
   * @param key the address' key, from `keyOf`
   */
  networkMeters(address: Address, key: string, puzzle: PuzzleName): readonly [owner: string, wide: string] {
    return [ownerMeter(key, puzzle), METER + this.#wideTag(address) + PUZZLE_END[puzzle]]
  }

  #wideTag(address: Address): string {
    const prefix = prefixOf(address, WIDE_END)
    let wide = this.#wide.get(prefix)
    if (wide === undefined) {
      wide = this.#tag(prefix)
      if (this.#wide.size >= WIDE_MAX) this.#wide.clear()
      this.#wide.set(prefix, wide)
    }
    return wide
  }

  #tag(prefix: string): string {
    return this.#digest(prefix).slice(0, TAG_LENGTH)
  }

  /** Hashes one block of SHA-256; `Hmac.innerHash` of keyring.ts would take two. All inputs have one length, so none can be extended. */
  #digest(prefix: string): string {
    this.#input[KEY_BYTES] = prefix.length
    for (let index = 0; index < PREFIX_BYTES_MAX; index++)
      this.#input[KEY_BYTES + 1 + index] = prefix.charCodeAt(index) // NaN beyond its end is written as 0
    return hash('sha256', this.#input, 'base64url')
  }
}

function endsOf(level: 'owner' | 'wide') {
  const { v4, v6 } = PRICING
  return { v4: V4_BYTE + v4.prefixBits[level] / 8, v6: v6.prefixBits[level] / 8 }
}

/** The bits from a whole byte up to `toBit`, each byte XORed with eight bits of the digest behind its tag: no two bytes become one. */
function maskedHex(address: Address, fromByte: number, toBit: number, digest: string): string {
  let text = ''
  let at = TAG_LENGTH
  for (let byte = fromByte; byte * 8 < toBit; byte++) {
    const kept = address.charCodeAt(byte) & (0xff00 >> Math.min(8, toBit - byte * 8))
    const mask = (SIX_BITS[digest.charCodeAt(at++)]! << 2) ^ SIX_BITS[digest.charCodeAt(at++)]!
    text += HEX[(kept ^ mask) & 0xff]
  }
  return text
}

function prefixOf(address: Address, end: typeof OWNER_END): string {
  return isV4(address) ? address.slice(V4_BYTE, end.v4) : address.slice(0, end.v6)
}

/** The start of a key, which the addresses of one owner's network share. */
export function ownerKey(key: string): string {
  return key.slice(0, OWNER_LENGTH)
}

/** The part of a key that decides on the shard. */
export function shardKey(key: string): string {
  return key.slice(0, SHARD_LENGTH)
}

export function siteMeter(siteKey: string): string {
  return METER + siteKey
}

/** The meter of the owner's network of an address with this key. */
export function ownerMeter(key: string, puzzle: PuzzleName): string {
  return METER + ownerKey(key) + PUZZLE_END[puzzle]
}

export function ownerMeters(key: string): string[] {
  return PUZZLES.map(puzzle => ownerMeter(key, puzzle))
}

// Windows of requests that are counted apart from the others of an address.

/** Counts requests that were refused for their site, origin or API key. They use up no limit of others at the address. */
export function windowOfRefused(key: string): string {
  return `${key}r`
}

/** Counts requests that cost their sender nothing, so they fill no limit that others need. */
export function windowOfJunk(key: string): string {
  return `${key}j`
}

/** Counts a known network's requests per site. */
export function windowOfKnown(key: string, siteKey: string): string {
  return `${key}n${siteKey}`
}

/** Counts redemptions of a site that has its own limit. */
export function windowOfSite(key: string, siteKey: string): string {
  return `${key}s${siteKey}`
}

/** Every name that the functions above give an address, also one after the other, and some that never occur: to delete what is kept of it. */
export function windowsOf(key: string, siteKeys: readonly string[]): string[] {
  const ofSites = siteKeys.flatMap(siteKey => [windowOfKnown(key, siteKey), windowOfSite(key, siteKey)])
  return [key, ...ofSites]
    .flatMap(name => [name, windowOfRefused(name)])
    .flatMap(name => [name, windowOfJunk(name)])
}
