/** The integers that the Lua operations answer, read into the store's verdicts. What is not known refuses. */

import type { Policy } from '../../domain/limits.ts'
import { type Limited, type RedemptionAdmission, UNAVAILABLE } from '../store.ts'

/** By the numbers that the scripts use. */
const POLICIES: readonly Policy[] = ['address', 'address', 'address-site', 'api-key']

export function limited(reply: readonly number[], at: number): Limited {
  return { status: 'limited', retryAfterMs: reply[at + 1]!, policy: POLICIES[reply[at + 2]!] ?? 'address' }
}

export function nonceStatus(code: number): 'spent' | 'used' | 'untouched' {
  switch (code) {
    case 1:
      return 'spent'
    case 3:
      return 'untouched'
    default:
      return 'used'
  }
}

export function redemption(reply: readonly number[] | undefined, at: number): RedemptionAdmission {
  if (reply === undefined) return UNAVAILABLE
  switch (reply[at]) {
    case 0:
      return limited(reply, at)
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
