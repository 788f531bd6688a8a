/**
 * Adaptive difficulty, in bits; each bit doubles the work. docs/reference/limits.md#difficulty has the rules in words. One
 * flood moves the bits of a network and of a site, so only the larger count.
 */

import { ACCEPTED_MINUTES } from './address-log.ts'
import {
  growthOf,
  isFlood,
  type NetworkRates,
  networkBudget,
  type Rates,
  siteBudget,
  type Traffic,
} from './meters.ts'
import { DEFAULT_POLICY, type DifficultyPolicy, type NetworkLevel, OWNER_BITS } from './policy.ts'

export interface DifficultyBounds {
  readonly base: number
  readonly min: number
  readonly max: number
}

export interface AddressCounts {
  /** At this site in the last minute, before this one. */
  readonly challenges: number
  /** A minute. */
  readonly limit: number
  /** Failed verifications at this site in the last minute. */
  readonly failures: number
  /** At all sites, in the last ACCEPTED_MINUTES. */
  readonly accepted: number
}

/** Bits above the base, before the site's bounds. */
export interface Climb {
  readonly requests: number
  readonly failures: number
  readonly networks: number
  /** On top of the network's bits. */
  readonly site: number
  /** The costliest; undefined if none costs anything. */
  readonly network: NetworkRates | undefined
  readonly isRepeat: boolean
}

export function climbOf(
  address: AddressCounts,
  traffic: Traffic,
  policy: DifficultyPolicy = DEFAULT_POLICY,
): Climb {
  const { networks, site, network, isRepeat } = trafficClimb(address.accepted, traffic, policy)
  const [requests, failures] = [requestBits(address, policy), failureBits(address, policy)]
  return { requests, failures, networks, site, network, isRepeat }
}

export function difficultyOf({ base, min, max }: DifficultyBounds, climb: Climb): number {
  const { requests, failures, networks, site } = climb
  return Math.max(min, Math.min(max, base + requests + failures + networks + site))
}

/** Whether network and site now ask for too many bits more than the challenge had. */
export function isUnderpriced(
  difficulty: number,
  { base, min, max }: DifficultyBounds,
  accepted: number,
  traffic: Traffic,
  policy: DifficultyPolicy = DEFAULT_POLICY,
): boolean {
  const { networks, site } = trafficClimb(accepted, traffic, policy)
  const asked = Math.max(min, Math.min(max, base + networks + site))
  return difficulty < asked - (site > 0 ? policy.siteLateBits : policy.lateBits)
}

/**
 * While enough proofs succeed (`isShared`), unsolved challenges may be a neighbour's. Then they and failures cost one bit together:
 * `ofOthers` is what failures leave of it.
 */
function requestBits(address: AddressCounts, policy: DifficultyPolicy): number {
  const { challenges, limit, failures, accepted } = address
  const whole = shareBits(challenges / limit, policy)
  const solved = Math.min(challenges, accepted / ACCEPTED_MINUTES)
  if (!isShared(Math.max(challenges - solved, failures), accepted)) return whole
  const ofOthers = policy.neighbourBitsMax - failureBits(address, policy)
  return Math.min(whole, shareBits(solved / limit, policy) + ofOthers)
}

function shareBits(share: number, { quietShare, addressBitsMax }: DifficultyPolicy): number {
  const climb = Math.max(0, (share - quietShare) / (1 - quietShare))
  return Math.min(addressBitsMax, Math.ceil(climb * addressBitsMax))
}

/** Whether its failures may be a neighbour's, since so many proofs succeed. */
export function isShared(failures: number, accepted: number): boolean {
  return failures <= accepted
}

function failureBits({ failures, accepted }: AddressCounts, policy: DifficultyPolicy): number {
  const most = isShared(failures, accepted) ? policy.neighbourBitsMax : policy.failureBitsMax
  return Math.min(most, Math.floor(failures / policy.failuresPerBit))
}

type TrafficClimb = Pick<Climb, 'networks' | 'site' | 'network' | 'isRepeat'>

function trafficClimb(accepted: number, traffic: Traffic, policy: DifficultyPolicy): TrafficClimb {
  const { networks, all, siteFirst, isKnownNetwork } = traffic
  const growth = growthOf(siteFirst, policy)
  let bits = 0
  let network: NetworkRates | undefined
  // Of the bits of networks and site together. A known network comes without meters, so it is the site's alone.
  let cap = isKnownNetwork ? 1 : Number.POSITIVE_INFINITY
  let isOwnerAbove = false
  for (const one of networks) {
    const { slope, free } = levelOf(one, policy)
    const excess = one.recent / networkBudget(one, free, growth, policy)
    const allowed = historyBits(one, policy)
    if (one.prefixBits === OWNER_BITS.v4 || one.prefixBits === OWNER_BITS.v6) {
      cap = Math.min(cap, Math.ceil(allowed))
      isOwnerAbove = excess > 1
    }
    const asked = excess > 1 ? Math.min(slope * Math.log2(excess), allowed) : 0
    if (asked > bits) {
      bits = asked
      network = one
    }
  }
  const bitsMax = isFlood(all, policy) ? policy.networkBitsMax : policy.networkBitsQuietMax
  const networkBits = Math.min(bitsMax, cap, Math.ceil(bits))
  const isRepeat = accepted >= policy.repeatProofs || isOwnerAbove
  const site = Math.min(cap, siteBits(traffic, isRepeat, policy))
  return { networks: networkBits, site: Math.max(0, site - networkBits), network, isRepeat }
}

function levelOf({ prefixBits }: NetworkRates, { networksV4, networksV6 }: DifficultyPolicy): NetworkLevel {
  const isLevel = (level: NetworkLevel) => level.prefixBits === prefixBits
  return networksV4.find(isLevel) ?? networksV6.find(isLevel)!
}

/**
 * Most bits in a network with history, where a sudden flood is a neighbour's: one, until traffic exceeds `historyTimes` the usual
 * rate, then one more per doubling. On its first day `historyTimes` shrinks by the days squared.
 */
function historyBits({ recent, usual, days }: Rates, { historyTimes }: DifficultyPolicy): number {
  const excused = historyTimes * Math.min(1, days) ** 2 * usual
  return excused > 0 ? 1 + Math.max(0, Math.log2(Math.max(1, recent) / excused)) : Number.POSITIVE_INFINITY
}

function siteBits(
  { siteRepeat, siteFirst, siteExpected }: Traffic,
  isRepeat: boolean,
  policy: DifficultyPolicy,
): number {
  const excess = siteRepeat.recent / siteBudget(siteRepeat, siteExpected, growthOf(siteFirst, policy), policy)
  const most = isRepeat ? policy.siteBitsMax : policy.siteBitsFirstMax
  return excess <= 1 ? 0 : Math.min(most, Math.ceil(Math.log2(excess)))
}
