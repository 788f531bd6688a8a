/** Encodes operations of the turn script, and decodes their answers, as their Lua files describe both. */

import { MARKS_LIMIT_MAX, verificationKind } from '../../domain/address-log.ts'
import { type Limited, type Policy, readUInt24 } from '../../domain/limits.ts'
import {
  fadeAll,
  hasSolveMeters,
  type Meter,
  type Meters,
  metersFrom,
  wideMeter,
} from '../../domain/meters.ts'
import { nonceMark } from '../../domain/nonce.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  MARK_MARGIN_MS,
  type Metering,
  type RedemptionAdmission,
  type SolutionAdmission,
  type SolutionRequest,
  type TokenRedemption,
  UNAVAILABLE,
} from '../store.ts'
import { type Operation, timeOf } from './turn.ts'

const { fromCharCode } = String
const NONE: readonly string[] = []
const [B1, B2, B3] = [8, 16, 24]
const MARK_LOW = 0x10000
const MARK_BIT = 0x80

export function probeOperation(key: string, writes: boolean): Operation {
  return plain([key], writes ? 'PW' : 'P')
}

export function plain(keys: readonly string[], text: string): Operation {
  return { keys, text, meters: NONE, namesMeters: false }
}

export function challengeOperation(keyPrefix: string, request: ChallengeRequest): Operation {
  const { addressKey, siteTag, addressLimit, siteLimit, metering } = request
  return {
    keys: [`${keyPrefix}l:${addressKey}`],
    text: `C${limitsText(siteTag, addressLimit, siteLimit)}`,
    meters: meterKeys(keyPrefix, metering),
    namesMeters: false,
  }
}

export function solutionOperation(keyPrefix: string, request: SolutionRequest, keepMs: number): Operation {
  const { addressKey, spend, metering, addressLimit, failed } = request
  const log = `${keyPrefix}l:${addressKey}`
  const isApart = spend !== undefined && addressLimit > MARKS_LIMIT_MAX
  const namesMeters = metering?.draw !== undefined && spend !== undefined && !failed
  const text = solutionText(request, keepMs)
  return {
    keys: isApart ? [log, `${keyPrefix}n:${spend.nonce}`] : [log],
    text: namesMeters ? text + meteringText(metering) : text,
    meters: meterKeys(keyPrefix, metering),
    namesMeters,
  }
}

/** Shared keys are the same strings in each call, so V8 keeps their hashes. */
function meterKeys(keyPrefix: string, metering: Metering | undefined): readonly string[] {
  if (metering === undefined) return NONE
  const { shared, networks } = metering
  const keys = sharedKeys(keyPrefix, shared).slice()
  for (const network of networks) keys.push(`${keyPrefix}m:${network}`)
  return keys
}

const sharedKeysOf = new WeakMap<readonly string[], Map<string, string[]>>()

function sharedKeys(keyPrefix: string, shared: readonly string[]): string[] {
  let byPrefix = sharedKeysOf.get(shared)
  if (byPrefix === undefined) sharedKeysOf.set(shared, (byPrefix = new Map()))
  let keys = byPrefix.get(keyPrefix)
  if (keys === undefined) byPrefix.set(keyPrefix, (keys = shared.map(name => keyPrefix + name)))
  return keys
}

function meteringText({ shared, isV4, expected, draw, isInTime }: Metering): string {
  const notAsked = hasSolveMeters(shared.length) ? 3 : 0
  const time = isInTime === undefined ? notAsked : isInTime ? 1 : 2
  return fromCharCode(isV4 ? 4 : 6, draw!) + uint24Text(Math.round(expected)) + fromCharCode(time)
}

function solutionText(request: SolutionRequest, keepMs: number): string {
  const kind = verificationKind(request)
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
 * @param callerLimit 0: the caller is not charged
 * @param keyLimit 0: no API key is charged
 * @param keepMs of the redemption record
 */
export function redemptionText(
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

export function refundText(chargedAtTime: number, callerLimit: number): string {
  return `F${uint24Text(chargedAtTime)}${uint24Text(callerLimit)}`
}

export function peekText(keyLimit: number): string {
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

/** By the scripts' numbers, like NONCES and TOKENS. */
const POLICIES: readonly Policy[] = ['address', 'address', 'address-site', 'api-key']

/** | status 1 | first 3 | second 4 |. An unknown status becomes `unavailable`, which refuses. */
const FIRST = 1
const SECOND = 4

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

/** Of an operation's reply. */
export interface ReplyMeters {
  readonly list: readonly Meter[]
  readonly sharedCount: number
  readonly shards: number
}

function metersOf(reply: Buffer, { list, sharedCount, shards }: ReplyMeters): Meters | undefined {
  if (list.length === 0) return undefined
  const meters = metersFrom(list, sharedCount)
  fadeAll(meters, timeOf(reply))
  const [owner, wide] = meters.networks
  if (shards === 1 || wide === undefined) return meters
  return { ...meters, networks: [owner!, wideMeter(owner!, wide, shards)] }
}

export function challengeAnswer(
  reply: Buffer | undefined,
  at: number,
  meters: ReplyMeters,
): ChallengeAdmission {
  switch (reply?.[at]) {
    case 0:
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

const NONCES = [undefined, 'spent', 'used', 'untouched'] as const

export function solutionAnswer(
  reply: Buffer | undefined,
  at: number,
  meters: ReplyMeters,
): SolutionAdmission {
  if (reply?.[at] === 0) return limitedAnswer(reply, at)
  const nonce = NONCES[reply?.[at] ?? 0]
  if (nonce === undefined) return UNAVAILABLE
  const [failures, accepted] = [firstOf(reply!, at), reply!.readUInt32BE(at + SECOND)]
  return { status: 'admitted', nonce, failures, accepted, meters: metersOf(reply!, meters) }
}

const TOKENS = [undefined, 'redeemed', 'used', 'forgotten', 'untouched'] as const

export function redemptionAnswer(reply: Buffer | undefined, at: number): RedemptionAdmission {
  if (reply?.[at] === 0) return limitedAnswer(reply, at)
  const token = TOKENS[reply?.[at] ?? 0]
  return token === undefined ? UNAVAILABLE : { status: 'admitted', token }
}
