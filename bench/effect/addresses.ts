/** Where visits come from. A plan says how many addresses there are, and how they lie in networks. */

import type { Address } from '../../src/domain/address.ts'

/**
 * `addresses` of them, `perNetwork` in each network: a /24 with IPv4, a /48 with IPv6 (each address then is a /64 of its
 * own). Networks lie apart, `networksPerBlock` of them in one IPv4 /20 (1 if not given, at most 16).
 */
export interface AddressPlan {
  readonly version?: 4 | 6
  readonly addresses: number
  readonly perNetwork?: number
  readonly networksPerBlock?: number
}

const V4_PREFIX = `${'\0'.repeat(10)}\xff\xff`
/** Coprime to 2^20, so that blocks of two plans rarely coincide. */
const SPREAD = 0x9e375

export class Addresses {
  readonly count: number
  readonly #plan: Required<AddressPlan>
  readonly #start: number

  /** @param start another for each plan of a scenario */
  constructor(plan: AddressPlan, start: number) {
    this.#plan = { version: 4, perNetwork: 1, networksPerBlock: 1, ...plan }
    this.#start = start
    this.count = plan.addresses
  }

  /** @param index 0 to below `count` */
  get(index: number): Address {
    const { version, perNetwork, networksPerBlock } = this.#plan
    const network = Math.floor(index / perNetwork)
    const host = index % perNetwork
    const block = (Math.floor(network / networksPerBlock) * SPREAD + this.#start * 7919) & 0xfffff
    const within = network % networksPerBlock
    if (version === 4)
      return (
        V4_PREFIX + String.fromCharCode(block >> 12, (block >> 4) & 0xff, ((block & 15) << 4) | within, host)
      )
    const high = String.fromCharCode(0x20, 0x01, block >> 16, (block >> 8) & 0xff, block & 0xff, within)
    return `${high}${String.fromCharCode(host >> 8, host & 0xff)}${'\0'.repeat(7)}\x01`
  }
}
