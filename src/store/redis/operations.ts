/**
 * Encodes the operations of the turn script as text of one-byte characters, and decodes their answers. Each operation's Lua
 * file has its layout, and says what the fields of its answer mean.
 */

import { LogKind } from '../../domain/address-log.ts'
import { type Limited, type Policy, readUInt24 } from '../../domain/limits.ts'
import { nonceMark } from '../../domain/nonce.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  MARK_MARGIN_MS,
  type RedemptionAdmission,
  type SolutionAdmission,
  type SolutionRequest,
  type TokenRedemption,
  UNAVAILABLE,
} from '../store.ts'

const { fromCharCode } = String
const [B1, B2, B3] = [8, 16, 24]
const MARK_LOW = 0x10000
const MARK_BIT = 0x80

export const PROBE = 'P'

/** 'C' */
export function challengeOperation({ siteTag, addressLimit, siteLimit }: ChallengeRequest): string {
  return `C${limitsText(siteTag, addressLimit, siteLimit)}`
}

/**
 * 'V'
 *
 * @param keepMs how long the used nonce must be kept; 0 if the request has no nonce
 */
export function solutionOperation(request: SolutionRequest, keepMs: number): string {
  const kind = request.failed ? LogKind.failedVerification : LogKind.verification
  const { spend, siteTag, addressLimit, siteLimit } = request
  const limits = limitsText(siteTag, addressLimit, siteLimit)
  if (spend === undefined) return `V${fromCharCode(kind)}${limits}${'\0'.repeat(12)}`
  const mark = nonceMark(spend.nonce)
  const high = Math.floor(mark / MARK_LOW)
  const markText = fromCharCode(
    MARK_BIT | (high >>> B2),
    (high >>> B1) & 0xff,
    high & 0xff,
    (mark >>> B1) & 0xff,
    mark & 0xff,
  )
  return `V${fromCharCode(kind)}${limits}${uint32Text(spend.storeEpoch)}${uint24Text(keepMs)}${markText}`
}

/**
 * 'R'
 *
 * @param callerLimit 0 if the caller is not charged here
 * @param keyLimit 0 if no API key is charged
 * @param keepMs how long the redemption record must be kept; 0 if no token is redeemed
 */
export function redemptionOperation(
  callerLimit: number,
  keyLimit: number,
  redeem: TokenRedemption | undefined,
  keepMs: number,
): string {
  const limits = uint24Text(callerLimit) + uint24Text(keyLimit)
  if (redeem === undefined) return `R${limits}${'\0'.repeat(12)}`
  const until = Math.ceil((redeem.expiresAtMs + MARK_MARGIN_MS) / 1000)
  return `R${limits}${uint32Text(keepMs)}${uint32Text(redeem.storeEpoch)}${uint32Text(until)}${redeem.claim}`
}

/** 'F' */
export function refundOperation(chargedAtTime: number, callerLimit: number): string {
  return `F${uint24Text(chargedAtTime)}${uint24Text(callerLimit)}`
}

/** 'K' */
export function peekOperation(keyLimit: number): string {
  return `K${uint24Text(keyLimit)}`
}

function limitsText(siteTag: number, addressLimit: number, siteLimit: number): string {
  return fromCharCode(
    siteTag >>> B2,
    (siteTag >>> B1) & 0xff,
    siteTag & 0xff,
    addressLimit >>> B2,
    (addressLimit >>> B1) & 0xff,
    addressLimit & 0xff,
    siteLimit >>> B2,
    (siteLimit >>> B1) & 0xff,
    siteLimit & 0xff,
  )
}

function uint24Text(value: number): string {
  return fromCharCode(value >>> B2, (value >>> B1) & 0xff, value & 0xff)
}

function uint32Text(value: number): string {
  return fromCharCode(value >>> B3, (value >>> B2) & 0xff, (value >>> B1) & 0xff, value & 0xff)
}

/** By the numbers that the scripts use, as NONCES and TOKENS below. */
const POLICIES: readonly Policy[] = ['address', 'address', 'address-site', 'api-key']

/** An answer: | status 1 | first 3 | second 3 |. An unknown status becomes `unavailable`, which refuses. */
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
        failures: readUInt24(reply!, at + SECOND) & 0xffff,
        accepted: reply![at + SECOND]!,
      }
    default:
      return UNAVAILABLE
  }
}

const NONCES = [undefined, 'spent', 'used', 'untouched'] as const

export function solutionAnswer(reply: Buffer | undefined, at: number): SolutionAdmission {
  if (reply?.[at] === 0) return limitedAnswer(reply, at)
  const nonce = NONCES[reply?.[at] ?? 0]
  if (nonce === undefined) return UNAVAILABLE
  const [failures, accepted] = [firstOf(reply!, at), readUInt24(reply!, at + SECOND)]
  return { status: 'admitted', nonce, failures, accepted }
}

const TOKENS = [undefined, 'redeemed', 'used', 'forgotten', 'untouched'] as const

export function redemptionAnswer(reply: Buffer | undefined, at: number): RedemptionAdmission {
  if (reply?.[at] === 0) return limitedAnswer(reply, at)
  const token = TOKENS[reply?.[at] ?? 0]
  return token === undefined ? UNAVAILABLE : { status: 'admitted', token }
}
