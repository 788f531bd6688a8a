/**
 * Counts recent accepted proofs of each address and of the networks around it. Many accepted proofs make the next one harder.
 * Unsolved challenges do not count, so nobody makes challenges harder for others without work.
 *
 * An address *comes again* if it sent several proofs within ten minutes. So does a network of one owner (an IPv4 /24, an IPv6
 * /48) that sent many. Most people come once, and share a network with few others. So only proofs of addresses and networks
 * that come again count as load of a site, and only these get the full difficulty of that load.
 *
 * Each worker sees a random sample of connections, and multiplies larger counts by the number of workers. Networks of private
 * and loopback addresses are not counted, because they are the operator's own.
 */

import { type Address, AddressSet, isV4 } from './address.ts'
import { DecayingCounts } from './decaying-counts.ts'
import { DEFAULT_POLICY, type DifficultyPolicy, type NetworkLevel } from './policy.ts'

const [ADDRESS_BITS_V4, OWNER_BITS_V4] = [32, 24]
const [ADDRESS_BITS_V6, OWNER_BITS_V6] = [64, 48]

/** A proof counts e times less with each minute. So a steady rate counts as its proofs a minute. */
const MINUTE_MS = 60_000
const OWNER_MS = 600_000
/** A smaller count in one worker says nothing about the other workers. */
const SAMPLE_MIN = 4

const OPERATORS_OWN = new AddressSet(
  '127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 ::1 fc00::/7 fe80::/10'.split(
    ' ',
  ),
)

export function isOperatorsOwn(address: Address): boolean {
  return OPERATORS_OWN.has(address)
}

export interface Source {
  /** Bits that its challenges cost more, at most the policy's networkBitsMax: the most that one of its networks asks for. */
  readonly networkBits: number
  /** Length of that network's prefix; 0 if none asks for any. */
  readonly networkPrefix: number
  /** Its proofs that were accepted within about a minute. */
  readonly networkProofs: number
  /** Whether it, or its owner's network, comes again. */
  readonly comesAgain: boolean
  /** Proofs of the address itself that were accepted in about the last ten minutes. */
  readonly accepted: number
}

/** The same of a network that is known to be many people. They come once, and pay for no network. */
export function ofManyPeople({ accepted }: Source): Source {
  return { ...NEW_SOURCE, accepted }
}

/** Of an address that was never seen. */
export const NEW_SOURCE: Source = {
  networkBits: 0,
  networkPrefix: 0,
  networkProofs: 0,
  comesAgain: false,
  accepted: 0,
}

export type Sources = Pick<SourceWatch, 'accepted' | 'of'>

export class SourceWatch {
  readonly #workers: number
  readonly #recent: DecayingCounts
  readonly #owners: DecayingCounts
  readonly #isOwn: (address: Address) => boolean

  /**
   * @param workers how many workers share the traffic
   * @param secret 32 random bits
   * @param isOwn whether an address is of the operator's own networks
   */
  constructor(workers: number, secret: number, isOwn = isOperatorsOwn) {
    this.#workers = workers
    this.#isOwn = isOwn
    this.#recent = new DecayingCounts(MINUTE_MS, secret)
    this.#owners = new DecayingCounts(OWNER_MS, secret)
  }

  /**
   * Notes an accepted proof.
   *
   * @param isKnown whether the address is of a network that is known to be many people
   * @returns whether the proof counts as load of its site, because it comes again
   */
  accepted(address: Address, nowMs: number, isKnown = false): boolean {
    const own = this.#owners.add(address, addressBits(address), nowMs)
    if (isKnown) return false
    if (this.#isOwn(address)) return own >= DEFAULT_POLICY.addressProofsFree
    for (const { prefixBits } of levelsOf(address)) this.#recent.add(address, prefixBits, nowMs)
    return this.#comesAgain(own, this.#owners.add(address, ownerBits(address), nowMs))
  }

  /** @param policy any policy, as proofs are counted alike for all: at the levels of DEFAULT_POLICY */
  of(address: Address, nowMs: number, policy: DifficultyPolicy = DEFAULT_POLICY): Source {
    const isOwn = this.#isOwn(address)
    const own = this.#owners.get(address, addressBits(address), nowMs)
    const owner = isOwn ? 0 : this.#owners.get(address, ownerBits(address), nowMs)
    let bits = 0
    let networkPrefix = 0
    let networkProofs = 0
    for (const { prefixBits, free, slope } of isOwn ? NO_LEVELS : levelsOf(address, policy)) {
      const count = this.#inAllWorkers(this.#recent.get(address, prefixBits, nowMs))
      const asked = count > free ? slope * Math.log2(count / free) : 0
      if (asked <= bits) continue
      bits = asked
      networkPrefix = prefixBits
      networkProofs = count
    }
    const networkBits = Math.min(policy.networkBitsMax, Math.ceil(bits))
    const comesAgain = this.#comesAgain(own, owner, policy)
    return { networkBits, networkPrefix, networkProofs, comesAgain, accepted: own * this.#workers }
  }

  /** Both counts are of this worker. */
  #comesAgain(own: number, owner: number, policy: DifficultyPolicy = DEFAULT_POLICY): boolean {
    return own >= policy.addressProofsFree || this.#inAllWorkers(owner) >= policy.ownerProofsFree
  }

  #inAllWorkers(seen: number): number {
    return seen < SAMPLE_MIN ? seen : seen * this.#workers
  }
}

const NO_LEVELS: readonly NetworkLevel[] = []

function levelsOf(address: Address, policy = DEFAULT_POLICY): readonly NetworkLevel[] {
  return isV4(address) ? policy.networksV4 : policy.networksV6
}

function addressBits(address: Address): number {
  return isV4(address) ? ADDRESS_BITS_V4 : ADDRESS_BITS_V6
}

function ownerBits(address: Address): number {
  return isV4(address) ? OWNER_BITS_V4 : OWNER_BITS_V6
}
