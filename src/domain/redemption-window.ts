/**
 * The record that counts the redemptions of a caller or an API key in the last minute. Requests within one step of time share an
 * entry, which has the time of the last one; limits.ts says how long a step is, and why, and what a clock that was set back does.
 * Fields, in bytes, with times modulo 2^24; `total` is the sum of the counts:
 *
 *   | total 4 | time 3 | count 2 | time 3 | count 2 | ...
 *
 * store/redis/lua/redemptions/windows.lua mirrors this file.
 */

import { readUInt24, writeUInt24 } from './bytes.ts'
import { COUNT_MAX, heldTime, isLive, type Limited, sharesStep, stepMs, WINDOW_MS, waitMs } from './limits.ts'

const HEADER_BYTES = 4
const EMPTY = Buffer.alloc(HEADER_BYTES)
const ENTRY_BYTES = 5
const COUNT_AT = 3

type WindowDecision = { readonly status: 'admitted'; readonly record: Buffer } | Omit<Limited, 'policy'>

/** The request counts once the returned record is stored. @param limit at least 1 */
export function admitToWindow(stored: Buffer | undefined, nowMs: number, limit: number): WindowDecision {
  const record = stored ?? EMPTY
  const { length } = record
  const time = heldTime(nowMs, length === HEADER_BYTES ? undefined : readUInt24(record, length - ENTRY_BYTES))
  let total = record.readUInt32BE(0)
  let firstLive = HEADER_BYTES
  while (firstLive < length && !isLive(time, readUInt24(record, firstLive))) {
    total -= record.readUInt16BE(firstLive + COUNT_AT)
    firstLive += ENTRY_BYTES
  }
  return total < limit
    ? { status: 'admitted', record: appended(record, firstLive, time, total, stepMs(limit)) }
    : { status: 'limited', retryAfterMs: excessWaitMs(record, firstLive, time, total - limit + 1) }
}

/** Time until `excess` requests leave the window. */
function excessWaitMs(record: Buffer, firstLive: number, time: number, excess: number): number {
  let rest = excess
  for (let at = firstLive; at < record.length; at += ENTRY_BYTES) {
    rest -= record.readUInt16BE(at + COUNT_AT)
    if (rest <= 0) return waitMs(time, readUInt24(record, at))
  }
  return WINDOW_MS // The record is damaged: its entries are fewer than its total.
}

function appended(old: Buffer, firstLive: number, time: number, total: number, step: number): Buffer {
  const last = old.length - ENTRY_BYTES
  const joins =
    last >= firstLive &&
    sharesStep(readUInt24(old, last), time, step) &&
    old.readUInt16BE(last + COUNT_AT) < COUNT_MAX
  const keptEnd = joins ? last : old.length
  const at = HEADER_BYTES + keptEnd - firstLive
  const record = Buffer.allocUnsafe(at + ENTRY_BYTES)
  record.writeUInt32BE(total + 1, 0)
  if (keptEnd > firstLive) old.copy(record, HEADER_BYTES, firstLive, keptEnd)
  writeUInt24(record, at, time)
  record.writeUInt16BE(joins ? old.readUInt16BE(last + COUNT_AT) + 1 : 1, at + COUNT_AT)
  return record
}
