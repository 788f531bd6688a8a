/**
 * All operations of one tick of the event loop on one shard, as the bytes of one call, which lua/batch.lua or the store process
 * (../embedded/engine.ts) answers. ioredis does not encode it, because that took 1.4 us a request.
 */

import { randomInt } from 'node:crypto'
import { writeDecimal } from '../../domain/bytes.ts'
import { readUInt24, WRAP_MASK } from '../../domain/limits.ts'
import { METER_BYTES, type Meter, readMeter } from '../../domain/meters.ts'
import { PRICING } from '../../domain/pricing.ts'
import { BATCHES, type Script } from '../redis/scripts.ts'
import {
  ANSWER_BYTES,
  ANSWERS_AT,
  BATCHES_AT,
  CHECKED_AT,
  HEAD_BYTES,
  LETTERS,
  METER_COUNT_AT,
  NONCES,
  PRICING_AT,
  PRICING_NUMBERS,
  SECOND,
  SITE_METER,
  TIME_AT,
} from '../wire.ts'
import { type Command, PreparedCommand } from './ioredis.ts'

/**
 * @param reply undefined if the outcome is unknown
 * @param at where the operation's answer starts
 */
export type Settle = (reply: Buffer | undefined, at: number, meters: readonly Meter[]) => void

export interface Operation {
  /** Latin-1, as `text` is: each character stands for one byte. The operation's Lua file describes both. */
  readonly keys: readonly string[]
  readonly text: string
  /**
   * Keys of the meters that it reads. The first two only hold when the shard's first proof came, and the first one under the
   * present names of networks (lua/meters.lua); then the site's meter follows, and those of networks.
   */
  readonly meters: readonly string[]
  /** True if it may count a proof. The script must then know its meters, so `add` puts their numbers after `text`. */
  readonly namesMeters: boolean
}

const NO_METERS: readonly never[] = []
const VISITS: ReadonlySet<string> = new Set([LETTERS.challenge, LETTERS.solution, LETTERS.takeBack])

export class Batch {
  readonly settles: Settle[] = []
  /** Each operation's numbers of its meters in this batch, from 1 as in Lua. */
  readonly metersOf: (readonly number[])[] = []
  /** True for an operation whose proof the script adds to its meters once its nonce is spent. */
  readonly counts: boolean[] = []
  /** The time by `performance.now` at which the first operation was added. */
  startedAtMs = 0
  readonly #keys = new BulkStrings(KEYS_BYTES)
  readonly #operations = new BulkStrings(OPERATIONS_BYTES)
  #keyCount = 0
  /** A meter's number by its key, since operations share most meters. */
  readonly #meters = new Map<string, number>()
  #hasVisits = false
  #hasRedemptions = false

  get meterCount(): number {
    return this.#meters.size
  }

  get script(): Script {
    if (!this.#hasRedemptions) return BATCHES.visits
    return this.#hasVisits ? BATCHES.both : BATCHES.redemptions
  }

  add({ keys, text, meters, namesMeters }: Operation, settle: Settle): void {
    if (this.settles.length === 0) this.startedAtMs = performance.now()
    const letter = text[0]!
    if (VISITS.has(letter)) this.#hasVisits = true
    else if (letter !== LETTERS.probe) this.#hasRedemptions = true
    for (const key of keys) this.#keys.add(key)
    this.#keyCount += keys.length
    const numbers = meters.length === 0 ? NO_METERS : meters.map(key => this.#meterNumber(key))
    this.#operations.add(namesMeters ? text + uint16sText(numbers, SITE_METER) : text)
    this.metersOf.push(numbers)
    this.counts.push(letter === LETTERS.solution && namesMeters)
    this.settles.push(settle)
  }

  #meterNumber(key: string): number {
    const found = this.#meters.get(key)
    if (found !== undefined) return found
    const number = this.#meters.size + 1
    this.#meters.set(key, number)
    return number
  }

  /**
   * @param how EVALSHA or EVAL
   * @param keys before those of the operations; ioredis finds the slot by the first
   * @param values before the operations
   */
  call(how: string, code: string, keys: readonly [string, ...string[]], values: readonly string[]): Command {
    const keyCount = keys.length + this.#meters.size + this.#keyCount
    const count = 3 + keyCount + values.length + this.settles.length
    const head = bulks([how, code, String(keyCount), ...keys, ...this.#meters.keys()])
    const bytes = Buffer.concat([
      Buffer.from(`*${count}\r\n${head}`, 'latin1'),
      this.#keys.bytes(),
      Buffer.from(bulks(values), 'latin1'),
      this.#operations.bytes(),
    ])
    return new PreparedCommand(how, [code, '1', keys[0]], bytes)
  }
}

function uint16sText(numbers: readonly number[], start: number): string {
  let text = ''
  for (let index = start; index < numbers.length; index++)
    text += String.fromCharCode(numbers[index]! >>> 8, numbers[index]! & 0xff)
  return text
}

function bulks(texts: readonly string[]): string {
  let framed = ''
  for (const text of texts) framed += `$${text.length}\r\n${text}\r\n`
  return framed
}

/** Sizes for an ordinary batch. */
const KEYS_BYTES = 2048
const OPERATIONS_BYTES = 2048
/** `$<length>` and two line ends. */
const FRAME_BYTES = 12
const [DOLLAR, CARRIAGE_RETURN, LINE_FEED] = [0x24, 0x0d, 0x0a]

/** Strings that are framed for Redis: `$<length>\r\n<bytes>\r\n`. */
class BulkStrings {
  #bytes: Buffer
  #end = 0

  constructor(bytesExpected: number) {
    this.#bytes = Buffer.allocUnsafe(bytesExpected)
  }

  add(text: string): void {
    const { length } = text
    if (this.#end + length + FRAME_BYTES > this.#bytes.length) this.#grow(length + FRAME_BYTES)
    const bytes = this.#bytes
    bytes[this.#end] = DOLLAR
    const at = endLine(bytes, writeDecimal(bytes, this.#end + 1, length))
    this.#end = endLine(bytes, at + bytes.write(text, at, length, 'latin1'))
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end)
  }

  #grow(bytesMore: number): void {
    const larger = Buffer.allocUnsafe(2 * (this.#bytes.length + bytesMore))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

function endLine(bytes: Buffer, at: number): number {
  bytes[at] = CARRIAGE_RETURN
  bytes[at + 1] = LINE_FEED
  return at + 2
}

export function isReplyTo({ settles, meterCount }: Batch, reply: unknown): reply is Buffer {
  const length = ANSWERS_AT + settles.length * ANSWER_BYTES + meterCount * METER_BYTES
  return Buffer.isBuffer(reply) && reply.length === length
}

export function epochOf(reply: Buffer): number {
  return reply.readUInt32BE(0)
}

/** Unix milliseconds of the server. */
export function timeOf(reply: Buffer): number {
  return reply.readDoubleBE(TIME_AT)
}

/** The meters that the store returns, which include the proofs of the whole batch. */
function metersAfter({ settles, meterCount }: Batch, reply: Buffer): Meter[] {
  const first = ANSWERS_AT + settles.length * ANSWER_BYTES
  const nowMs = timeOf(reply)
  return Array.from({ length: meterCount }, (_, index) =>
    readMeter(reply, first + index * METER_BYTES, nowMs),
  )
}

/**
 * The meters of each operation as they were right after it. The reply has them after the whole batch, so this walks backwards and
 * takes out the proofs of later operations. Otherwise a batch that exceeds a budget would have all its solutions refused, not
 * only those above the budget.
 */
function metersSeen(batch: Batch, reply: Buffer): (readonly Meter[])[] {
  const meters = metersAfter(batch, reply)
  const seen: (readonly Meter[])[] = []
  for (let index = batch.settles.length - 1; index >= 0; index--) {
    const numbers = batch.metersOf[index]!
    seen[index] = numbers.length === 0 ? NO_METERS : numbers.map(number => meters[number - 1]!)
    const at = ANSWERS_AT + index * ANSWER_BYTES
    if (!batch.counts[index] || NONCES[reply[at]!] !== 'spent') continue
    const isReturning = reply.readUInt32BE(at + SECOND) >= PRICING.returningProofs
    for (let one = isReturning ? SITE_METER : SITE_METER + 1; one < numbers.length; one++) {
      const { atMs, recent, usual } = meters[numbers[one]! - 1]!
      meters[numbers[one]! - 1] = { atMs, recent: Math.max(0, recent - 1), usual }
    }
  }
  return seen
}

export function settleAll(batch: Batch, reply: Buffer | undefined): void {
  const seen = reply === undefined ? undefined : metersSeen(batch, reply)
  for (const [index, settle] of batch.settles.entries())
    settle(reply, ANSWERS_AT + index * ANSWER_BYTES, seen?.[index] ?? NO_METERS)
}

/** Replaces an unknown time, as in lua/clock.lua. */
export const NONE = 2 ** 32 - 1
const headBytes = Buffer.alloc(HEAD_BYTES)
for (const [index, name] of PRICING_NUMBERS.entries())
  headBytes.writeDoubleBE(PRICING[name], PRICING_AT + 8 * index)
/** EXPECTED_MAX of lua/epoch.lua. */
const EXPECTS_MS_MAX = 3_600_000

/**
 * Predicts the server's clock from its last reply and this host's monotonic clock. Each call sends the predicted time, so that
 * lua/epoch.lua notices when the server's clock was set.
 */
export class ServerClock {
  /** The server's time when lua/epoch.lua last checked that it is the same process, in milliseconds modulo 2^24. */
  #checkedAt = NONE
  /** Highest number, in any reply, of batches that spent a nonce or redeemed a token. */
  #batchesSeen = 0
  #askedAtMs = 0
  #epoch = 0

  /** @param askedAtMs by `performance.now`; the reply may have waited to be read */
  learn(reply: Buffer, askedAtMs: number): void {
    this.#checkedAt = readUInt24(reply, CHECKED_AT)
    this.#askedAtMs = askedAtMs
    this.#epoch = epochOf(reply)
    this.#batchesSeen = Math.max(this.#batchesSeen, reply.readDoubleBE(BATCHES_AT))
  }

  forget(): void {
    this.#checkedAt = NONE
  }

  /** `learn`'s time of the last check plus what has passed since by this host's clock; NONE if unknown. */
  expected(): number {
    const sinceMs = performance.now() - this.#askedAtMs
    if (this.#checkedAt === NONE || sinceMs > EXPECTS_MS_MAX) return NONE
    return (this.#checkedAt + Math.round(sinceMs)) & WRAP_MASK
  }

  /**
   * The second argument of lua/batch.lua. It names the epoch, so that no other server takes the time for its own.
   *
   * @param isKnown whether it goes over the connection on which the last reply came
   */
  head(isKnown: boolean, meterCount: number): string {
    headBytes.writeUInt32BE(randomInt(2 ** 32), 0) // the next epoch, if the present one is over
    headBytes.writeUInt32BE(isKnown ? this.#checkedAt : NONE, 4)
    headBytes.writeUInt32BE(this.expected(), 8)
    headBytes.writeUInt32BE(this.#epoch, 12)
    headBytes.writeDoubleBE(this.#batchesSeen, 16)
    headBytes.writeUInt16BE(meterCount, METER_COUNT_AT)
    return headBytes.toString('latin1')
  }
}
