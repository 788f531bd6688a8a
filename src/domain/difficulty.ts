/**
 * Adaptive difficulty, in bits. A single honest visitor gets the site's base. An address gets more bits as its requests near
 * the rate limit, and for failed verifications. While a site is under attack, all visitors of the site get up to four more.
 * The functions are pure: every input is an argument.
 */

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
  /** Challenges per second at the site now. */
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
const LOAD_BITS_MAX = 4
/** Load up to this multiple of the usual load is a good day, not an attack. */
const LOAD_TOLERATED = 4
/** Lower usual loads count as this one: two visitors at once are no attack on a quiet site. */
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

/** Why a challenge is harder than the base, for logs. */
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

/** One bit for each doubling beyond the tolerated load, so that the attacker's cost keeps pace with the attack. */
function loadBits(rate: number, usualRate: number): number {
  const excess = rate / (Math.max(USUAL_RATE_MIN, usualRate) * LOAD_TOLERATED)
  return excess <= 1 ? 0 : Math.min(LOAD_BITS_MAX, Math.ceil(Math.log2(excess)))
}
