/**
 * Pseudonyms of addresses. Two of them have as many leading half bytes in common as their addresses have, so that networks can
 * be told equal, and not be read. (The construction is that of Xu, Fan, Ammar and Moon, "Prefix-preserving IP address
 * anonymization", 2002, by half bytes instead of bits: each is combined with a keyed function of those before it.)
 *
 * Who knows that an address is among the pseudonyms may recognise its neighbours. Without the key nobody finds an address.
 */

import { type Cipher, createCipheriv } from 'node:crypto'
import { type Address, addressFromBytes, isV4 } from './address.ts'
import { isOperatorsOwn } from './sources.ts'

const BLOCK = 16
const [V4_AT, V4_BYTES] = [12, 4]
/** What an IPv6 address is bound to is one host or household: its /64. */
const V6_BYTES = 8
const MARK_OF_OWN = '!'

export class Pseudonyms {
  readonly #cipher: Cipher
  /** One block for each half byte: the half bytes before it, and its position. */
  readonly #blocks = Buffer.alloc(2 * V6_BYTES * BLOCK)
  #lastAddress: Address = ''
  #last: Address = ''

  /** @param key 16 random bytes */
  constructor(key: Uint8Array) {
    this.#cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false)
  }

  /** Has the form of an address. One of the operator's own networks has a 17th character, as its pseudonym may be any. */
  of(address: Address): Address {
    if (address === this.#lastAddress) return this.#last
    const [first, bytes] = isV4(address) ? [V4_AT, V4_BYTES] : [0, V6_BYTES]
    const blocks = this.#blocks.fill(0).subarray(0, 2 * bytes * BLOCK)
    for (let half = 1; half <= 2 * bytes; half++) {
      const block = (half - 1) * BLOCK
      for (let at = 0; at < half >> 1; at++) blocks[block + at] = address.charCodeAt(first + at)
      if (half % 2 === 0) blocks[block + (half >> 1) - 1]! &= 0xf0
      blocks[block + BLOCK - 1] = half + (bytes === V4_BYTES ? 0x80 : 0)
    }
    const pads = this.#cipher.update(blocks)
    let text = address.slice(0, first)
    for (let at = 0; at < bytes; at++) {
      const pad = (pads[2 * at * BLOCK]! & 0xf0) | (pads[(2 * at + 1) * BLOCK]! & 0x0f)
      text += String.fromCharCode(address.charCodeAt(first + at) ^ pad)
    }
    this.#lastAddress = address
    this.#last = text.padEnd(BLOCK, '\0') + (isOperatorsOwn(address) ? MARK_OF_OWN : '')
    return this.#last
  }
}

export function isOwnPseudonym(pseudonym: Address): boolean {
  return pseudonym.length > BLOCK
}

/** 6 characters of an IPv4 address's pseudonym, else 11, and one more for the operator's own. */
export function pseudonymText(pseudonym: Address): string {
  const bytes = isV4(pseudonym) ? pseudonym.slice(V4_AT, BLOCK) : pseudonym.slice(0, V6_BYTES)
  return Buffer.from(bytes, 'latin1').toString('base64url') + pseudonym.slice(BLOCK)
}

const TEXT = /^((?:[\w-]{6})|(?:[\w-]{11}))(!?)$/

/** undefined if it is none. */
export function parsePseudonym(text: string): Address | undefined {
  const [, encoded, mark] = TEXT.exec(text) ?? []
  if (encoded === undefined) return undefined
  const bytes = Buffer.from(encoded, 'base64url')
  return (addressFromBytes(bytes) ?? bytes.toString('latin1').padEnd(BLOCK, '\0')) + mark
}
