/**
 * What one address did at /challenge and /verify in the last minute, for any number of sites, and which nonces it has
 * spent: one record, so that one read and one write answer both limits of an endpoint, how often the address failed,
 * and single use. Plain bytes, so that the embedded store, the fallback in memory and the Redis scripts
 * (store/redis/lua/address-log.lua, which mirrors this file and passes the same tests) share one definition.
 *
 *   entry of 8 bytes     | time 3 | kind, site 3 | count 2 |     a request; in time order
 *                        | until 3 | 1, mark 5             |     a spent nonce, remembered until then
 *
 *   kind, site   kind in the upper 3 bits (0 challenge, 1 verification, 2 failed verification), site tag in 21
 *   mark         39 bits of the nonce's MAC (`nonceMark`), the bit before them set
 *
 * Times are milliseconds modulo 2^24 (4.6 hours), which is unambiguous because a record is forgotten once its last entry
 * is dead. A record ends with a request, never with a mark.
 *
 * Two nonces of one address have the same mark with probability 2^-39; then the second is refused as used, and its
 * client asks for another challenge. Above MARKS_LIMIT_MAX verifications a minute marks would make records long, so
 * there the store keeps each under a key of its own. (If the limit is moved across that bound, nonces spent just before
 * could yield a second token; it redeems nothing, since redemption counts per nonce too.)
 */

import { ReusedBytes } from './bytes.ts'
import {
  COUNT_MAX,
  HALF_WRAP,
  heldTime,
  isLive,
  type Refused,
  readUInt24,
  sharesSlot,
  slotMs,
  WINDOW_MS,
  WRAP_MASK,
  waitMs,
  writeUInt24,
} from './limits.ts'

export const LogKind = { challenge: 0, verification: 1, failedVerification: 2 } as const
export type LogKind = (typeof LogKind)[keyof typeof LogKind]

export interface LogRequest {
  /** 1 to 2^21 - 1; 0 when the site is not known. */
  readonly siteTag: number
  readonly addressLimit: number
  /** 0 for a site that is not known: only the address's limit counts. */
  readonly siteLimit: number
}

/** A nonce to be spent with the request. */
export interface Spending {
  /** From `nonceMark`. */
  readonly mark: number
  /** How long it must be remembered, at most 2^23 ms. */
  readonly keepMs: number
}

export type LogDecision =
  | {
      readonly admitted: true
      /** The record to keep. Its memory is used again by the next call. */
      readonly record: Buffer
      /** For how long. */
      readonly keepMs: number
      /** Requests of this endpoint for this site in the window, before this one. */
      readonly siteCount: number
      /** Failed verifications of the address for this site in the window, before this one. */
      readonly failures: number
      /** The nonce to be spent was spent before. */
      readonly isUsed: boolean
    }
  | Refused

/**
 * Up to this many verifications a minute per address, spent nonces are remembered in the record: at most 700 of them, if
 * challenges live for ten minutes. The same in lua/address-log.lua.
 */
export const MARKS_LIMIT_MAX = 64

const ENTRY = 8
const LABEL = 3
const COUNT = 6
/** Label: kind and site tag, or the first 23 bits of a mark under a set bit. */
const KIND_SHIFT = 21
const TAG_MASK = 0x1fffff
const MARK_BIT = 0x800000
const MARK_LOW_BITS = 0x10000

/** The record under construction: live entries, then what is added. */
const construction = new ReusedBytes()
let scratch = construction.ofLength(4096)

export function admitToLog(
  record: Buffer | undefined,
  nowMs: number,
  kind: LogKind,
  request: LogRequest,
  spending?: Spending,
): LogDecision {
  const length = record?.length ?? 0
  const time = heldTime(nowMs, length === 0 ? undefined : readUInt24(record!, length - ENTRY))
  if (scratch.length < length + 2 * ENTRY) scratch = construction.ofLength(2 * length + 2 * ENTRY)
  const markHigh = spending === undefined ? 0 : MARK_BIT | Math.floor(spending.mark / MARK_LOW_BITS)
  const markLow = spending === undefined ? 0 : spending.mark % MARK_LOW_BITS
  let end = 0
  let keepMs = WINDOW_MS
  let addressCount = 0
  let siteCount = 0
  let failures = 0
  let isUsed = false
  for (let at = 0; at < length; at += ENTRY) {
    const entryTime = readUInt24(record!, at)
    const label = readUInt24(record!, at + LABEL)
    const count = readCount(record!, at)
    if (label >= MARK_BIT) {
      const restMs = (entryTime - time) & WRAP_MASK
      if (restMs === 0 || restMs >= HALF_WRAP) continue
      if (restMs > keepMs) keepMs = restMs
      if (label === markHigh && count === markLow) isUsed = true
    } else {
      if (!isLive(time, entryTime)) continue
      const isOfSite = (label & TAG_MASK) === request.siteTag
      if (isOfSite && label >> KIND_SHIFT === LogKind.failedVerification) failures += count
      if (isSameEndpoint(label, kind)) {
        addressCount += count
        if (isOfSite) siteCount += count
      }
    }
    end = writeEntry(end, entryTime, label, count)
  }
  const addressExcess = addressCount - request.addressLimit + 1
  const siteExcess = request.siteLimit === 0 ? 0 : siteCount - request.siteLimit + 1
  if (addressExcess > 0 || siteExcess > 0) return refusal(end, time, kind, request, addressExcess, siteExcess)
  if (spending !== undefined && !isUsed) {
    end = writeEntry(end, (time + spending.keepMs) & WRAP_MASK, markHigh, markLow)
    keepMs = Math.max(keepMs, spending.keepMs)
  }
  end = addRequest(end, time, kind, request)
  return { admitted: true, record: construction.ofLength(end), keepMs, siteCount, failures, isUsed }
}

function readCount(record: Buffer, at: number): number {
  return (record[at + COUNT]! << 8) | record[at + COUNT + 1]!
}

/** Returns where the next entry goes. */
function writeEntry(at: number, time: number, label: number, count: number): number {
  writeUInt24(scratch, at, time)
  writeUInt24(scratch, at + LABEL, label)
  scratch[at + COUNT] = count >> 8
  scratch[at + COUNT + 1] = count & 0xff
  return at + ENTRY
}

/** Of a request's label, not a mark. */
function isSameEndpoint(label: number, kind: LogKind): boolean {
  return (label >> KIND_SHIFT === LogKind.challenge) === (kind === LogKind.challenge)
}

function refusal(
  end: number,
  time: number,
  kind: LogKind,
  { siteTag }: LogRequest,
  addressExcess: number,
  siteExcess: number,
): Refused {
  const addressMs = excessWaitMs(end, time, kind, addressExcess)
  const siteMs = excessWaitMs(end, time, kind, siteExcess, siteTag)
  return siteMs > addressMs
    ? { admitted: false, retryAfterMs: siteMs, policy: 'address-site' }
    : { admitted: false, retryAfterMs: addressMs, policy: 'address' }
}

/** How long until `excess` requests of the endpoint (for one site, if there is a tag) have left the window. */
function excessWaitMs(end: number, time: number, kind: LogKind, excess: number, siteTag?: number): number {
  let rest = excess
  for (let at = 0; rest > 0 && at < end; at += ENTRY) {
    const label = readUInt24(scratch, at + LABEL)
    if (label >= MARK_BIT || !isSameEndpoint(label, kind)) continue
    if (siteTag !== undefined && (label & TAG_MASK) !== siteTag) continue
    rest -= readCount(scratch, at)
    if (rest <= 0) return waitMs(time, readUInt24(scratch, at))
  }
  return 0
}

/** Returns the record's length. */
function addRequest(end: number, time: number, kind: LogKind, request: LogRequest): number {
  const { siteLimit, addressLimit, siteTag } = request
  const label = (kind << KIND_SHIFT) | (siteLimit === 0 ? 0 : siteTag)
  const slot = slotMs(siteLimit === 0 ? addressLimit : Math.min(addressLimit, siteLimit))
  const joined = joinedEntry(end, time, slot, label)
  if (joined === undefined) return writeEntry(end, time, label, 1)
  const count = readCount(scratch, joined) + 1
  scratch.copyWithin(joined, joined + ENTRY, end)
  return writeEntry(end - ENTRY, time, label, count)
}

/** Where the entry of the same slot, kind and site is. What joins it moves to the end, so that times stay in order. */
function joinedEntry(end: number, time: number, slot: number, label: number): number | undefined {
  for (let at = end - ENTRY; at >= 0; at -= ENTRY) {
    const entryLabel = readUInt24(scratch, at + LABEL)
    if (entryLabel >= MARK_BIT) continue
    if (!sharesSlot(readUInt24(scratch, at), time, slot)) return undefined
    if (entryLabel === label && readCount(scratch, at) < COUNT_MAX) return at
  }
  return undefined
}
