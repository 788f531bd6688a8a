/**
 * The price of a challenge, in bits above the site's base; each bit doubles the work. Three questions (docs/explain/difficulty.md):
 *
 *   1. How much of its limit does this address use?
 *   2. Does its network, the owner's (IPv4 /24, IPv6 /48) or the wide one (/16, /32), bring more than its budget?
 *   3. Does this address return, while returning addresses bring more than the site's budget?
 *
 * One attack can cause both 2 and 3, so only the larger of the two is added to 1. Words of 2 and 3, also in meters.ts:
 *
 *   accepted   proofs of an address that were accepted in the last five minutes, before this request
 *   recent     proofs a minute now
 *   usual      proofs a minute over about a day, as learned; `expected` is the operator's estimate (`--usual-rate`)
 *   free       proofs a minute that cost nothing, whatever is usual
 *   budget     the larger of `free` and `budgetFactor` times `usual`: each doubling above it costs a bit
 */

import { budgetOf, type Meters, type Rates, ratesOf } from './meters.ts'
import type { NetworkPricing, Pricing } from './pricing.ts'

export interface DifficultyBounds {
  /** Includes `raise`. */
  readonly base: number
  readonly min: number
  readonly max: number
  /** The bits of the base that the operator added for a time (`site raise`). */
  readonly raise?: number
}

/** @param raisedBits added to the base, which stays within the maximum */
export function boundsOf(difficulty: DifficultyBounds, raisedBits: number): DifficultyBounds {
  if (raisedBits === 0) return difficulty
  const { min, max } = difficulty
  const base = Math.min(max, difficulty.base + raisedBits)
  return { base, min, max, raise: base - difficulty.base }
}

export interface AddressCounts {
  /** Challenges at this site in the last minute, without this one. */
  readonly challenges: number
  readonly limitPerMinute: number
  readonly accepted: number
}

interface NetworkRates extends Rates {
  readonly prefixBits: number
  readonly free: number
}

export interface Traffic {
  /** The owner's network, then the wide one. Empty if the store did not tell, and for private addresses and known networks. */
  readonly networkRates: readonly NetworkRates[]
  /** Returning addresses of the site. */
  readonly siteRates: Rates
  readonly siteExpected: number
  readonly isKnownNetwork: boolean
}

/** Used while the store is out of reach. */
export const NO_TRAFFIC: Traffic = {
  networkRates: [],
  siteRates: { recent: 0, usual: 0 },
  siteExpected: 0,
  isKnownNetwork: false,
}

/** @param meters faded to now by `fadeAll` */
export function trafficOf(
  { ageMs, namesAgeMs, site, networks }: Meters,
  { prefixBits, free }: NetworkPricing,
  siteExpected: number,
  isKnownNetwork: boolean,
  pricing: Pricing,
): Traffic {
  return {
    networkRates: networks.map((meter, index) => {
      const level = index === 0 ? 'owner' : 'wide'
      const { recent, usual } = rounded(ratesOf(meter, namesAgeMs, pricing.networkRecentMs, pricing))
      return { recent, usual, prefixBits: prefixBits[level], free: free[level] } // a spread would take 1.3 us
    }),
    siteRates: rounded(ratesOf(site, ageMs, pricing.siteRecentMs, pricing)),
    siteExpected,
    isKnownNetwork,
  }
}

/** Rates are rounded before they decide, so that the log shows the very numbers that decided. */
function rounded({ recent, usual }: Rates): Rates {
  return { recent: Math.round(recent * 100) / 100, usual: Math.round(usual * 100) / 100 }
}

/** Bits above the base, before the site's bounds. */
export interface Price {
  readonly addressBits: number
  readonly networkBits: number
  /** What the site asks for beyond the network's bits. */
  readonly siteBits: number
  /** The network that costs most; undefined if none costs anything. */
  readonly costliest: NetworkRates | undefined
  readonly isReturning: boolean
}

export function priceOf(counts: AddressCounts, traffic: Traffic, pricing: Pricing): Price {
  return priceAbove(bitsOfAddress(counts, pricing), counts.accepted, traffic, pricing)
}

/** Adds what network and site ask for to the bits of the address. */
function priceAbove(addressBits: number, accepted: number, traffic: Traffic, pricing: Pricing): Price {
  const { siteRates, siteExpected, isKnownNetwork } = traffic
  let networkBits = 0
  let costliest: NetworkRates | undefined
  for (const rates of traffic.networkRates) {
    const bits = excessBits(rates, rates.free, pricing.networkBitsMax, pricing)
    if (bits > networkBits) [networkBits, costliest] = [bits, rates]
  }
  const isReturning = accepted >= pricing.returningProofs
  const bitsMax = isKnownNetwork ? pricing.knownBitsMax : pricing.siteBitsMax
  const askedBySite = isReturning
    ? excessBits(siteRates, siteFree(siteExpected, pricing), bitsMax, pricing)
    : 0
  const siteBits = Math.max(0, askedBySite - networkBits)
  return { addressBits, networkBits, siteBits, costliest, isReturning }
}

export function difficultyOf(
  { base, min, max }: DifficultyBounds,
  { addressBits, networkBits, siteBits }: Price,
): number {
  return Math.max(min, Math.min(max, base + addressBits + networkBits + siteBits))
}

/**
 * Compares a solution's difficulty with what network and site ask for now, without the address: /challenge has charged its bits.
 *
 * @returns `isUnderpriced` if a challenge would have over `lateBits` more by now; `isCapped` if the site's maximum cuts the price
 */
export function checkPrice(
  difficulty: number,
  bounds: DifficultyBounds,
  accepted: number,
  traffic: Traffic,
  pricing: Pricing,
): { readonly isUnderpriced: boolean; readonly isCapped: boolean } {
  const price = priceAbove(0, accepted, traffic, pricing)
  return {
    isUnderpriced: difficulty < difficultyOf(bounds, price) - pricing.lateBits,
    isCapped: bounds.base + price.networkBits + price.siteBits > bounds.max,
  }
}

function bitsOfAddress(
  { challenges, limitPerMinute }: AddressCounts,
  { quietShare, addressBitsMax }: Pricing,
): number {
  const climb = Math.max(0, (challenges / limitPerMinute - quietShare) / (1 - quietShare))
  return Math.min(addressBitsMax, Math.ceil(climb * addressBitsMax))
}

/** Makes a site's budget `budgetFactor` times the largest of its usual rate, `siteUsualMin` and what the operator expects. */
export function siteFree(expected: number, { budgetFactor, siteUsualMin }: Pricing): number {
  return budgetFactor * Math.max(siteUsualMin, expected)
}

/** One bit for each doubling above the budget, rounded up; within it 0 or less, also -Infinity. */
function excessBits(rates: Rates, free: number, bitsMax: number, pricing: Pricing): number {
  const excess = rates.recent / budgetOf(rates, free, pricing)
  return Math.min(bitsMax, Math.ceil(Math.log2(excess)))
}
