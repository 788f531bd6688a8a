/**
 * Rate limits as exact sliding windows: a request is admitted if fewer than `limit` were admitted in the 60 seconds before, so
 * no 60-second window ever holds more.
 *
 * This file's record counts redemptions, of a caller or an API key; store/redis/lua/redemptions/windows.lua mirrors it. Visitors'
 * addresses have another record (address-log.ts).
 *
 *   | total 4 | time 3 | count 2 | time 3 | count 2 | ...
 *
 * Times are milliseconds modulo 2^24 (4.6 hours), unambiguous because records expire within minutes. Requests of one time step
 * share an entry, with the last one's time. Up to a limit of 256 a step is one millisecond and the window exact. Above, it is
 * 1/256 of the window, to bound memory: a request may wait up to 0.4 % of a window too long, and none is admitted early.
 */

import { readUInt24, writeUInt24 } from './bytes.ts'

export const WINDOW_MS = 60_000

/** Which limit: the name in the RateLimit headers. */
export type Policy = 'address' | 'address-site' | 'api-key'

export const EXACT_LIMIT_MAX = 256

/** The length of a time step under a limit of so many requests a minute. */
export function stepMs(limit: number): number {
  return limit <= EXACT_LIMIT_MAX ? 1 : Math.ceil(WINDOW_MS / EXACT_LIMIT_MAX)
}

/** Times modulo 2^24 are subtracted modulo 2^24 too; a difference above half of that is a step back. */
export const WRAP = 0x1000000
export const WRAP_MASK = WRAP - 1
export const HALF_WRAP = 0x800000
export const COUNT_MAX = 0xffff

/** The time of a new entry: now, or the last entry's time if the clock stepped back. Then entries expire late, and none is lost. */
export function heldTime(nowMs: number, lastTime: number | undefined): number {
  const time = nowMs % WRAP
  return lastTime !== undefined && ((time - lastTime) & WRAP_MASK) > HALF_WRAP ? lastTime : time
}

export function isLive(time: number, entryTime: number): boolean {
  return ((time - entryTime) & WRAP_MASK) < WINDOW_MS
}

/** The time until an entry leaves the window. */
export function waitMs(time: number, entryTime: number): number {
  return WINDOW_MS - ((time - entryTime) & WRAP_MASK)
}

export interface Limited {
  readonly status: 'limited'
  /** A retry succeeds after this time if nothing else is admitted. */
  readonly retryAfterMs: number
  readonly policy: Policy
}

export function sharesStep(entryTime: number, time: number, step: number): boolean {
  return Math.floor(entryTime / step) === Math.floor(time / step)
}

const EMPTY = Buffer.alloc(0)
/** Bytes. */
const WINDOW_HEADER = 4
const WINDOW_ENTRY = 5

type WindowDecision = { readonly status: 'admitted'; readonly record: Buffer } | Limited

/** The request counts once `record` is stored. */
export function admitToWindow(
  record: Buffer | undefined,
  nowMs: number,
  limit: number,
  policy: Policy,
): WindowDecision {
  const length = record?.length ?? 0
  const time = heldTime(nowMs, length === 0 ? undefined : readUInt24(record!, length - WINDOW_ENTRY))
  let total = length === 0 ? 0 : record!.readUInt32BE(0)
  let firstLive = WINDOW_HEADER
  while (firstLive < length && !isLive(time, readUInt24(record!, firstLive))) {
    total -= record!.readUInt16BE(firstLive + 3)
    firstLive += WINDOW_ENTRY
  }
  if (total >= limit) {
    return {
      status: 'limited',
      retryAfterMs: windowWaitMs(record!, firstLive, time, total - limit + 1),
      policy,
    }
  }
  return {
    status: 'admitted',
    record: appendToWindow(record ?? EMPTY, firstLive, time, total, stepMs(limit)),
  }
}

function windowWaitMs(record: Buffer, firstLive: number, time: number, excess: number): number {
  let rest = excess
  for (let at = firstLive; at < record.length; at += WINDOW_ENTRY) {
    rest -= record.readUInt16BE(at + 3)
    if (rest <= 0) return waitMs(time, readUInt24(record, at))
  }
  return WINDOW_MS
}

function appendToWindow(old: Buffer, firstLive: number, time: number, total: number, step: number): Buffer {
  const last = old.length - WINDOW_ENTRY
  const joins =
    last >= firstLive &&
    sharesStep(readUInt24(old, last), time, step) &&
    old.readUInt16BE(last + 3) < COUNT_MAX
  const keptEnd = joins ? last : Math.max(firstLive, old.length)
  const at = WINDOW_HEADER + Math.max(0, keptEnd - firstLive)
  const record = Buffer.allocUnsafe(at + WINDOW_ENTRY)
  record.writeUInt32BE(total + 1, 0)
  if (keptEnd > firstLive) old.copy(record, WINDOW_HEADER, firstLive, keptEnd)
  writeUInt24(record, at, time)
  record.writeUInt16BE(joins ? old.readUInt16BE(last + 3) + 1 : 1, at + 3)
  return record
}
