/** Encodes the operations of a batch, and decodes their answers. The operation's Lua file describes the bytes of both. */

import { MARK_BIT, MARK_LOW, MARKS_LIMIT_MAX, verificationKind } from '../../domain/address-log.ts'
import { type Limited, readUInt24 } from '../../domain/limits.ts'
import { fadeAll, type Meter, type Meters, metersFrom } from '../../domain/meters.ts'
import { nonceMark } from '../../domain/nonce.ts'
import { PRICING } from '../../domain/pricing.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  countsProof,
  MARK_MARGIN_MS,
  type Metering,
  type RedemptionAdmission,
  type SolutionAdmission,
  type SolutionRequest,
  type TokenRedemption,
  UNAVAILABLE,
} from '../store.ts'
import { FIRST, LETTERS, LIMITED, NONCES, POLICIES, SECOND, TOKENS } from '../wire.ts'
import { type Operation, timeOf } from './batch.ts'

const { fromCharCode } = String
const NO_KEYS: readonly string[] = []
/** Shifts by one, two and three bytes. */
const [B1, B2, B3] = [8, 16, 24]

export function probeOperation(key: string, writes: boolean): Operation {
  return plain([key], writes ? `${LETTERS.probe}W` : LETTERS.probe)
}

/** An operation without meters. */
export function plain(keys: readonly string[], text: string): Operation {
  return { keys, text, meters: NO_KEYS, namesMeters: false }
}

export function challengeOperation(keyPrefix: string, request: ChallengeRequest): Operation {
  const { addressKey, siteTag, addressLimit, siteLimit, metering } = request
  return {
    keys: [`${keyPrefix}l:${addressKey}`],
    text: `${LETTERS.challenge}${limitsText(siteTag, addressLimit, siteLimit)}`,
    meters: meterKeys(keyPrefix, metering),
    namesMeters: false,
  }
}

export function solutionOperation(keyPrefix: string, request: SolutionRequest, keepMs: number): Operation {
  const { addressKey, spend, metering, addressLimit } = request
  const log = `${keyPrefix}l:${addressKey}`
  const hasOwnKey = spend !== undefined && addressLimit > MARKS_LIMIT_MAX // the nonce
  const namesMeters = countsProof(request)
  const text = solutionText(request, keepMs)
  return {
    keys: hasOwnKey ? [log, `${keyPrefix}n:${spend.nonce}`] : [log],
    text: namesMeters ? text + freeProofsText(metering!) : text,
    meters: meterKeys(keyPrefix, metering),
    namesMeters,
  }
}

export function takeBackOperation(keyPrefix: string, metering: Metering, accepted: number): Operation {
  const text = `${LETTERS.takeBack}${fromCharCode(Math.min(accepted, 255))}${freeProofsText(metering)}`
  return { keys: NO_KEYS, text, meters: meterKeys(keyPrefix, metering), namesMeters: true }
}

/** Keys of meters start with `e:`. The names of sites' meters and of first proofs have it already, those of networks do not. */
function meterKeys(keyPrefix: string, metering: Metering | undefined): readonly string[] {
  return metering?.names.map(name => keyPrefix + (name.startsWith('e:') ? name : `e:${name}`)) ?? NO_KEYS
}

function freeProofsText({ free }: Metering): string {
  let text = ''
  for (const proofs of free) text += uint24Text(Math.min(Math.round(proofs), 0xffffff))
  return text
}

function solutionText(request: SolutionRequest, keepMs: number): string {
  const kind = verificationKind(request)
  const { spend, siteTag, addressLimit, siteLimit } = request
  const limits = limitsText(siteTag, addressLimit, siteLimit)
  if (spend === undefined) return `${LETTERS.solution}${fromCharCode(kind)}${limits}${'\0'.repeat(12)}`
  const mark = nonceMark(spend.nonce)
  const markText =
    uint24Text(MARK_BIT | Math.floor(mark / MARK_LOW)) + fromCharCode((mark >>> B1) & 0xff, mark & 0xff)
  return `${LETTERS.solution}${fromCharCode(kind)}${limits}${uint32Text(spend.storeEpoch)}${uint24Text(keepMs)}${markText}`
}

/**
 * @param callerLimit 0: the caller is not charged
 * @param keyLimit 0: no API key is charged
 * @param keepMs how long the redemption record is kept
 */
export function redemptionText(
  callerLimit: number,
  keyLimit: number,
  redeem: TokenRedemption | undefined,
  keepMs: number,
): string {
  const limits = uint24Text(callerLimit) + uint24Text(keyLimit)
  if (redeem === undefined) return `${LETTERS.redemption}${limits}${'\0'.repeat(12)}`
  const until = Math.ceil((redeem.expiresAtMs + MARK_MARGIN_MS) / 1000)
  return `${LETTERS.redemption}${limits}${uint32Text(keepMs)}${uint32Text(redeem.storeEpoch)}${uint32Text(until)}${redeem.claim}`
}

export function refundText(chargedAtTime: number, callerLimit: number): string {
  return `${LETTERS.refund}${uint24Text(chargedAtTime)}${uint24Text(callerLimit)}`
}

export function peekText(keyLimit: number): string {
  return `${LETTERS.peek}${uint24Text(keyLimit)}`
}

function limitsText(siteTag: number, addressLimit: number, siteLimit: number): string {
  return uint24Text(siteTag) + uint24Text(addressLimit) + uint24Text(siteLimit)
}

function uint24Text(value: number): string {
  return fromCharCode(value >>> B2, (value >>> B1) & 0xff, value & 0xff)
}

function uint32Text(value: number): string {
  return fromCharCode(value >>> B3, (value >>> B2) & 0xff, (value >>> B1) & 0xff, value & 0xff)
}

export function firstOf(reply: Buffer, at: number): number {
  return readUInt24(reply, at + FIRST)
}

export function limitedAnswer(reply: Buffer, at: number): Limited {
  return {
    status: 'limited',
    retryAfterMs: firstOf(reply, at),
    policy: POLICIES[reply.readUInt32BE(at + SECOND)] ?? 'address',
  }
}

function metersOf(reply: Buffer, list: readonly Meter[]): Meters | undefined {
  if (list.length === 0) return undefined
  const nowMs = timeOf(reply)
  const meters = metersFrom(list, nowMs)
  fadeAll(meters, nowMs, PRICING)
  return meters
}

export function challengeAnswer(
  reply: Buffer | undefined,
  at: number,
  meters: readonly Meter[],
): ChallengeAdmission {
  switch (reply?.[at]) {
    case LIMITED:
      return limitedAnswer(reply!, at)
    case 1:
      return {
        status: 'admitted',
        siteCount: firstOf(reply!, at),
        accepted: reply!.readUInt16BE(at + SECOND),
        failures: reply!.readUInt16BE(at + SECOND + 2),
        meters: metersOf(reply!, meters),
      }
    default:
      return UNAVAILABLE
  }
}

export function solutionAnswer(
  reply: Buffer | undefined,
  at: number,
  meters: readonly Meter[],
): SolutionAdmission {
  if (reply?.[at] === LIMITED) return limitedAnswer(reply, at)
  const nonce = NONCES[reply?.[at] ?? 0]
  if (nonce === undefined) return UNAVAILABLE
  const [failures, accepted] = [firstOf(reply!, at), reply!.readUInt32BE(at + SECOND)]
  return { status: 'admitted', nonce, failures, accepted, meters: metersOf(reply!, meters) }
}

export function redemptionAnswer(reply: Buffer | undefined, at: number): RedemptionAdmission {
  if (reply?.[at] === LIMITED) return limitedAnswer(reply, at)
  const token = TOKENS[reply?.[at] ?? 0]
  return token === undefined ? UNAVAILABLE : { status: 'admitted', token }
}
