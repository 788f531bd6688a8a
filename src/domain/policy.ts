/**
 * The numbers of the difficulty's rules, as one value. `DEFAULT_POLICY` decides for visitors. Another policy can decide beside
 * it, for a trial. The rules themselves are in difficulty.ts and sources.ts.
 */

export interface DifficultyPolicy {
  /** Up to this share of its limit, an address is a normal visitor (a family, a few tabs). */
  readonly quietShare: number
  /** The most for an address's own requests. */
  readonly addressBitsMax: number
  /** Failures that cost one bit. */
  readonly failuresPerBit: number
  readonly failureBitsMax: number
  /**
   * The most for what somebody else does. While people behind the address succeed, most of them are not who fails, or asks
   * without solving.
   */
  readonly neighbourBitsMax: number
  readonly loadBitsMax: number
  /** For networks that come once: they are not the load. */
  readonly loadBitsOnceMax: number
  /** Load up to this multiple of the usual load is a good day, not an attack. */
  readonly loadTolerated: number
  /** Lower usual loads count as this one, in proofs a second: a few families at once are no attack on a quiet site. */
  readonly usualRateMin: number
  /** So many accepted proofs of an address lately, and it comes again. */
  readonly addressProofsFree: number
  /** So many of a network that one owner holds, in all workers, and the network comes again. */
  readonly ownerProofsFree: number
  /** The most for the networks around an address. */
  readonly networkBitsMax: number
  readonly networksV4: readonly NetworkLevel[]
  readonly networksV6: readonly NetworkLevel[]
}

/** A network around an address. */
export interface NetworkLevel {
  readonly prefixBits: number
  /** Accepted proofs a minute that cost nothing. */
  readonly free: number
  /** Bits for each doubling above it. */
  readonly slope: number
}

export const DEFAULT_POLICY: DifficultyPolicy = Object.freeze({
  quietShare: 0.25,
  addressBitsMax: 4,
  failuresPerBit: 3,
  failureBitsMax: 3,
  neighbourBitsMax: 1,
  loadBitsMax: 4,
  loadBitsOnceMax: 1,
  loadTolerated: 4,
  usualRateMin: 0.5,
  addressProofsFree: 2,
  ownerProofsFree: 16,
  networkBitsMax: 10,
  // Offices and campuses share a network. A hundred times as many proofs from one provider's block are no campus.
  networksV4: Object.freeze([
    { prefixBits: 24, free: 80, slope: 1 },
    { prefixBits: 20, free: 240, slope: 1 },
  ]),
  // A customer gets a /64 to a /48, so a whole /48 is worth little more than one address.
  networksV6: Object.freeze([
    { prefixBits: 56, free: 20, slope: 1.5 },
    { prefixBits: 48, free: 30, slope: 2 },
    { prefixBits: 40, free: 240, slope: 1 },
  ]),
})
