/**
 * Adaptive difficulty, in bits. A lone honest visitor stays at the site's base; an address that nears its limit climbs
 * steadily; while a site is under attack everybody's difficulty climbs by a bounded amount, and comes down again.
 * Pure: every input is an argument.
 */

export interface DifficultyBounds {
  readonly base: number
  readonly min: number
  readonly max: number
}

export interface DifficultyInputs {
  /** Challenges of this address for this site in the last minute, before this one. */
  readonly addressChallenges: number
  /** How many it may have per minute. */
  readonly addressLimit: number
  /** Failed verifications of this address in the last minute. */
  readonly addressFailures: number
  /** Challenges per second that the site issues now, and usually. */
  readonly siteRate: number
  readonly siteRateUsual: number
}

/** Below this share of its limit an address is a normal visitor (a family, a few tabs). */
const QUIET_SHARE = 0.25
const ADDRESS_BITS_MAX = 4
/** Failures that cost one bit. */
const FAILURES_PER_BIT = 3
const FAILURE_BITS_MAX = 3
const LOAD_BITS_MAX = 4
/** Load up to this multiple of the usual is a good day, not an attack. */
const LOAD_TOLERATED = 4
/** A site with hardly any traffic is not under attack because two people came at once. */
const USUAL_RATE_MIN = 2

export function difficultyFor(bounds: DifficultyBounds, inputs: DifficultyInputs): number {
  const { addressFailures, siteRate, siteRateUsual } = inputs
  const climb = requestBits(inputs) + failureBits(addressFailures) + loadBits(siteRate, siteRateUsual)
  return Math.max(bounds.min, Math.min(bounds.max, bounds.base + climb))
}

/** Bits above the base, by cause, before the bounds. */
export interface DifficultyClimb {
  readonly requests: number
  readonly failures: number
  readonly load: number
}

/** For logs: why a challenge is harder than the base. */
export function difficultyClimb(inputs: DifficultyInputs): DifficultyClimb {
  return {
    requests: requestBits(inputs),
    failures: failureBits(inputs.addressFailures),
    load: loadBits(inputs.siteRate, inputs.siteRateUsual),
  }
}

function requestBits(inputs: DifficultyInputs): number {
  const share = inputs.addressChallenges / inputs.addressLimit
  const climb = Math.max(0, (share - QUIET_SHARE) / (1 - QUIET_SHARE))
  return Math.min(ADDRESS_BITS_MAX, Math.ceil(climb * ADDRESS_BITS_MAX))
}

function failureBits(addressFailures: number): number {
  return Math.min(FAILURE_BITS_MAX, Math.floor(addressFailures / FAILURES_PER_BIT))
}

/** One bit for each doubling beyond what is tolerated: the attacker's cost keeps pace with the attack. */
function loadBits(rate: number, usualRate: number): number {
  const excess = rate / (Math.max(USUAL_RATE_MIN, usualRate) * LOAD_TOLERATED)
  return excess <= 1 ? 0 : Math.min(LOAD_BITS_MAX, Math.ceil(Math.log2(excess)))
}
