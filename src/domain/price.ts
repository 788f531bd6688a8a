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
import type { NetworkPolicy, Policy } from './policy.ts'

export interface DifficultyBounds {
  readonly base: number
  readonly min: number
  readonly max: number
}

/** For one challenge. */
export interface ChallengeBounds extends DifficultyBounds {
  /** The part of the operator's temporary raise in the base. */
  readonly raise?: number
}

/** @param raisedBits added up to the maximum */
export function boundsOf(difficulty: DifficultyBounds, raisedBits: number): ChallengeBounds {
  if (raisedBits === 0) return difficulty
  const { base: usual, min, max } = difficulty
  const base = Math.min(max, usual + raisedBits)
  return { base, min, max, raise: base - usual }
}

export interface AddressCounts {
  /** At this site in the last minute, before this one. */
  readonly challenges: number
  /** A minute. */
  readonly limit: number
  /** Accepted proofs at all sites, in the last five minutes. */
  readonly accepted: number
}

export interface NetworkRates extends Rates {
  readonly prefixBits: number
  /** Proofs a minute that cost nothing. */
  readonly free: number
}

export interface Traffic {
  /** The owner's network, then the wide one; empty if unknown, or named by the operator. */
  readonly networks: readonly NetworkRates[]
  /** Returning addresses of the site. */
  readonly site: Rates
  /** Proofs a minute of theirs that are usual at least: the operator's estimate. */
  readonly siteExpected: number
  readonly isKnownNetwork: boolean
}

/** While the store is away. */
export const NO_TRAFFIC: Traffic = {
  networks: [],
  site: { recent: 0, usual: 0 },
  siteExpected: 0,
  isKnownNetwork: false,
}

/** @param meters that were just faded */
export function trafficOf(
  { ageMs, namesAgeMs, site, networks }: Meters,
  { prefixBits, free }: NetworkPolicy,
  siteExpected: number,
  isKnownNetwork: boolean,
  policy: Policy,
): Traffic {
  return {
    networks: networks.map((meter, index) => {
      const level = index === 0 ? 'owner' : 'wide'
      const { recent, usual } = rounded(ratesOf(meter, namesAgeMs, policy.networkRecentMs, policy))
      return { recent, usual, prefixBits: prefixBits[level], free: free[level] } // a spread takes 1.3 us
    }),
    site: rounded(ratesOf(site, ageMs, policy.siteRecentMs, policy)),
    siteExpected,
    isKnownNetwork,
  }
}

/** The log shows the very numbers that decided. */
function rounded({ recent, usual }: Rates): Rates {
  return { recent: Math.round(recent * 1000) / 1000, usual: Math.round(usual * 1000) / 1000 }
}

/** Bits above the base, before the site's bounds. */
export interface Price {
  readonly address: number
  readonly network: number
  /** On top of the network's. */
  readonly site: number
  /** The costliest; undefined if none costs anything. */
  readonly costliest: NetworkRates | undefined
  readonly isReturning: boolean
}

export function priceOf(counts: AddressCounts, traffic: Traffic, policy: Policy): Price {
  return trafficPrice(addressBits(counts, policy), counts.accepted, traffic, policy)
}

export function difficultyOf(
  { base, min, max }: DifficultyBounds,
  { address, network, site }: Price,
): number {
  return Math.max(min, Math.min(max, base + address + network + site))
}

/** Whether network and site now ask for too many bits more than the challenge had. */
export function isUnderpriced(
  difficulty: number,
  bounds: DifficultyBounds,
  accepted: number,
  traffic: Traffic,
  policy: Policy,
): boolean {
  const asked = difficultyOf(bounds, trafficPrice(0, accepted, traffic, policy))
  return difficulty < asked - policy.lateBits
}

/** Whether the site's maximum cuts what network and site ask for. */
export function isCutShort(
  { base, max }: DifficultyBounds,
  accepted: number,
  traffic: Traffic,
  policy: Policy,
): boolean {
  const { network, site } = trafficPrice(0, accepted, traffic, policy)
  return base + network + site > max
}

function addressBits({ challenges, limit }: AddressCounts, { quietShare, addressBitsMax }: Policy): number {
  const climb = Math.max(0, (challenges / limit - quietShare) / (1 - quietShare))
  return Math.min(addressBitsMax, Math.ceil(climb * addressBitsMax))
}

function trafficPrice(address: number, accepted: number, traffic: Traffic, policy: Policy): Price {
  const { networks, site, siteExpected, isKnownNetwork } = traffic
  let network = 0
  let costliest: NetworkRates | undefined
  for (const one of networks) {
    const bits = excessBits(one, one.free, policy.networkBitsMax, policy)
    if (bits > network) [network, costliest] = [bits, one]
  }
  const isReturning = accepted >= policy.returningProofs
  const most = isKnownNetwork ? policy.knownBitsMax : policy.siteBitsMax
  const siteBits = isReturning ? excessBits(site, siteFree(siteExpected, policy), most, policy) : 0
  return { address, network, site: Math.max(0, siteBits - network), costliest, isReturning }
}

/** What a site's returning addresses may bring a minute, however little is usual. */
export function siteFree(expected: number, { tolerated, siteUsualMin }: Policy): number {
  return tolerated * Math.max(siteUsualMin, expected)
}

/** A bit for each doubling above the budget, begun ones included. */
function excessBits(rates: Rates, free: number, most: number, policy: Policy): number {
  const excess = rates.recent / budgetOf(rates, free, policy)
  return excess <= 1 ? 0 : Math.min(most, Math.ceil(Math.log2(excess)))
}
