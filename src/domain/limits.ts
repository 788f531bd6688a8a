/**
 * Rate limits: exact sliding windows. A request is admitted if fewer than `limit` requests were admitted in the 60
 * seconds before it, so no 60-second window ever holds more than the limit; a refused request leaves no trace.
 *
 * Two record forms, both plain bytes, so that the embedded store, the fallback in memory and the Redis scripts
 * (store/redis/lua/windows.lua, which mirrors this file and passes the same tests) share one definition:
 *
 *   AddressLog   what one address did at /challenge and /verify, for any number of sites: entries of 9 bytes, in time
 *                order. One record answers both limits of an endpoint and how often the address failed.
 *                  | time 3 | kind 1 | site tag 3 | count 2 |
 *   PlainWindow  one counter (a caller or an API key at /verify-token): a total of 4 bytes, then entries of 5 bytes.
 *                  | total 4 | time 3 | count 2 | time 3 | count 2 | ...
 *
 * Times are milliseconds modulo 2^24 (4.6 hours), which is unambiguous because records die 60 seconds after their last
 * write. Requests that share a slot share an entry, counted at the time of the last: up to a limit of 256 a slot is
 * one millisecond and the window is exact; above, it is 1/256 of the window, so memory stays bounded and a refusal
 * can come at most 0.4 % of a window too early, an admission never.
 */

export const WINDOW_MS = 60_000

/** The contract's limits, requests per minute (interface specification, section 8). */
export interface Limits {
  readonly challengeAddress: number
  readonly challengeAddressSite: number
  readonly verifyAddress: number
  readonly verifyAddressSite: number
  readonly redeemAddress: number
  readonly redeemApiKey: number
}

export const CONTRACT_LIMITS: Limits = {
  challengeAddress: 60,
  challengeAddressSite: 30,
  verifyAddress: 30,
  verifyAddressSite: 20,
  redeemAddress: 100,
  redeemApiKey: 200,
}

/** Which limit refused: the name in the RateLimit headers. */
export type Policy = 'address' | 'address-site' | 'api-key'

const EXACT_LIMIT_MAX = 256

/** Requests this close together may share an entry. */
export function slotMs(limit: number): number {
  return limit <= EXACT_LIMIT_MAX ? 1 : Math.ceil(WINDOW_MS / EXACT_LIMIT_MAX)
}

const WRAP_MASK = 0xffffff
const HALF_WRAP = 0x800000
const COUNT_MAX = 0xffff

/** A clock that stepped back is held at the last entry, so that a step can delay an expiry but never forget one. */
function heldTime(nowMs: number, lastTime: number | undefined): number {
  const time = nowMs % (WRAP_MASK + 1)
  return lastTime !== undefined && ((time - lastTime) & WRAP_MASK) > HALF_WRAP ? lastTime : time
}

function isLive(time: number, entryTime: number): boolean {
  return ((time - entryTime) & WRAP_MASK) < WINDOW_MS
}

function waitMs(time: number, entryTime: number): number {
  return WINDOW_MS - ((time - entryTime) & WRAP_MASK)
}

export const LogKind = { challenge: 0, verification: 1, failedVerification: 2 } as const
export type LogKind = (typeof LogKind)[keyof typeof LogKind]

export interface LogRequest {
  readonly kind: LogKind
  /** 1 to 2^24 - 1; 0 when the site is not known. */
  readonly siteTag: number
  readonly addressLimit: number
  /** 0 for a site that is not known: only the address's limit counts. */
  readonly siteLimit: number
}

export type LogDecision =
  | {
      readonly admitted: true
      /** The record to keep, for 60 seconds. */
      readonly record: Buffer
      /** Requests of this endpoint for this site in the window, before this one. */
      readonly siteCount: number
      /** Failed verifications of the address in the window, before this one. */
      readonly failures: number
    }
  | Refused

export interface Refused {
  readonly admitted: false
  /** After this long the request would be admitted, if nothing else were admitted meanwhile. */
  readonly retryAfterMs: number
  readonly policy: Policy
}

const LOG_ENTRY = 9

export function admitToLog(record: Buffer | undefined, nowMs: number, request: LogRequest): LogDecision {
  const length = record?.length ?? 0
  const time = heldTime(nowMs, length === 0 ? undefined : record!.readUIntBE(length - LOG_ENTRY, 3))
  let firstLive = length
  let addressCount = 0
  let siteCount = 0
  let failures = 0
  for (let at = 0; at < length; at += LOG_ENTRY) {
    if (!isLive(time, record!.readUIntBE(at, 3))) continue
    if (firstLive === length) firstLive = at
    const count = record!.readUInt16BE(at + 7)
    const kind = record![at + 3]!
    if (kind === LogKind.failedVerification) failures += count
    if (!sameEndpoint(kind, request.kind)) continue
    addressCount += count
    if (record!.readUIntBE(at + 4, 3) === request.siteTag) siteCount += count
  }
  const addressExcess = addressCount - request.addressLimit + 1
  const siteExcess = request.siteLimit === 0 ? 0 : siteCount - request.siteLimit + 1
  if (addressExcess > 0 || siteExcess > 0) {
    const live = record!.subarray(firstLive)
    return longestWait(
      logWaitMs(live, time, request, addressExcess, false),
      logWaitMs(live, time, request, siteExcess, true),
    )
  }
  const live = record?.subarray(firstLive) ?? EMPTY
  return { admitted: true, record: appendToLog(live, time, request), siteCount, failures }
}

const EMPTY = Buffer.alloc(0)

function sameEndpoint(kind: number, other: number): boolean {
  return (kind === LogKind.challenge) === (other === LogKind.challenge)
}

function longestWait(addressMs: number, siteMs: number): Refused {
  return siteMs > addressMs
    ? { admitted: false, retryAfterMs: siteMs, policy: 'address-site' }
    : { admitted: false, retryAfterMs: addressMs, policy: 'address' }
}

/** How long until `excess` requests of the endpoint (of the site, if `ofSite`) have left the window. */
function logWaitMs(live: Buffer, time: number, request: LogRequest, excess: number, ofSite: boolean): number {
  let rest = excess
  for (let at = 0; rest > 0 && at < live.length; at += LOG_ENTRY) {
    if (!sameEndpoint(live[at + 3]!, request.kind)) continue
    if (ofSite && live.readUIntBE(at + 4, 3) !== request.siteTag) continue
    rest -= live.readUInt16BE(at + 7)
    if (rest <= 0) return waitMs(time, live.readUIntBE(at, 3))
  }
  return 0
}

function appendToLog(live: Buffer, time: number, request: LogRequest): Buffer {
  const siteTag = request.siteLimit === 0 ? 0 : request.siteTag
  const slot = slotMs(
    request.siteLimit === 0 ? request.addressLimit : Math.min(request.addressLimit, request.siteLimit),
  )
  const joined = joinedEntry(live, time, slot, request.kind, siteTag)
  const count = joined === undefined ? 1 : live.readUInt16BE(joined + 7) + 1
  const entry = Buffer.allocUnsafe(LOG_ENTRY)
  entry.writeUIntBE(time, 0, 3)
  entry[3] = request.kind
  entry.writeUIntBE(siteTag, 4, 3)
  entry.writeUInt16BE(count, 7)
  if (joined === undefined) return Buffer.concat([live, entry])
  return Buffer.concat([live.subarray(0, joined), live.subarray(joined + LOG_ENTRY), entry])
}

/** Where the entry of the same slot, kind and site is. What joins it moves to the end, so that times stay in order. */
function joinedEntry(
  live: Buffer,
  time: number,
  slot: number,
  kind: LogKind,
  siteTag: number,
): number | undefined {
  for (let at = live.length - LOG_ENTRY; at >= 0; at -= LOG_ENTRY) {
    if (!sharesSlot(live.readUIntBE(at, 3), time, slot)) return undefined
    const isSame = live[at + 3] === kind && live.readUIntBE(at + 4, 3) === siteTag
    if (isSame && live.readUInt16BE(at + 7) < COUNT_MAX) return at
  }
  return undefined
}

function sharesSlot(entryTime: number, time: number, slot: number): boolean {
  return Math.floor(entryTime / slot) === Math.floor(time / slot)
}

const WINDOW_HEADER = 4
const WINDOW_ENTRY = 5

export type WindowDecision = { readonly admitted: true; readonly record: Buffer } | Refused

/** Whether one more request fits into a window; `policy` names it if not. Does not charge: see `record`. */
export function admitToWindow(
  record: Buffer | undefined,
  nowMs: number,
  limit: number,
  policy: Policy,
): WindowDecision {
  const length = record?.length ?? 0
  const time = heldTime(nowMs, length === 0 ? undefined : record!.readUIntBE(length - WINDOW_ENTRY, 3))
  let total = length === 0 ? 0 : record!.readUInt32BE(0)
  let firstLive = WINDOW_HEADER
  while (firstLive < length && !isLive(time, record!.readUIntBE(firstLive, 3))) {
    total -= record!.readUInt16BE(firstLive + 3)
    firstLive += WINDOW_ENTRY
  }
  if (total >= limit) {
    return {
      admitted: false,
      retryAfterMs: windowWaitMs(record!, firstLive, time, total - limit + 1),
      policy,
    }
  }
  return { admitted: true, record: appendToWindow(record ?? EMPTY, firstLive, time, total, slotMs(limit)) }
}

function windowWaitMs(record: Buffer, firstLive: number, time: number, excess: number): number {
  let rest = excess
  for (let at = firstLive; at < record.length; at += WINDOW_ENTRY) {
    rest -= record.readUInt16BE(at + 3)
    if (rest <= 0) return waitMs(time, record.readUIntBE(at, 3))
  }
  return WINDOW_MS
}

function appendToWindow(old: Buffer, firstLive: number, time: number, total: number, slot: number): Buffer {
  const last = old.length - WINDOW_ENTRY
  const joins =
    last >= firstLive &&
    sharesSlot(old.readUIntBE(last, 3), time, slot) &&
    old.readUInt16BE(last + 3) < COUNT_MAX
  const keptEnd = joins ? last : Math.max(firstLive, old.length)
  const at = WINDOW_HEADER + Math.max(0, keptEnd - firstLive)
  const record = Buffer.allocUnsafe(at + WINDOW_ENTRY)
  record.writeUInt32BE(total + 1, 0)
  if (keptEnd > firstLive) old.copy(record, WINDOW_HEADER, firstLive, keptEnd)
  record.writeUIntBE(time, at, 3)
  record.writeUInt16BE(joins ? old.readUInt16BE(last + 3) + 1 : 1, at + 3)
  return record
}
