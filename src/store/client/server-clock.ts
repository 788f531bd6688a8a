import { randomInt } from 'node:crypto'
import { readUInt24 } from '../../domain/bytes.ts'
import { WRAP_MASK } from '../../domain/limits.ts'
import { PRICING } from '../../domain/pricing.ts'
import { BATCHES_AT, CHECKED_AT, HEAD, HEAD_BYTES, PRICING_NUMBERS } from '../wire.ts'
import { epochOf } from './batch.ts'

/** Stands in the head for a time that is not known; lua/clock.lua has the same. */
export const NO_TIME = 2 ** 32 - 1
/** Each call of `head` writes it anew, except the pricing. */
const headBytes = Buffer.alloc(HEAD_BYTES)
for (const [index, name] of PRICING_NUMBERS.entries())
  headBytes.writeDoubleBE(PRICING[name], HEAD.pricing + 8 * index)
/** EXPECTED_MAX of lua/epoch.lua. */
const EXPECTS_MS_MAX = 3_600_000

/**
 * Predicts the server's clock from its last reply and this host's monotonic clock. Each call sends the predicted time, so that
 * lua/epoch.lua notices when the server's clock was set.
 */
export class ServerClock {
  /** The server's time when lua/epoch.lua last checked that it is the same process, in milliseconds modulo 2^24. */
  #checkedAt = NO_TIME
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

  /** Forgets only the clock: the epoch and the batches seen tell lua/epoch.lua of an older copy. */
  forget(): void {
    this.#checkedAt = NO_TIME
  }

  /** `learn`'s time of the last check plus what has passed since by this host's clock; NO_TIME if unknown. */
  expected(): number {
    const sinceMs = performance.now() - this.#askedAtMs
    if (this.#checkedAt === NO_TIME || sinceMs > EXPECTS_MS_MAX) return NO_TIME
    return (this.#checkedAt + Math.round(sinceMs)) & WRAP_MASK
  }

  /**
   * The head of a call. A server believes the expected time only with its own epoch, since another server has another clock.
   *
   * @param isSameConnection true if the call goes over the connection on which the last reply came
   */
  head(isSameConnection: boolean, meterCount: number): string {
    headBytes.writeUInt32BE(randomInt(2 ** 32), HEAD.nextEpoch)
    headBytes.writeUInt32BE(isSameConnection ? this.#checkedAt : NO_TIME, HEAD.checked)
    headBytes.writeUInt32BE(this.expected(), HEAD.expected)
    headBytes.writeUInt32BE(this.#epoch, HEAD.epoch)
    headBytes.writeDoubleBE(this.#batchesSeen, HEAD.batches)
    headBytes.writeUInt16BE(meterCount, HEAD.meterCount)
    return headBytes.toString('latin1')
  }
}
