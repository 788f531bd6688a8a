/**
 * All numbers of the difficulty rules (difficulty.ts, meters.ts). `DEFAULT_POLICY` applies to visitors, and the Redis scripts
 * get it through store/redis/scripts.ts. `npm run bench:effect -- --policy FILE` replays a trace with other numbers.
 */

/** A network size whose accepted proofs are counted. */
export interface NetworkLevel {
  readonly prefixBits: number
  /** Accepted proofs a minute for free. */
  readonly free: number
  /** Bits per doubling above the budget. */
  readonly slope: number
}

/**
 * What one owner usually holds: an IPv4 /24, an IPv6 /48. On a Cluster it lies in one shard, while the wide network around it
 * lies in all.
 */
export const OWNER_BITS = { v4: 24, v6: 48 } as const

export const DEFAULT_POLICY = {
  /** Share of the challenge limit that a normal visitor may use (a family, a few tabs). */
  quietShare: 0.25,
  /** Most bits for an address's own challenges; reached at its limit. */
  addressBitsMax: 4,
  /** Failed verifications per bit. */
  failuresPerBit: 3,
  failureBitsMax: 3,
  /** Most bits for failures and unsolved challenges while others behind the address succeed. */
  neighbourBitsMax: 1,

  /** Memory of the fast counts. A site's is shorter, so that people pay less soon after an attack. */
  networkFastMs: 60_000,
  siteFastMs: 20_000,
  /** Memory of the slow count, which gives the usual rate. */
  slowMs: 86_400_000,
  /** A store this new learns everything, because it does not know yet what is usual. */
  learnsAllMs: 3_600_000,
  /** Up to this multiple of the usual rate is a good day, not an attack. */
  tolerated: 4,
  /** Limits how far budgets grow on a busy day. */
  growthMax: 64,

  /** The owner's network, then the wide one. Offices and campuses share a /24. */
  networksV4: [
    { prefixBits: OWNER_BITS.v4, free: 80, slope: 1 },
    { prefixBits: 16, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** One customer gets a /64 to a /48, so a whole /48 is worth little more than one address. */
  networksV6: [
    { prefixBits: OWNER_BITS.v6, free: 30, slope: 3 },
    { prefixBits: 32, free: 240, slope: 1 },
  ] as readonly NetworkLevel[],
  /** Of a network below 1/quietProofs of `free`, one proof in quietProofs is counted, as that many. */
  quietProofs: 4,
  /** Most bits for networks: while all traffic is above what is tolerated, and otherwise. */
  networkBitsMax: 10,
  networkBitsQuietMax: 3,
  /** Up to this multiple of its usual rate, a network with a day of history costs its people one bit at most. */
  historyTimes: 128,

  /** An address with this many accepted proofs in five minutes is a repeat source. */
  repeatProofs: 2,
  /** Lower usual rates of a site, or of all traffic, count as this many proofs a minute: a few families are no attack. */
  usualMin: 30,
  /** Most bits for a site under attack: for repeat sources, and for others. */
  siteBitsMax: 4,
  siteBitsFirstMax: 1,
  /** How far the price may rise, in bits, before a solution that was on its way is refused. */
  lateBits: 3,
}

export type DifficultyPolicy = Readonly<typeof DEFAULT_POLICY>

export function levelsOf(isV4: boolean): readonly NetworkLevel[] {
  return isV4 ? DEFAULT_POLICY.networksV4 : DEFAULT_POLICY.networksV6
}
