/**
 * The record of one address: its requests to /challenge and /verify in the last minute, at all sites, and its used nonces, so a
 * request costs one read and one write. store/redis/lua/visits/address-log.lua mirrors this file.
 *
 *   entry of 8 bytes     | time 3 | label 3 | count 2 |     requests, in time order
 *                        | until 3 | mark 5           |     a used nonce
 *
 *   label   a clear bit, 2 bits of kind, 21 of site tag
 *   mark    a set bit (MARK_BIT), then 39 bits of the used nonce's MAC (`nonceMark`)
 *
 * Times are milliseconds modulo 2^24 (limits.ts): unambiguous, because a record is deleted after `keepMs`, less than half of
 * that. Requests of one kind and site within a step of time share an entry, with the newest time.
 *
 * Two nonces of one address share a mark with probability 2^-39; the client of the second, refused as used, gets another
 * challenge.
 */

import { ReusedBytes, readUInt24, writeUInt24 } from './bytes.ts'
import {
  COUNT_MAX,
  HALF_WRAP,
  heldTime,
  isLive,
  type Limited,
  sharesStep,
  stepMs,
  WINDOW_MS,
  WRAP_MASK,
  waitMs,
} from './limits.ts'

/** Kinds of requests, all that a label's 2 bits can tell. `noProof`, a /verify without a nonce to spend, counts only towards limits. */
export const LogKind = { challenge: 0, verification: 1, failedVerification: 2, noProof: 3 } as const
export type LogKind = (typeof LogKind)[keyof typeof LogKind] & (0 | 1 | 2 | 3) // a fifth kind does not compile where it is used

export function verificationKind({ failed, spend }: { failed: boolean; spend: unknown }): LogKind {
  if (failed) return LogKind.failedVerification
  return spend === undefined ? LogKind.noProof : LogKind.verification
}

/** Limits are requests a minute to one endpoint. If the site is unknown, tag and site limit are 0, and only the address's limit applies. */
export interface LogRequest {
  /** `Site.logTag`, 1 to 2^21 - 1. */
  readonly siteTag: number
  readonly addressLimit: number
  readonly siteLimit: number
}

/** A nonce to record as used. */
export interface Spending {
  /** Its `nonceMark`. */
  readonly mark: number
  /** The nonce could still be accepted for this time. Below 2^23, half of the range of a time. */
  readonly keepMs: number
}

type LogDecision =
  | {
      readonly status: 'admitted'
      /** The record to store for `keepMs`. The next call reuses its memory. */
      readonly record: Buffer
      readonly keepMs: number
      /** Requests to the same endpoint at this site in the last minute, without this one. */
      readonly siteCount: number
      /** Failed verifications at this site in the last minute, without this one. */
      readonly failures: number
      /** Accepted proofs at all sites in `ACCEPTED_MS`; estimated if the record has no used nonces (see `MARKS_LIMIT_MAX`). */
      readonly accepted: number
      /** The nonce was spent before. The request counts like a first one; the caller refuses it. */
      readonly isUsed: boolean
    }
  | Limited

/**
 * If an address's limit is above this many verifications a minute, each nonce gets a key of its own: kept for up to 11 minutes, over
 * 700 would be in one record. When an operator moves a limit across this, a nonce used just before can yield a second token, but
 * only one of the two can be redeemed.
 */
export const MARKS_LIMIT_MAX = 64

/** An accepted proof counts for its address for as long as its nonce is kept: for `keepMs`, but at least for this time. */
export const ACCEPTED_MS = 300_000
export const ACCEPTED_MINUTES = ACCEPTED_MS / WINDOW_MS

const ENTRY_BYTES = 8
const LABEL_AT = 3
const COUNT_AT = 6
const KIND_SHIFT = 21
const TAG_MASK = 0x1fffff
/** A mark's upper 24 bits, of which MARK_BIT is the first, stand in the place of a label, its lower 16 in that of a count. */
export const MARK_BIT = 0x800000
export const MARK_LOW_RANGE = 0x10000

/** The record that `admitToLog` and the functions below it write. Each call reuses the memory, so it makes no garbage. */
const memory = new ReusedBytes()
let newRecord = memory.ofLength(0)

/** Copies the entries that are not over, counts them, and, unless a limit refuses the request, adds the nonce and then the request. */
export function admitToLog(
  record: Buffer | undefined,
  nowMs: number,
  kind: LogKind,
  request: LogRequest,
  spending?: Spending,
): LogDecision {
  const length = record?.length ?? 0
  // The last entry is always a request: `addRequest` ends every record.
  const time = heldTime(nowMs, length === 0 ? undefined : readUInt24(record!, length - ENTRY_BYTES))
  newRecord = memory.ofLength(length + 2 * ENTRY_BYTES) // the old entries, a used nonce and a request
  const markHigh = spending === undefined ? 0 : MARK_BIT | Math.floor(spending.mark / MARK_LOW_RANGE)
  const markLow = spending === undefined ? 0 : spending.mark % MARK_LOW_RANGE
  let end = 0
  let keepMs = WINDOW_MS
  let addressCount = 0
  let siteCount = 0
  let failures = 0
  let verifications = 0
  let marks = 0
  let isUsed = false
  for (let at = 0; at < length; at += ENTRY_BYTES) {
    const entryTime = readUInt24(record!, at)
    const label = readUInt24(record!, at + LABEL_AT)
    const count = readCount(record!, at)
    if (label >= MARK_BIT) {
      const restMs = (entryTime - time) & WRAP_MASK
      if (restMs === 0 || restMs >= HALF_WRAP) continue // `until` is over
      if (restMs > keepMs) keepMs = restMs
      marks++
      if (label === markHigh && count === markLow) isUsed = true
    } else {
      if (!isLive(time, entryTime)) continue
      const isSameSite = (label & TAG_MASK) === request.siteTag
      if (isSameSite && label >> KIND_SHIFT === LogKind.failedVerification) failures += count
      if (label >> KIND_SHIFT === LogKind.verification) verifications += count
      if (isSameEndpoint(label, kind)) {
        addressCount += count
        if (isSameSite) siteCount += count
      }
    }
    end = writeEntry(end, entryTime, label, count)
  }
  const addressExcess = addressCount - request.addressLimit + 1
  const siteExcess = request.siteLimit === 0 ? 0 : siteCount - request.siteLimit + 1
  if (addressExcess > 0 || siteExcess > 0) return refusal(end, time, kind, request, addressExcess, siteExcess)
  if (spending !== undefined && !isUsed) {
    const markMs = Math.max(spending.keepMs, ACCEPTED_MS)
    end = writeEntry(end, (time + markMs) & WRAP_MASK, markHigh, markLow)
    keepMs = Math.max(keepMs, markMs)
  }
  end = addRequest(end, time, kind, request)
  // Without marks, five minutes are estimated from one. A single proof stays one, or its address would count as a returning one.
  const accepted = marks > 0 ? marks : verifications > 1 ? verifications * ACCEPTED_MINUTES : verifications
  return { status: 'admitted', record: memory.ofLength(end), keepMs, siteCount, failures, accepted, isUsed }
}

function readCount(record: Buffer, at: number): number {
  return (record[at + COUNT_AT]! << 8) | record[at + COUNT_AT + 1]!
}

function writeEntry(at: number, time: number, label: number, count: number): number {
  writeUInt24(newRecord, at, time)
  writeUInt24(newRecord, at + LABEL_AT, label)
  newRecord[at + COUNT_AT] = count >> 8
  newRecord[at + COUNT_AT + 1] = count & 0xff
  return at + ENTRY_BYTES
}

/** All kinds but `challenge` are requests to /verify. */
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
): Limited {
  const addressMs = excessWaitMs(end, time, kind, addressExcess)
  const siteMs = excessWaitMs(end, time, kind, siteExcess, siteTag)
  return siteMs > addressMs
    ? { status: 'limited', retryAfterMs: siteMs, policy: 'address-site' }
    : { status: 'limited', retryAfterMs: addressMs, policy: 'address' }
}

/** Time until `excess` requests to the endpoint leave the window. */
function excessWaitMs(end: number, time: number, kind: LogKind, excess: number, siteTag?: number): number {
  let rest = excess
  for (let at = 0; rest > 0 && at < end; at += ENTRY_BYTES) {
    const label = readUInt24(newRecord, at + LABEL_AT)
    if (label >= MARK_BIT || !isSameEndpoint(label, kind)) continue
    if (siteTag !== undefined && (label & TAG_MASK) !== siteTag) continue
    rest -= readCount(newRecord, at)
    if (rest <= 0) return waitMs(time, readUInt24(newRecord, at))
  }
  return 0
}

function addRequest(end: number, time: number, kind: LogKind, request: LogRequest): number {
  const { siteLimit, addressLimit, siteTag } = request
  const label = (kind << KIND_SHIFT) | (siteLimit === 0 ? 0 : siteTag)
  const step = stepMs(siteLimit === 0 ? addressLimit : Math.min(addressLimit, siteLimit))
  const joined = joinedEntry(end, time, step, label)
  if (joined === undefined) return writeEntry(end, time, label, 1)
  const count = readCount(newRecord, joined) + 1
  // The entry has a new time, so it moves to the end.
  newRecord.copyWithin(joined, joined + ENTRY_BYTES, end)
  return writeEntry(end - ENTRY_BYTES, time, label, count)
}

/** Finds the entry of this label in the same step of time, to which a request is added. */
function joinedEntry(end: number, time: number, step: number, label: number): number | undefined {
  for (let at = end - ENTRY_BYTES; at >= 0; at -= ENTRY_BYTES) {
    const entryLabel = readUInt24(newRecord, at + LABEL_AT)
    if (entryLabel >= MARK_BIT) continue
    if (!sharesStep(readUInt24(newRecord, at), time, step)) return undefined
    if (entryLabel === label && readCount(newRecord, at) < COUNT_MAX) return at
  }
  return undefined
}
