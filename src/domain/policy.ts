/**
 * Every number of the difficulty's rules (difficulty.ts, meters.ts). `DEFAULT_POLICY` decides for visitors. The Redis scripts
 * get theirs from here (store/redis/scripts.ts), and `npm run bench:effect -- --policy FILE` replays a trace with others.
 */

/** A network around an address, whose accepted proofs are counted. */
export interface NetworkLevel {
  readonly prefixBits: number
  /** Accepted proofs a minute that cost nothing. */
  readonly free: number
  /** Bits for each doubling above the budget. */
  readonly slope: number
}

/**
 * The network that one owner usually holds: an IPv4 /24, an IPv6 /48. On a Cluster, one shard has all that is kept of it.
 * The wide network of many owners around it lies in all shards.
 */
export const OWNER_BITS = { v4: 24, v6: 48 } as const

export const DEFAULT_POLICY = {
  /** Up to this share of its limit of challenges, an address is a normal visitor: a family, a few tabs. */
  quietShare: 0.25,
  /** Most bits for an address's own challenges, at its limit. */
  addressBitsMax: 4,
  /** Failed verifications that cost one bit. */
  failuresPerBit: 3,
  failureBitsMax: 3,
  /** Most bits for failures and unsolved challenges while other people behind the address succeed. */
  neighbourBitsMax: 1,

  /** How long a meter's fast count remembers: that of a site reacts sooner, so that people are free sooner after an attack. */
  networkFastMs: 60_000,
  siteFastMs: 20_000,
  /** How long the slow count remembers, from which the usual rate follows. */
  slowMs: 86_400_000,
  /** So long after its first proof, a store learns whatever comes: it does not know yet what is usual. */
  learnsAllMs: 3_600_000,
  /** Up to this multiple of the usual rate is a good day, not an attack. */
  tolerated: 4,
  /** On a day with so many times the usual proofs, networks may bring as many times more. */
  growthMax: 64,

  /** The owner's network, then the wide one. Offices and campuses share a /24. */
  networksV4: [
    { prefixBits: OWNER_BITS.v4, free: 80, slope: 1 },
    { prefixBits: 16, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** A customer gets a /64 to a /48, so a whole /48 is worth little more than one address. */
  networksV6: [
    { prefixBits: OWNER_BITS.v6, free: 30, slope: 3 },
    { prefixBits: 32, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** Of a network that brings less than this part of what is free, one proof in so many is counted, for so many. */
  quietProofs: 4,
  /** Most bits for networks while all traffic is above what is tolerated, and at other times. */
  networkBitsMax: 10,
  networkBitsQuietMax: 3,
  /** Up to this multiple of its usual rate, a network with a day of history costs its people one bit at most. */
  historyTimes: 128,

  /** An address with so many accepted proofs in five minutes is a repeat source. */
  repeatProofs: 2,
  /** Lower usual rates of a site, or of all traffic, count as this one, in proofs a minute: a few families are no attack. */
  usualMin: 30,
  /** Most bits for a site under attack: for repeat sources, and for all others. */
  siteBitsMax: 4,
  siteBitsFirstMax: 1,
  /** A solution this many bits below what its networks and its site ask for when it arrives is still accepted. */
  lateBits: 3,
}

export type DifficultyPolicy = Readonly<typeof DEFAULT_POLICY>

export function levelsOf(isV4: boolean): readonly NetworkLevel[] {
  return isV4 ? DEFAULT_POLICY.networksV4 : DEFAULT_POLICY.networksV6
}
