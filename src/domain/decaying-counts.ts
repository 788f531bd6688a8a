/**
 * Counts of networks that fade with time, in a table of fixed size (1 MiB): a flood of addresses takes no memory. If two
 * networks share a slot, the one with more counts stays (Boyer and Moore's majority vote). A secret decides which networks
 * share a slot.
 */

import { type Address, isV4 } from './address.ts'
import { spread } from './bytes.ts'

const SLOTS = 65_536
const V4_OFFSET = 12

export class DecayingCounts {
  readonly #decayMs: number
  readonly #secret: number
  readonly #tags = new Uint32Array(SLOTS)
  readonly #counts = new Float32Array(SLOTS)
  readonly #timesMs = new Float64Array(SLOTS)

  /**
   * @param decayMs in this time a count becomes e times smaller
   * @param secret 32 random bits
   */
  constructor(decayMs: number, secret: number) {
    this.#decayMs = decayMs
    this.#secret = secret
  }

  /** @param prefixBits of the network: whole bytes, or half a byte more */
  get(address: Address, prefixBits: number, nowMs: number): number {
    const tag = this.#tagOf(address, prefixBits)
    const slot = tag % SLOTS
    return this.#tags[slot] === tag ? this.#decayed(slot, nowMs) : 0
  }

  /** Counts one more. @returns the count before */
  add(address: Address, prefixBits: number, nowMs: number): number {
    const tag = this.#tagOf(address, prefixBits)
    const slot = tag % SLOTS
    const count = this.#decayed(slot, nowMs)
    this.#timesMs[slot] = nowMs
    if (this.#tags[slot] === tag) {
      this.#counts[slot] = count + 1
      return count
    }
    if (count >= 1) this.#counts[slot] = count - 1
    else {
      this.#tags[slot] = tag
      this.#counts[slot] = 1
    }
    return 0
  }

  #decayed(slot: number, nowMs: number): number {
    return this.#counts[slot]! * Math.exp(-Math.max(0, nowMs - this.#timesMs[slot]!) / this.#decayMs)
  }

  /** FNV-1a of the network's bits. */
  #tagOf(address: Address, prefixBits: number): number {
    const first = isV4(address) ? V4_OFFSET : 0
    const end = first + (prefixBits >> 3)
    let hash = Math.imul(0x811c9dc5 ^ this.#secret ^ prefixBits, 0x01000193)
    for (let at = first; at < end; at++) hash = Math.imul(hash ^ address.charCodeAt(at), 0x01000193)
    const rest = prefixBits & 7
    if (rest > 0) hash = Math.imul(hash ^ (address.charCodeAt(end) >> (8 - rest)), 0x01000193)
    return spread(hash)
  }
}
