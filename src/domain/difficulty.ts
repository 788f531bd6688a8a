/**
 * Adaptive difficulty, in bits. A single honest visitor gets the site's base. An address gets more bits as its requests near
 * the rate limit, for many accepted proofs of the networks around it, and for failed verifications. While a site is under
 * attack, sources that come again get up to four more, and all others one. Networks and load tell of the same flood, so the
 * larger of both counts. The functions are pure: every input is an argument. `npm run bench:effect` shows what the rules cost attackers and people.
 */

import { excessOf } from './load.ts'
import { DEFAULT_POLICY, type DifficultyPolicy } from './policy.ts'
import type { Source } from './sources.ts'

export interface DifficultyBounds {
  readonly base: number
  readonly min: number
  readonly max: number
}

export interface DifficultyInputs {
  /** Challenges of this address for this site in the last minute, before this one. */
  readonly addressChallenges: number
  /** How many challenges the address may have per minute. */
  readonly addressLimit: number
  /** Failed verifications of this address in the last minute. */
  readonly addressFailures: number
  /** Accepted proofs of this address in the last minutes (ACCEPTED_MINUTES). */
  readonly addressAccepted: number
  /** From SourceWatch. */
  readonly source: Source
  /** Accepted proofs of sources that come again, per second at the site now. */
  readonly siteRate: number
  /** The same, usually (load.ts). */
  readonly siteRateUsual: number
  /** How many times as many people come once as usually. */
  readonly siteGrowth: number
}

/** For so long an address's accepted proofs are remembered. */
export const ACCEPTED_MINUTES = 5

export function difficultyFor(
  bounds: DifficultyBounds,
  inputs: DifficultyInputs,
  policy: DifficultyPolicy = DEFAULT_POLICY,
): number {
  const { requests, networks, failures, load } = difficultyClimb(inputs, policy)
  const climb = requests + networks + failures + load
  return Math.max(bounds.min, Math.min(bounds.max, bounds.base + climb))
}

/** What a file of a policy may hold: any numbers of a policy, and bits in place of a site's own. */
export type PolicyOverrides = Partial<Trial>

/** A policy that decides beside the live one, without effect. */
export type Trial = DifficultyPolicy & Partial<DifficultyBounds>

/** @param inputs with the source by the trial's policy */
export function trialDifficulty(trial: Trial, ofSite: DifficultyBounds, inputs: DifficultyInputs): number {
  const { base = ofSite.base, min = ofSite.min, max = ofSite.max } = trial
  return difficultyFor({ base, min, max }, inputs, trial)
}

/** Bits above the base, by cause, before the bounds. */
interface DifficultyClimb {
  readonly requests: number
  readonly networks: number
  readonly failures: number
  /** Beyond what the networks cost. */
  readonly load: number
}

/** Why a challenge is harder than the base, for logs. */
export function difficultyClimb(
  inputs: DifficultyInputs,
  policy: DifficultyPolicy = DEFAULT_POLICY,
): DifficultyClimb {
  const { networkBits, historyBits } = inputs.source
  const networks = Math.min(networkBits, historyBits)
  return {
    requests: requestBits(inputs, policy),
    networks,
    failures: failureBits(inputs, policy),
    load: Math.max(0, Math.min(loadBits(inputs, policy), historyBits) - networks),
  }
}

/** Challenges that were solved cost their own climb. All others, with failures, cost neighbours one bit at most. */
function requestBits(inputs: DifficultyInputs, policy: DifficultyPolicy): number {
  const { addressChallenges, addressLimit, addressFailures, addressAccepted } = inputs
  const whole = climbOf(addressChallenges / addressLimit, policy)
  const solved = Math.min(addressChallenges, addressAccepted / ACCEPTED_MINUTES)
  if (!isShared(Math.max(addressChallenges - solved, addressFailures), addressAccepted)) return whole
  const ofOthers = policy.neighbourBitsMax - failureBits(inputs, policy)
  return Math.min(whole, climbOf(solved / addressLimit, policy) + ofOthers)
}

function climbOf(share: number, { quietShare, addressBitsMax }: DifficultyPolicy): number {
  const climb = Math.max(0, (share - quietShare) / (1 - quietShare))
  return Math.min(addressBitsMax, Math.ceil(climb * addressBitsMax))
}

/** Whether an accepted proof is load of its site: of an address that comes again, or of a network over its budget. */
export function comesAgain(
  accepted: number,
  source: Source,
  policy: DifficultyPolicy = DEFAULT_POLICY,
): boolean {
  return accepted >= policy.addressProofsFree || source.isOverBudget
}

/** Whether so many people behind the address succeed that its failures, or what it left unsolved, may be another one's. */
export function isShared(failures: number, accepted: number): boolean {
  return failures <= accepted
}

function failureBits(
  { addressFailures, addressAccepted }: DifficultyInputs,
  policy: DifficultyPolicy,
): number {
  const most = isShared(addressFailures, addressAccepted) ? policy.neighbourBitsMax : policy.failureBitsMax
  return Math.min(most, Math.floor(addressFailures / policy.failuresPerBit))
}

/** One bit for each doubling beyond the tolerated load, so that the attacker's cost keeps pace with the attack. */
function loadBits(inputs: DifficultyInputs, policy: DifficultyPolicy): number {
  const { siteRate: rate, siteRateUsual: usualRate, siteGrowth: growth } = inputs
  const excess = excessOf({ rate, usualRate, growth }, policy)
  const most = comesAgain(inputs.addressAccepted, inputs.source, policy)
    ? policy.loadBitsMax
    : policy.loadBitsOnceMax
  return excess <= 1 ? 0 : Math.min(most, Math.ceil(Math.log2(excess)))
}
