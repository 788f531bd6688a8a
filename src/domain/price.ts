/**
 * The price of a challenge, in bits above the site's base; each bit doubles the work. Three questions (docs/explain/difficulty.md):
 *
 *   1. How much of its limit does this address use?
 *   2. Does its network, the owner's or the wide one around it, bring more than its budget?
 *   3. Does this address return, while returning addresses bring more than the site's budget?
 *
 * One flood answers both 2 and 3, so the larger counts, on top of 1.
 */

import { budgetOf, type Meters, type Rates, ratesOf } from './meters.ts'
import type { NetworkPricing, Pricing } from './pricing.ts'

export interface DifficultyBounds {
  readonly base: number
  readonly min: number
  readonly max: number
  /** The bits of the base that the operator added for a time (`site raise`). */
  readonly raise?: number
}

/** @param raisedBits added to the base, which stays within the maximum */
export function boundsOf(difficulty: DifficultyBounds, raisedBits: number): DifficultyBounds {
  if (raisedBits === 0) return difficulty
  const { base: usual, min, max } = difficulty
  const base = Math.min(max, usual + raisedBits)
  return { base, min, max, raise: base - usual }
}

export interface AddressCounts {
  /** Challenges at this site in the last minute, without this one. */
  readonly challenges: number
  /** A minute. */
  readonly limit: number
  /** Accepted proofs at all sites, in the last five minutes. */
  readonly accepted: number
}

interface NetworkRates extends Rates {
  readonly prefixBits: number
  /** Proofs a minute that cost nothing. */
  readonly free: number
}

export interface Traffic {
  /** The owner's network, then the wide one; empty if unknown, or named by the operator. */
  readonly networks: readonly NetworkRates[]
  /** Returning addresses of the site. */
  readonly site: Rates
  /** The operator's estimate of returning addresses' usual proofs a minute; the learned rate counts only above it. */
  readonly siteExpected: number
  readonly isKnownNetwork: boolean
}

/** Used while the store is out of reach. */
export const NO_TRAFFIC: Traffic = {
  networks: [],
  site: { recent: 0, usual: 0 },
  siteExpected: 0,
  isKnownNetwork: false,
}

/** @param meters that were just faded */
export function trafficOf(
  { ageMs, namesAgeMs, site, networks }: Meters,
  { prefixBits, free }: NetworkPricing,
  siteExpected: number,
  isKnownNetwork: boolean,
  pricing: Pricing,
): Traffic {
  return {
    networks: networks.map((meter, index) => {
      const level = index === 0 ? 'owner' : 'wide'
      const { recent, usual } = rounded(ratesOf(meter, namesAgeMs, pricing.networkRecentMs, pricing))
      return { recent, usual, prefixBits: prefixBits[level], free: free[level] } // a spread takes 1.3 us
    }),
    site: rounded(ratesOf(site, ageMs, pricing.siteRecentMs, pricing)),
    siteExpected,
    isKnownNetwork,
  }
}

/** Rates are rounded before they decide, so that the log shows the very numbers that decided. */
function rounded({ recent, usual }: Rates): Rates {
  return { recent: Math.round(recent * 1000) / 1000, usual: Math.round(usual * 1000) / 1000 }
}

/** Bits above the base, before the site's bounds. */
export interface Price {
  readonly address: number
  readonly network: number
  /** Bits on top of the network's. */
  readonly site: number
  /** The network that costs most; undefined if none costs anything. */
  readonly costliest: NetworkRates | undefined
  readonly isReturning: boolean
}

export function priceOf(counts: AddressCounts, traffic: Traffic, pricing: Pricing): Price {
  const { networks, site, siteExpected, isKnownNetwork } = traffic
  let network = 0
  let costliest: NetworkRates | undefined
  for (const rates of networks) {
    const bits = excessBits(rates, rates.free, pricing.networkBitsMax, pricing)
    if (bits > network) [network, costliest] = [bits, rates]
  }
  const isReturning = counts.accepted >= pricing.returningProofs
  const bitsMax = isKnownNetwork ? pricing.knownBitsMax : pricing.siteBitsMax
  const siteBits = isReturning ? excessBits(site, siteFree(siteExpected, pricing), bitsMax, pricing) : 0
  const address = addressBits(counts, pricing)
  return { address, network, site: Math.max(0, siteBits - network), costliest, isReturning }
}

export function difficultyOf(
  { base, min, max }: DifficultyBounds,
  { address, network, site }: Price,
): number {
  return Math.max(min, Math.min(max, base + address + network + site))
}

/**
 * Compares a solution's difficulty with what network and site ask for now. It is underpriced if it is over `lateBits` below that, and
 * capped if the site's maximum is below that.
 */
export function checkPrice(
  difficulty: number,
  bounds: DifficultyBounds,
  accepted: number,
  traffic: Traffic,
  pricing: Pricing,
): { readonly isUnderpriced: boolean; readonly isCapped: boolean } {
  const price = priceOf({ challenges: 0, limit: 1, accepted }, traffic, pricing)
  return {
    isUnderpriced: difficulty < difficultyOf(bounds, price) - pricing.lateBits,
    isCapped: bounds.base + price.network + price.site > bounds.max,
  }
}

function addressBits({ challenges, limit }: AddressCounts, { quietShare, addressBitsMax }: Pricing): number {
  const climb = Math.max(0, (challenges / limit - quietShare) / (1 - quietShare))
  return Math.min(addressBitsMax, Math.ceil(climb * addressBitsMax))
}

/** Proofs a minute of returning addresses that cost a site nothing: never below the estimate's. */
export function siteFree(expected: number, { tolerated, siteUsualMin }: Pricing): number {
  return tolerated * Math.max(siteUsualMin, expected)
}

/** One bit for each doubling above the budget, rounded up; 0 or less within the budget. */
function excessBits(rates: Rates, free: number, bitsMax: number, pricing: Pricing): number {
  const excess = rates.recent / budgetOf(rates, free, pricing)
  return Math.min(bitsMax, Math.ceil(Math.log2(excess)))
}
