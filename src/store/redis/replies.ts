/**
 * Decodes the answers of the turn script, | status 1 | first 3 | second 3 | for each operation. The operation's Lua file says
 * what the fields mean. An unknown status becomes `unavailable`, which refuses.
 */

import { type Policy, readUInt24 } from '../../domain/limits.ts'
import {
  type ChallengeAdmission,
  type Limited,
  type RedemptionAdmission,
  type SolutionAdmission,
  UNAVAILABLE,
} from '../store.ts'

/** By the numbers that the scripts use. */
const POLICIES: readonly Policy[] = ['address', 'address', 'address-site', 'api-key']

const FIRST = 1
const SECOND = 4

export function firstOf(reply: Buffer, at: number): number {
  return readUInt24(reply, at + FIRST)
}

export function limitedAnswer(reply: Buffer, at: number): Limited {
  return {
    status: 'limited',
    retryAfterMs: firstOf(reply, at),
    policy: POLICIES[readUInt24(reply, at + SECOND)] ?? 'address',
  }
}

export function challengeAnswer(reply: Buffer | undefined, at: number): ChallengeAdmission {
  switch (reply?.[at]) {
    case 0:
      return limitedAnswer(reply!, at)
    case 1:
      return {
        status: 'admitted',
        siteCount: firstOf(reply!, at),
        failures: readUInt24(reply!, at + SECOND),
      }
    default:
      return UNAVAILABLE
  }
}

export function solutionAnswer(reply: Buffer | undefined, at: number): SolutionAdmission {
  switch (reply?.[at]) {
    case 0:
      return limitedAnswer(reply!, at)
    case 1:
      return { status: 'admitted', nonce: 'spent', failures: firstOf(reply!, at) }
    case 2:
      return { status: 'admitted', nonce: 'used', failures: firstOf(reply!, at) }
    case 3:
      return { status: 'admitted', nonce: 'untouched', failures: firstOf(reply!, at) }
    default:
      return UNAVAILABLE
  }
}

export function redemptionAnswer(reply: Buffer | undefined, at: number): RedemptionAdmission {
  switch (reply?.[at]) {
    case 0:
      return limitedAnswer(reply!, at)
    case 1:
      return { status: 'admitted', token: 'redeemed' }
    case 2:
      return { status: 'admitted', token: 'used' }
    case 3:
      return { status: 'admitted', token: 'forgotten' }
    case 4:
      return { status: 'admitted', token: 'untouched' }
    default:
      return UNAVAILABLE
  }
}
