/**
 * Adaptive difficulty, in bits. A single honest visitor gets the site's base. An address gets more bits as its requests near
 * the rate limit, for many accepted proofs of the networks around it, and for failed verifications. While a site is under
 * attack, networks that come again get up to four more, and all others one. The functions are pure: every input is an
 * argument. `npm run bench:effect` shows what the rules cost attackers and people.
 */

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
  /** From SourceWatch. */
  readonly source: Source
  /** Accepted proofs of networks that come again, per second at the site now. */
  readonly siteRate: number
  /** The same, usually (load.ts). */
  readonly siteRateUsual: number
}

/** Up to this share of its limit, an address is a normal visitor (a family, a few tabs). */
const QUIET_SHARE = 0.25
const ADDRESS_BITS_MAX = 4
/** Failures that cost one bit. */
const FAILURES_PER_BIT = 3
const FAILURE_BITS_MAX = 3
/** The most for failures of somebody else: while people behind the address succeed, most of them are not who fails. */
const NEIGHBOUR_BITS_MAX = 1
const LOAD_BITS_MAX = 4
/** For networks that come once: they are not the load. */
const LOAD_BITS_ONCE_MAX = 1
/** Load up to this multiple of the usual load is a good day, not an attack. */
export const LOAD_TOLERATED = 4
/** Lower usual loads count as this one: a few families at once are no attack on a quiet site. */
export const USUAL_RATE_MIN = 0.5

export function difficultyFor(bounds: DifficultyBounds, inputs: DifficultyInputs): number {
  const climb = requestBits(inputs) + inputs.source.networkBits + failureBits(inputs) + loadBits(inputs)
  return Math.max(bounds.min, Math.min(bounds.max, bounds.base + climb))
}

/** Bits above the base, by cause, before the bounds. */
export interface DifficultyClimb {
  readonly requests: number
  readonly networks: number
  readonly failures: number
  readonly load: number
}

/** Why a challenge is harder than the base, for logs. */
export function difficultyClimb(inputs: DifficultyInputs): DifficultyClimb {
  return {
    requests: requestBits(inputs),
    networks: inputs.source.networkBits,
    failures: failureBits(inputs),
    load: loadBits(inputs),
  }
}

function requestBits(inputs: DifficultyInputs): number {
  const share = inputs.addressChallenges / inputs.addressLimit
  const climb = Math.max(0, (share - QUIET_SHARE) / (1 - QUIET_SHARE))
  return Math.min(ADDRESS_BITS_MAX, Math.ceil(climb * ADDRESS_BITS_MAX))
}

/** Whether so many people behind the address succeed that its failures may be another one's. */
export function isShared(failures: number, { accepted }: Source): boolean {
  return failures <= accepted
}

function failureBits({ addressFailures, source }: DifficultyInputs): number {
  const most = isShared(addressFailures, source) ? NEIGHBOUR_BITS_MAX : FAILURE_BITS_MAX
  return Math.min(most, Math.floor(addressFailures / FAILURES_PER_BIT))
}

/** One bit for each doubling beyond the tolerated load, so that the attacker's cost keeps pace with the attack. */
function loadBits({ siteRate, siteRateUsual, source }: DifficultyInputs): number {
  const excess = siteRate / (Math.max(USUAL_RATE_MIN, siteRateUsual) * LOAD_TOLERATED)
  const most = source.comesAgain ? LOAD_BITS_MAX : LOAD_BITS_ONCE_MAX
  return excess <= 1 ? 0 : Math.min(most, Math.ceil(Math.log2(excess)))
}
