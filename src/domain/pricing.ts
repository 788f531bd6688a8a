/**
 * All numbers of the price of a challenge, and of the usual rates from which it follows. In short: a network or site pays nothing while
 * its recent rate of proofs is within its budget, which is what is free or a multiple of its usual rate, if that is more (price.ts).
 * The usual rate is learned from what comes in, but slowly (meters.ts).
 */

import { type Address, isV4 } from '../addresses/address.ts'

/** A number for each network of an address: what one owner usually holds, and the wide network around it. */
interface NetworkLevels {
  readonly owner: number
  readonly wide: number
}

export interface NetworkPricing {
  readonly prefixBits: NetworkLevels
  /** Proofs a minute that cost nothing. */
  readonly free: NetworkLevels
}

export const PRICING = {
  /** A normal visitor (a family, a few tabs) uses up to this share of the challenge limit. */
  quietShare: 0.25,
  /** What an address pays at the challenge limit. */
  addressBitsMax: 4,

  /** Offices and campuses share a /24. */
  v4: { prefixBits: { owner: 24, wide: 16 }, free: { owner: 80, wide: 240 } } as NetworkPricing,
  /** One customer gets a /64 to a /48, a carrier a /32. */
  v6: { prefixBits: { owner: 48, wide: 32 }, free: { owner: 30, wide: 240 } } as NetworkPricing,
  networkBitsMax: 6, // at the base, a phone then takes 4 s on average, with HashWX 21 s

  /** A site's usual rate of returning addresses counts as at least this many proofs a minute: a few families are no attack. */
  siteUsualMin: 30,
  siteBitsMax: 4, // at the base, a phone then takes 1 s on average
  /** An address with this many proofs in five minutes counts as a returning client. */
  returningProofs: 2,
  /** The most that a network named by the operator pays while the site is under attack. */
  knownBitsMax: 1,

  /** A rate up to this multiple of the usual one counts as a busy day, not as an attack. */
  budgetFactor: 4,
  /** The usual rate learns from at most this share of a budget. */
  learnedShare: 0.5,
  /** A store younger than this learns from all proofs, because it does not know yet what is usual. */
  learnsAllMs: 3_600_000,
  /** Time constants of the averages. A site's recent rate fades soonest, so that people pay less soon after an attack. */
  networkRecentMs: 60_000,
  siteRecentMs: 20_000,
  usualMs: 86_400_000,

  /** A solution is refused if the price has risen by more bits since its challenge. */
  lateBits: 1,
}

export type Pricing = Readonly<typeof PRICING>

export function networkPricing(address: Address, pricing: Pricing): NetworkPricing {
  return isV4(address) ? pricing.v4 : pricing.v6
}
