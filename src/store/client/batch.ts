/**
 * All operations of one tick of the event loop on one shard, as the bytes of one call, which lua/batch.lua or the store process
 * (../embedded/engine.ts) answers. ioredis does not encode it, because that took 1.4 us a request.
 */

import { METER_BYTES, type Meter, readMeter } from '../../domain/meters.ts'
import { PRICING } from '../../domain/pricing.ts'
import { BATCHES, type Script } from '../redis/scripts.ts'
import { ANSWER_BYTES, ANSWERS_AT, DONE, SECOND_AT, SITE_METER, TIME_AT, uint16Text } from '../wire.ts'
import { type Command, PreparedCommand } from './ioredis.ts'

/**
 * Takes an operation's answer.
 *
 * @param reply of the whole batch; undefined if the outcome is unknown
 * @param at offset of the operation's answer
 * @param meters those that the operation reads, as they were right after it
 */
export type Settle = (reply: Buffer | undefined, at: number, meters: readonly Meter[]) => void

export interface Operation {
  /** The folder of redis/lua/ with its Lua file; undefined for the probe (lua/probe-1.lua), which all scripts have. */
  readonly script: 'visits' | 'redemptions' | undefined
  /** Latin-1, as `text` is: each character stands for one byte. The operation's Lua file describes both. */
  readonly keys: readonly string[]
  readonly text: string
  /** Keys of the two times of first proofs, of the site's meter, and of networks' (SITE_METER in ../wire.ts); empty if it reads none. */
  readonly meters: readonly string[]
  /** What it adds to its meters if it is done. If that is not 0, `add` puts their numbers, from the site's on, after `text`. */
  readonly proofs: 1 | 0 | -1
}

const NO_METERS: readonly never[] = []
/** KEYS of lua/epoch.lua. */
export type EpochKeys = readonly [string, string, string]

export class Batch {
  readonly settles: Settle[] = []
  /** The numbers of each operation's meters in this batch, from 1 as in Lua. */
  readonly meterNumbers: (readonly number[])[] = []
  /** True for operations that add a proof if they are done; false for a take-back: its whole batch sees the meters without that proof. */
  readonly addsProof: boolean[] = []
  /** The time by `performance.now` at which the first operation was added. */
  startedAtMs = 0
  /** The keys and the operations, as the call has them. */
  #keys = ''
  #operations = ''
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

  add({ script, keys, text, meters, proofs }: Operation, settle: Settle): void {
    if (this.settles.length === 0) this.startedAtMs = performance.now()
    if (script === 'visits') this.#hasVisits = true
    if (script === 'redemptions') this.#hasRedemptions = true
    for (const key of keys) this.#keys += bulk(key)
    this.#keyCount += keys.length
    const numbers = meters.length === 0 ? NO_METERS : meters.map(key => this.#meterNumber(key))
    this.#operations += bulk(proofs === 0 ? text : text + meterNumbersText(numbers))
    this.meterNumbers.push(numbers)
    this.addsProof.push(proofs === 1)
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
   * @param name EVALSHA or EVAL
   * @param code the script's hash or text
   * @param keys the first keys of the call; by the very first, ioredis finds a Cluster's slot
   * @param values the first values, before the operations: a test's clock and the head
   */
  command(name: string, code: string, keys: EpochKeys, values: readonly string[]): Command {
    const keyCount = keys.length + this.#meters.size + this.#keyCount
    const count = 3 + keyCount + values.length + this.settles.length
    const head = bulks([name, code, String(keyCount), ...keys, ...this.#meters.keys()])
    const call = `*${count}\r\n${head}${this.#keys}${bulks(values)}${this.#operations}`
    return new PreparedCommand(name, [code, '1', keys[0]], Buffer.from(call, 'latin1')) // one key is enough for the slot
  }
}

function meterNumbersText(numbers: readonly number[]): string {
  let text = ''
  for (let index = SITE_METER; index < numbers.length; index++) text += uint16Text(numbers[index]!)
  return text
}

/** A string as it is framed for Redis. Its characters stand for one byte each. */
function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`
}

function bulks(texts: readonly string[]): string {
  return texts.map(bulk).join('')
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

/** The meters in a reply, by their numbers less 1, as they were after the whole batch. */
function metersAfter({ settles, meterCount }: Batch, reply: Buffer): Meter[] {
  const first = ANSWERS_AT + settles.length * ANSWER_BYTES
  const nowMs = timeOf(reply)
  return Array.from({ length: meterCount }, (_, index) =>
    readMeter(reply, first + index * METER_BYTES, nowMs),
  )
}

/**
 * The meters of each operation as they were right after it: walks backwards from those after the batch, and takes each proof out of
 * `recent`. Otherwise a batch that brings more proofs than a budget (domain/pricing.ts) would have all refused, not only those above it.
 */
function metersByOperation(batch: Batch, reply: Buffer): (readonly Meter[])[] {
  const meters = metersAfter(batch, reply)
  const seen: (readonly Meter[])[] = []
  for (let index = batch.settles.length - 1; index >= 0; index--) {
    const numbers = batch.meterNumbers[index]!
    seen[index] = numbers.length === 0 ? NO_METERS : numbers.map(number => meters[number - 1]!)
    const at = ANSWERS_AT + index * ANSWER_BYTES
    if (!batch.addsProof[index] || reply[at] !== DONE) continue
    // Addresses that do not return added no proof to the site's meter (add_proof of lua/visits/meters.lua).
    const acceptedBefore = reply.readUInt32BE(at + SECOND_AT)
    const isReturning = acceptedBefore >= PRICING.returningProofs
    for (let position = isReturning ? SITE_METER : SITE_METER + 1; position < numbers.length; position++) {
      const meterAt = numbers[position]! - 1
      const { atMs, recent, usual } = meters[meterAt]!
      meters[meterAt] = { atMs, recent: Math.max(0, recent - 1), usual }
    }
  }
  return seen
}

export function settleAll(batch: Batch, reply: Buffer | undefined): void {
  const meters = reply === undefined ? undefined : metersByOperation(batch, reply)
  for (const [index, settle] of batch.settles.entries())
    settle(reply, ANSWERS_AT + index * ANSWER_BYTES, meters?.[index] ?? NO_METERS)
}
