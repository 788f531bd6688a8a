/**
 * The head of a shard's calls (../wire.ts): tells the server what its last reply said, and its present time as far as this host can
 * predict it. By these lua/epoch.lua notices that records may be lost, or that the server's clock was set.
 */

import { randomInt } from 'node:crypto'
import { readUInt24 } from '../../domain/bytes.ts'
import { WRAP_MASK } from '../../domain/limits.ts'
import { BATCHES_AT, CHECKED_AT, HEAD, HEAD_BYTES, NO_TIME, SLOT_MOVED } from '../wire.ts'
import { epochOf, timeOf } from './batch.ts'

/** EXPECTED_MAX of lua/epoch.lua. */
const EXPECTED_MS_MAX = 3_600_000

/** Times of the server are milliseconds modulo 2^24, so none is NO_TIME. */
export class CallHead {
  readonly #bytes = Buffer.alloc(HEAD_BYTES)
  /** The server's time when lua/epoch.lua last checked whether the memory can be trusted. */
  #checkedAt = NO_TIME
  /** The server's time in the last reply. */
  #time = NO_TIME
  /** When the call of that reply was asked for, by `performance.now`. */
  #askedAtMs = 0
  /** The last reply's: a server believes an expected time only with its own epoch, since another server has another clock. */
  #epoch = 0 // before the first reply no time is expected, so it does not count
  /** Highest number, in any reply, of batches that spent a nonce or redeemed a token. */
  #batchesSeen = 0
  /** Keys of the slot may be lost: a move was met, or may have been missed by this new worker of a Cluster (rule 6 of lua/epoch.lua). */
  #mayHaveMoved: boolean

  constructor(isCluster: boolean) {
    this.#mayHaveMoved = isCluster
  }

  /** @param askedAtMs by `performance.now`; the reply may have waited to be read */
  learn(reply: Buffer, askedAtMs: number): void {
    this.#checkedAt = readUInt24(reply, CHECKED_AT)
    this.#time = timeOf(reply) & WRAP_MASK
    this.#askedAtMs = askedAtMs
    // A reply with the same epoch is of a call that did not tell the move yet.
    if (epochOf(reply) !== this.#epoch) this.#mayHaveMoved = false
    this.#epoch = epochOf(reply)
    this.#batchesSeen = Math.max(this.#batchesSeen, reply.readDoubleBE(BATCHES_AT))
  }

  /** Called when a call met the slot between two nodes. */
  slotMoves(): void {
    this.#mayHaveMoved = true
  }

  /**
   * Makes the next call expect no time. Called when the server has refused one because its clock is another than expected: the next call
   * accepts that, and the server may begin a new epoch (rule 5c of lua/epoch.lua). The batches seen stay: by these the server notices
   * that its memory is an older copy (rule 4).
   */
  forgetTime(): void {
    this.#checkedAt = NO_TIME
    this.#time = NO_TIME
  }

  /** The server's present time: its last reply's, plus what has passed since by this host's clock; NO_TIME if unknown. */
  expectedTime(): number {
    const sinceMs = performance.now() - this.#askedAtMs
    if (this.#time === NO_TIME || sinceMs > EXPECTED_MS_MAX) return NO_TIME
    return (this.#time + Math.round(sinceMs)) & WRAP_MASK
  }

  /**
   * With each call comes an epoch that the server takes if it must begin one.
   *
   * @param meterCount how many meters the batch has
   * @param isSameConnection false if the last reply came over another connection: then `checked` is no time, by which the server checks
   */
  next(isSameConnection: boolean, meterCount: number): string {
    const bytes = this.#bytes
    bytes.writeUInt32BE(randomInt(2 ** 32), HEAD.nextEpoch)
    const checkedAt = isSameConnection ? this.#checkedAt : NO_TIME
    bytes.writeUInt32BE(this.#mayHaveMoved ? SLOT_MOVED : checkedAt, HEAD.checked)
    bytes.writeUInt32BE(this.expectedTime(), HEAD.expected)
    bytes.writeUInt32BE(this.#epoch, HEAD.epoch)
    bytes.writeDoubleBE(this.#batchesSeen, HEAD.batches)
    bytes.writeUInt16BE(meterCount, HEAD.meterCount)
    return bytes.toString('latin1')
  }
}
