/**
 * Runs a worker's batch by the rules of domain/. The files of redis/lua/ do the same in Redis, and describe each operation.
 *
 * There is one shard here, so what works between shards (client/requests.ts) is missing: peek (K), refund (F), and a charge's time in an
 * answer. Each process draws an epoch of its own, so what finds a lost memory (lua/epoch.lua) is missing too: times, a count of batches.
 */

import {
  admitToLog,
  LogKind,
  type LogRequest,
  MARK_BIT,
  MARK_LOW_RANGE,
  MARKS_LIMIT_MAX,
  type Spending,
} from '../../domain/address-log.ts'
import { ReusedBytes, writeUInt24 } from '../../domain/bytes.ts'
import { type Limited, type Policy, WINDOW_MS } from '../../domain/limits.ts'
import {
  addProof,
  fadeAll,
  METER_BYTES,
  type Meter,
  metersFrom,
  newMeter,
  renewFirstProof,
  writeMeter,
} from '../../domain/meters.ts'
import { PRICING } from '../../domain/pricing.ts'
import { admitToWindow } from '../../domain/redemption-window.ts'
import { RECORD_KEPT_MS_MAX } from '../../domain/token.ts'
import { NONCE_OUTCOMES, TOKEN_OUTCOMES } from '../store.ts'
import {
  ANSWER_BYTES,
  ANSWERS_AT,
  CHECKED_AT,
  DONE,
  FIRST_AT,
  HEAD,
  JUNK,
  KEYS_AT,
  LIMITED,
  METERS_AT,
  POLICIES,
  SECOND_AT,
  SITE_METER,
  TIME_AT,
} from '../wire.ts'
import type { Call } from './calls.ts'
import { type Clocks, deadFrom, isMarkDead, isMeterDead, isWindowDead, type State } from './state.ts'

function longerOf(one: Limited | undefined, other: Limited | undefined): Limited | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return other.retryAfterMs > one.retryAfterMs ? other : one
}

/** Bytes of the times from which an entry of the state is dead (state.ts): before a window's record, and before a mark's claim. */
const WINDOW_HEAD = 4
const MARK_HEAD = 8

/** Holds one window at a time, while it is read from the state or written to it. */
const windowBytes = new ReusedBytes()

export class Engine {
  readonly #state: State
  readonly #clocks: Clocks
  #call!: Call
  /** Offsets in the call: of the operation's next field, and of its end. */
  #at = 0
  #end = 0
  /** Times of the call by the monotonic clock, and by the wall clock. */
  #nowMs = 0
  #wallMs = 0
  /** The number of the argument that is the next key. */
  #nextKey = 0
  /** Meters of the call by their numbers, as far as they were looked up; undefined for one that the state does not have. */
  #meters: (Meter | undefined)[] = []
  #reply!: Buffer
  #nextAnswerAt = 0

  constructor(state: State, clocks: Clocks) {
    this.#state = state
    this.#clocks = clocks
  }

  /** @throws at an operation that it does not know: those before it were done, those after it were not */
  run(call: Call): Buffer {
    const { bytes, starts } = call
    // Arguments: EVALSHA, the script's hash, number of keys, the keys, clock, head, then an operation each.
    const clockAt = KEYS_AT + Number(call.text(KEYS_AT - 1))
    const clock = call.text(clockAt) // a test's time; else empty
    this.#call = call
    this.#meters = []
    this.#nowMs = clock === '' ? this.#clocks.monotonicMs() : Number(clock)
    this.#wallMs = clock === '' ? this.#clocks.wallMs() : Number(clock)
    const meterCount = bytes.readUInt16BE(starts[clockAt + 1]! + HEAD.meterCount)
    const first = clockAt + 2
    const metersAt = ANSWERS_AT + (starts.length - first) * ANSWER_BYTES
    this.#nextKey = METERS_AT + meterCount
    this.#reply = Buffer.allocUnsafe(metersAt + meterCount * METER_BYTES)
    this.#nextAnswerAt = ANSWERS_AT
    for (let index = first; index < starts.length; index++) this.#operation(index)
    this.#reply.writeUInt32BE(this.#state.epoch, 0)
    this.#reply.fill(0, CHECKED_AT, ANSWERS_AT)
    this.#reply.writeDoubleBE(this.#wallMs, TIME_AT)
    for (let number = 1; number <= meterCount; number++) {
      const meter = this.#meterOf(number)
      const at = metersAt + (number - 1) * METER_BYTES
      if (meter === undefined) this.#reply.fill(0, at, at + METER_BYTES)
      else writeMeter(this.#reply, at, meter)
    }
    return this.#reply
  }

  #operation(index: number): void {
    this.#at = this.#call.starts[index]!
    this.#end = this.#call.ends[index]!
    switch (String.fromCharCode(this.#read(1))) {
      case 'C':
        return this.#challenge()
      case 'V':
        return this.#solution()
      case 'T': // take back
        this.#addProof(this.#read(1), -1)
        return this.#answer(DONE, 0, 0)
      case 'R':
        return this.#redemption()
      case 'P': // probe, whose one key is of use on a Cluster alone
        this.#nextKey++
        return this.#answer(DONE, 0, 0)
      default:
        throw new Error('an operation that this store does not have')
    }
  }

  /** Reads the operation's next field, and moves on. Its Lua file (client/requests.ts names it by the letter) has the fields' sizes. */
  #read(size: number): number {
    let value = 0
    for (const end = this.#at + size; this.#at < end; this.#at++)
      value = value * 256 + this.#call.bytes[this.#at]!
    return value
  }

  #readLimits() {
    return { siteTag: this.#read(3), addressLimit: this.#read(3), siteLimit: this.#read(3) }
  }

  #answer(status: number, first: number, second: number): void {
    const at = this.#nextAnswerAt
    this.#reply[at] = status
    writeUInt24(this.#reply, at + FIRST_AT, first)
    this.#reply.writeUInt32BE(second, at + SECOND_AT)
    this.#nextAnswerAt = at + ANSWER_BYTES
  }

  #limited({ retryAfterMs, policy }: Limited, junk = 0): void {
    this.#answer(LIMITED, retryAfterMs, POLICIES.indexOf(policy) + junk * JUNK)
  }

  #challenge(): void {
    const decision = this.#admitAddress(LogKind.challenge, this.#readLimits(), undefined)
    if (decision.status === 'limited') return this.#limited(decision)
    const { siteCount, failures, accepted } = decision
    this.#answer(DONE, siteCount, Math.min(accepted, 0xffff) * 0x10000 + Math.min(failures, 0xffff))
  }

  #solution(): void {
    const kind = this.#read(1) as LogKind
    const limits = this.#readLimits()
    const isOfThisEpoch = this.#read(4) === this.#state.epoch
    const keepMs = this.#read(3)
    const hasNonce = keepMs > 0
    const logMark = (this.#read(3) - MARK_BIT) * MARK_LOW_RANGE + this.#read(2) // sent as the log has it (domain/address-log.ts)
    // The address's record has the used nonce as a mark of 39 bits, unless its limit is high: then the state has it as a mark of its own.
    const hasOwnKey = hasNonce && limits.addressLimit > MARKS_LIMIT_MAX
    const spending = isOfThisEpoch && hasNonce && !hasOwnKey ? { mark: logMark, keepMs } : undefined
    const decision = this.#admitAddress(kind, limits, spending)
    const nonceKey = hasOwnKey ? this.#call.text(this.#nextKey++) : ''
    if (decision.status === 'limited') return this.#limited(decision)
    const { failures, accepted } = decision
    const answer = (status: (typeof NONCE_OUTCOMES)[number]) =>
      this.#answer(NONCE_OUTCOMES.indexOf(status) + 1, failures, accepted)
    if (!hasNonce) return answer('untouched')
    const isSpent = isOfThisEpoch && !decision.isUsed && (!hasOwnKey || this.#spendOwnKey(nonceKey, keepMs))
    answer(isSpent ? 'spent' : 'used')
    if (isSpent) this.#addProof(accepted, 1)
  }

  #spendOwnKey(key: string, keepMs: number): boolean {
    if (this.#liveClaim(key) !== undefined) return false
    this.#setMark(key, keepMs, '')
    return true
  }

  #admitAddress(kind: LogKind, limits: LogRequest, spending: Spending | undefined) {
    const key = this.#call.text(this.#nextKey++)
    const decision = admitToLog(this.#window(key), this.#nowMs, kind, limits, spending)
    if (decision.status === 'admitted') this.#setWindow(key, decision.record, decision.keepMs)
    return decision
  }

  /**
   * Reads a window's record into memory that the next call, and `#setWindow`, overwrite. Returns undefined for a dead window, because
   * times wrap after 4.6 hours and would look recent.
   */
  #window(key: string): Buffer | undefined {
    const value = this.#state.windows.get(key)
    if (value === undefined || isWindowDead(value, this.#nowMs)) return undefined
    const bytes = windowBytes.ofLength(value.length)
    bytes.write(value, 0, 'latin1')
    return bytes.subarray(WINDOW_HEAD)
  }

  #setWindow(key: string, record: Buffer, keepMs: number): void {
    const value = windowBytes.ofLength(WINDOW_HEAD + record.length)
    value.writeUInt32BE(Math.ceil((this.#nowMs + keepMs) / 1000), 0)
    record.copy(value, WINDOW_HEAD)
    this.#state.windows.set(key, value.toString('latin1'))
  }

  #redemption(): void {
    const callerLimit = this.#read(3) // never 0, since the one shard always charges the caller too
    const keyLimit = this.#read(3)
    const keepMs = this.#read(4)
    const epoch = this.#read(4)
    const untilMs = this.#read(4) * 1000
    const claim = this.#call.bytes.toString('latin1', this.#at, this.#end)
    const hasToken = keepMs > 0
    // Keys: window of the caller, window of the API key if there is one, record of the token if there is one.
    const keysAWindow = hasToken ? 2 : 1 // With a token, a window of junk follows each window.
    const callerAt = this.#nextKey
    const keyAt = callerAt + keysAWindow
    const markAt = keyAt + (keyLimit > 0 ? keysAWindow : 0)
    this.#nextKey = hasToken ? markAt + 1 : markAt
    const markKey = hasToken ? this.#call.text(markAt) : ''
    const before = hasToken ? this.#liveClaim(markKey) : undefined
    const status = hasToken ? this.#statusOf(epoch, before, claim) : 'untouched'
    // Anybody can send a token that was redeemed before, or forgotten, so it is charged to windows of junk.
    const junk = status === 'used' || status === 'forgotten' ? 1 : 0
    const caller = this.#tryWindow(callerAt + junk, callerLimit, 'address')
    const apiKey = keyLimit > 0 ? this.#tryWindow(keyAt + junk, keyLimit, 'api-key') : undefined
    const refusal = longerOf(caller.refusal, apiKey?.refusal)
    if (refusal !== undefined) return this.#limited(refusal, junk)
    if (caller.record !== undefined) this.#setWindow(caller.key, caller.record, WINDOW_MS)
    if (apiKey?.record !== undefined) this.#setWindow(apiKey.key, apiKey.record, WINDOW_MS)
    this.#answer(TOKEN_OUTCOMES.indexOf(status) + 1, 0, 0)
    if (status !== 'redeemed' || before !== undefined) return
    this.#setMark(markKey, Math.max(keepMs, Math.min(untilMs - this.#wallMs, RECORD_KEPT_MS_MAX)), claim)
  }

  #statusOf(epoch: number, before: string | undefined, claim: string): (typeof TOKEN_OUTCOMES)[number] {
    if (epoch !== this.#state.epoch) return 'forgotten'
    return before === undefined || (claim !== '' && before === claim) ? 'redeemed' : 'used'
  }

  /** Charges nothing yet: a charge counts once `#setWindow` has stored the record. */
  #tryWindow(keyAt: number, limit: number, policy: Policy) {
    const key = this.#call.text(keyAt)
    const decision = admitToWindow(this.#window(key), this.#nowMs, limit)
    return decision.status === 'limited'
      ? { key, refusal: { ...decision, policy }, record: undefined }
      : { key, refusal: undefined, record: decision.record }
  }

  #liveClaim(key: string): string | undefined {
    const value = this.#state.marks.get(key)
    if (value === undefined || isMarkDead(value, this.#wallMs, this.#nowMs)) return undefined
    return value.slice(MARK_HEAD)
  }

  #setMark(key: string, keepMs: number, claim: string): void {
    this.#state.marks.set(key, deadFrom(this.#wallMs + keepMs) + deadFrom(this.#nowMs + keepMs) + claim)
  }

  /** Adds a proof (`addProof` of the domain) to the meters that the rest of the operation names, and stores new ones. */
  #addProof(accepted: number, proofs: 1 | -1): void {
    const count = (this.#end - this.#at) / (3 + 2) // of each meter, its free proofs and its number
    if (count === 0) return
    const free: number[] = []
    const numbers: number[] = [1, 2] // the times of first proofs, which a call's meters begin with; then the site's meter, networks'
    for (let index = 0; index < count; index++) free.push(this.#read(3))
    for (let index = 0; index < count; index++) numbers.push(this.#read(2))
    const list = numbers.map(number => this.#meterOf(number) ?? newMeter(this.#wallMs))
    const meters = metersFrom(list, this.#wallMs)
    fadeAll(meters, this.#wallMs, PRICING)
    const isSiteCounted = addProof(meters, free, accepted, proofs, PRICING)
    // Meters of the state have been changed in place; new ones are stored now.
    for (let index = 0; index < list.length; index++) {
      const keepsTime = index < SITE_METER
      if (keepsTime) renewFirstProof(list[index]!, this.#wallMs)
      const isNetwork = index > SITE_METER
      // Only networks can fill the memory. A site's meter is made by the first proof that counts for it.
      const isStored = isNetwork ? !this.#state.isHalfFull : keepsTime || isSiteCounted
      const number = numbers[index]!
      if (!isStored || this.#meterOf(number) !== undefined) continue
      this.#state.meters.set(this.#call.text(METERS_AT + number - 1), list[index]!)
      this.#meters[number] = list[index]!
    }
  }

  /** Looks a meter up once a batch, because the operations share most meters (2 us of a solution). */
  #meterOf(number: number): Meter | undefined {
    if (number in this.#meters) return this.#meters[number]
    const name = this.#call.text(METERS_AT + number - 1)
    const meter = this.#state.meters.get(name)
    const found = meter === undefined || isMeterDead(meter, this.#wallMs) ? undefined : meter
    this.#meters[number] = found
    return found
  }
}
