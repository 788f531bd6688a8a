/** All numbers of the difficulty rules; the Redis scripts get them through store/redis/scripts.ts. */

export interface NetworkLevel {
  readonly prefixBits: number
  /** Proofs a minute. */
  readonly free: number
  /** Bits per doubling above the budget. */
  readonly slope: number
}

/** What one owner usually holds; lies in one shard of a Cluster, the wide network around it in all. */
export const OWNER_BITS = { v4: 24, v6: 48 } as const

export const DEFAULT_POLICY = {
  /** Of the challenge limit, for a normal visitor (a family, a few tabs). */
  quietShare: 0.25,
  /** Reached at the challenge limit. */
  addressBitsMax: 4,
  failuresPerBit: 3,
  failureBitsMax: 3,
  /** For failures and unsolved challenges, while others behind the address succeed. */
  neighbourBitsMax: 1,

  /** Memory of the fast counts. A site's is shorter: people pay less soon after an attack. */
  networkFastMs: 60_000,
  siteFastMs: 20_000,
  /** Memory of the slow count: the usual rate. */
  slowMs: 86_400_000,
  /** A newer store learns everything, as it does not know yet what is usual. */
  learnsAllMs: 3_600_000,
  /** Up to this multiple of the usual rate is a good day, not an attack. */
  tolerated: 4,
  /** Limits how far budgets grow on a busy day. */
  growthMax: 64,

  /** Offices and campuses share a /24. */
  networksV4: [
    { prefixBits: OWNER_BITS.v4, free: 80, slope: 1 },
    { prefixBits: 16, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** One customer gets a /64 to a /48, so a /48 is worth little more than one address. */
  networksV6: [
    { prefixBits: OWNER_BITS.v6, free: 30, slope: 3 },
    { prefixBits: 32, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** Below 1/quietProofs of `free`, one of a network's proofs in quietProofs counts, as that many: fewer writes. */
  quietProofs: 8,
  /** On a Cluster, whose shards count each proof of a wide network many times. */
  quietProofsSharded: 4,
  /** While all traffic is above what is tolerated, and otherwise. */
  networkBitsMax: 10,
  networkBitsQuietMax: 3,
  /** Up to this multiple of its usual rate, a network known for a day costs its people one bit at most. */
  historyTimes: 128,

  /** An address with so many proofs in five minutes is a repeat source. */
  repeatProofs: 2,
  /** A few families are no attack: proofs a minute that are usual at least, at a site or in all. */
  usualMin: 30,
  /** Under attack: for repeat sources, and for others. */
  siteBitsMax: 4,
  siteBitsFirstMax: 1,
  /** Bits that the price may rise before a solution under way is refused. */
  lateBits: 3,
  /** The same while the site asks for more than the network: of its four bits, a stock of challenges would save three. */
  siteLateBits: 1,
}

export type DifficultyPolicy = Readonly<typeof DEFAULT_POLICY>

export function levelsOf(isV4: boolean): readonly NetworkLevel[] {
  return isV4 ? DEFAULT_POLICY.networksV4 : DEFAULT_POLICY.networksV6
}
