/**
 * The request operations on LMDB. Those of an event-loop turn run in ONE synchronous transaction, and are answered after its
 * commit.
 *
 *   windows   | kind 1 | address or key id |  -> | dead from, seconds 4 | record of domain/address-log.ts or limits.ts |
 *             | name of a meter |             -> see meters.ts
 *   marks     | kind 1 | nonce 16 |           -> | dead from: wall clock, seconds 4 | monotonic clock, seconds 4 | claim |
 *
 * Windows use the monotonic clock, which nothing sets: all processes share it, and the state does not outlive the boot. Marks are
 * redemption records, and used nonces that an address log does not hold. Tokens expire by the wall clock, which can be set, so a
 * mark is dead only when both clocks say so: no step lets a token be redeemed twice. Nonces start with their issue time, so marks
 * of one time lie together.
 */

import type { Database } from 'lmdb'
import {
  admitToLog,
  LogKind,
  type LogRequest,
  MARKS_LIMIT_MAX,
  type Spending,
  verificationKind,
} from '../../domain/address-log.ts'
import { ownerKey, windowOfJunk } from '../../domain/address-tags.ts'
import { copyBytes, ReusedBytes, writeText } from '../../domain/bytes.ts'
import { admitToWindow, WINDOW_MS } from '../../domain/limits.ts'
import { nonceMark } from '../../domain/nonce.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  countsProof,
  type Done,
  MARK_MARGIN_MS,
  type OnStoreCall,
  type RedemptionAdmission,
  type RedemptionRequest,
  type RequestStore,
  type SolutionAdmission,
  type SolutionRequest,
  type TokenRedemption,
  UNAVAILABLE,
} from '../store.ts'
import type { StateEnvironment } from './environment.ts'
import { keyOf as meterKey, RECORD_OFFSET, TransactionMeters } from './meters.ts'

const [ADDRESS, CALLER, API_KEY] = ['a', 'c', 'k']
const [USED, REDEEMED] = [0x6e, 0x72]

const IF_ABSENT = { noOverwrite: true }

/** Reused, since lmdb copies keys and values before it returns. */
const keys = new ReusedBytes()
const values = new ReusedBytes()
const records = new ReusedBytes()
/** In a mark. */
export const CLAIM_OFFSET = 8

/**
 * MDB_BAD_TXN: lmdb 3.5.6 miscounts its free pages ("reserved freelist had a data entry with zero-size"), and one commit in some
 * million fails. It is undone.
 */
const BAD_TRANSACTION = -30_782

/** A transaction must fit into the room of room.ts. */
const OPERATIONS_MAX = 64

type Spend = NonNullable<SolutionRequest['spend']>

type Answer = ChallengeAdmission | SolutionAdmission | RedemptionAdmission

interface Operation {
  readonly run: (request: never) => Answer
  readonly request: ChallengeRequest | SolutionRequest | RedemptionRequest
  readonly done: Done<never>
}

export interface EmbeddedClocks {
  readonly monotonicMs: () => number
  readonly wallMs: () => number
}

export const SYSTEM_CLOCKS: EmbeddedClocks = {
  monotonicMs: () => {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1000 + Math.floor(nanoseconds / 1e6)
  },
  wallMs: Date.now,
}

export class EmbeddedRequests implements RequestStore {
  readonly #state: StateEnvironment
  readonly #clocks: EmbeddedClocks
  readonly #onFault: (error: unknown) => void
  readonly #onCall: OnStoreCall | undefined
  #queue: Operation[] = []
  #queuedAtMs = 0
  /** Monotonic, of this transaction. */
  #nowMs = 0
  /** Windows of callers and API keys, of which a few make many requests: each is read and written once a transaction. */
  #charged = new Map<string, Buffer>()
  readonly meters: TransactionMeters
  /** undefined: start at the first key. */
  #windowsSweptTo: Buffer | undefined
  #marksSweptTo: Buffer | undefined
  /** Set by the store: the files' bound is reached, the disk is full. */
  isFull = false
  lacksRoom = false

  constructor(
    state: StateEnvironment,
    clocks: EmbeddedClocks,
    onFault: (error: unknown) => void,
    onCall?: OnStoreCall,
  ) {
    this.#state = state
    this.#clocks = clocks
    this.#onFault = onFault
    this.#onCall = onCall
    this.meters = new TransactionMeters(state.windows)
  }

  epochOf(): number {
    return this.#state.epoch
  }

  awayMs(): number {
    return 0 // it never fails open
  }

  nonceEpoch(): number {
    return this.#state.epoch
  }

  nonceEpochs(): readonly number[] {
    return []
  }

  formerNonceEpochs(): readonly number[] {
    return []
  }

  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    this.#enqueue({ run: this.#challenge, request, done })
  }

  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    this.#enqueue({ run: this.#solution, request, done })
  }

  takeBack(request: SolutionRequest, accepted: number): void {
    const run = ({ metering }: SolutionRequest): Answer => {
      this.meters.add(metering!, this.meters.of(metering!), accepted, -1)
      return UNAVAILABLE
    }
    if (countsProof(request)) this.#enqueue({ run, request, done: () => {} })
  }

  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void {
    this.#enqueue({ run: this.#redemption, request, done })
  }

  #enqueue(operation: Operation): void {
    if (this.isFull || this.lacksRoom) {
      operation.done(UNAVAILABLE as never)
      return
    }
    if (this.#queue.length === 0) {
      this.#queuedAtMs = performance.now()
      setImmediate(this.flush)
    }
    this.#queue.push(operation)
  }

  readonly flush = (): void => {
    const operations = this.#queue
    if (operations.length === 0) return
    this.#queue = []
    const answers = this.#commit(operations)
    this.#onCall?.(operations.length, (performance.now() - this.#queuedAtMs) / 1000)
    for (let index = 0; index < operations.length; index++) operations[index]!.done(answers[index] as never)
  }

  /** A failed transaction has no effect, so it is tried again; after BAD_TRANSACTION by halves, which may use other pages. */
  #commit(operations: readonly Operation[]): readonly Answer[] {
    if (operations.length > OPERATIONS_MAX) return this.#commitHalves(operations)
    try {
      return this.#transact(operations)
    } catch {
      try {
        return this.#transact(operations)
      } catch (error) {
        if ((error as { code?: unknown }).code === BAD_TRANSACTION && operations.length > 1)
          return this.#commitHalves(operations)
        this.#onFault(error)
        return operations.map(() => UNAVAILABLE)
      }
    }
  }

  #commitHalves(operations: readonly Operation[]): readonly Answer[] {
    const middle = operations.length >> 1
    return [...this.#commit(operations.slice(0, middle)), ...this.#commit(operations.slice(middle))]
  }

  #transact(operations: readonly Operation[]): readonly Answer[] {
    return this.#state.file.write(() => {
      this.#nowMs = this.#clocks.monotonicMs() // under the lock: no process has used a later time
      // Not cleared: in V8 an old table keeps all later ones alive.
      this.#charged = new Map()
      this.meters.begin(this.#nowMs, this.#clocks.wallMs())
      const results = operations.map(({ run, request }) => run(request as never))
      for (const [name, record] of this.#charged) this.#writeWindow(windowKey(name), record, WINDOW_MS)
      this.meters.write()
      return results
    })
  }

  readonly #challenge = (request: ChallengeRequest): ChallengeAdmission => {
    const decision = this.#admitAddress(LogKind.challenge, request)
    if (decision.status === 'limited') return decision
    const { siteCount, failures, accepted } = decision
    const meters = request.metering && this.meters.of(request.metering)
    return { status: 'admitted', siteCount, failures, accepted, meters }
  }

  readonly #solution = (request: SolutionRequest): SolutionAdmission => {
    const { spend } = request
    const kind = verificationKind(request)
    const isPresent = spend !== undefined && spend.storeEpoch === this.#state.epoch
    const hasOwnMark = request.addressLimit > MARKS_LIMIT_MAX
    const spending = isPresent && !hasOwnMark ? this.#spending(spend) : undefined
    const decision = this.#admitAddress(kind, request, spending)
    if (decision.status === 'limited') return decision
    const { failures, accepted } = decision
    const { metering } = request
    const meters = metering && this.meters.of(metering)
    // Literals: spreading costs V8 (Node.js 20) 4 us and a hidden class.
    if (spend === undefined) return { status: 'admitted', failures, accepted, meters, nonce: 'untouched' }
    const isSpent = isPresent && !decision.isUsed && (!hasOwnMark || this.#spendApart(spend))
    if (!isSpent) return { status: 'admitted', failures, accepted, meters, nonce: 'used' }
    if (countsProof(request)) this.meters.add(metering!, meters!, accepted, 1)
    return { status: 'admitted', failures, accepted, meters, nonce: 'spent' }
  }

  #spending({ nonce, expiresAtMs }: Spend): Spending {
    const restMs = Math.max(0, Math.ceil(expiresAtMs - this.#clocks.wallMs()))
    return { mark: nonceMark(nonce), keepMs: restMs + MARK_MARGIN_MS }
  }

  /** As a mark, not in the address's log. */
  #spendApart(spend: Spend): boolean {
    const key = markKey(USED, spend.nonce)
    if (this.#mark(key, spend.expiresAtMs, '', IF_ABSENT)) return true
    if (!this.#isExpired(this.#state.marks.getBinaryFast(key)!)) return false
    return this.#mark(key, spend.expiresAtMs, '')
  }

  readonly #redemption = ({
    callerKey,
    callerLimit,
    apiKey,
    redeem,
    isJunk,
  }: RedemptionRequest): RedemptionAdmission => {
    const before = redeem === undefined ? 'untouched' : this.#redeemed(redeem)
    const windowFor = isJunk || before === 'used' || before === 'forgotten' ? windowOfJunk : asItIs
    const callerName = CALLER + windowFor(callerKey)
    const caller = this.#admitWindow(callerName, callerLimit, 'address')
    const keyName = API_KEY + windowFor(apiKey?.id ?? '')
    const ofKey = apiKey === undefined ? undefined : this.#admitWindow(keyName, apiKey.limit, 'api-key')
    if (caller.status === 'limited') {
      const isKeyLonger = ofKey?.status === 'limited' && ofKey.retryAfterMs > caller.retryAfterMs
      return isKeyLonger ? ofKey : caller
    }
    if (ofKey?.status === 'limited') return ofKey
    // Kept until the turn's end: `admitToWindow` makes bytes of its own, `admitToLog` reuses its.
    this.#charged.set(callerName, caller.record)
    if (ofKey !== undefined) this.#charged.set(keyName, ofKey.record)
    if (before !== 'first') return { status: 'admitted', token: before }
    this.#mark(markKey(REDEEMED, redeem!.nonce), redeem!.expiresAtMs, redeem!.claim)
    return { status: 'admitted', token: 'redeemed' }
  }

  /** What a redemption of the token would be. `redeemed`: by the same claim. */
  #redeemed(redeem: TokenRedemption): 'first' | 'redeemed' | 'used' | 'forgotten' {
    if (redeem.storeEpoch !== this.#state.epoch) return 'forgotten'
    const mark = this.#state.marks.getBinaryFast(markKey(REDEEMED, redeem.nonce))
    if (mark === undefined || this.#isExpired(mark)) return 'first'
    const claim = mark.toString('latin1', CLAIM_OFFSET, mark.length)
    return redeem.claim !== '' && claim === redeem.claim ? 'redeemed' : 'used'
  }

  #admitAddress(kind: LogKind, request: LogRequest & { readonly addressKey: string }, spending?: Spending) {
    const key = windowKey(ADDRESS + request.addressKey)
    const decision = admitToLog(this.#readWindow(key), this.#nowMs, kind, request, spending)
    if (decision.status === 'admitted') this.#writeWindow(key, decision.record, decision.keepMs)
    return decision
  }

  #admitWindow(name: string, limit: number, policy: 'address' | 'api-key') {
    const record = this.#charged.get(name) ?? this.#readWindow(windowKey(name))
    return admitToWindow(record, this.#nowMs, limit, policy)
  }

  /**
   * A copy, since `getBinaryFast` will overwrite its buffer; valid until the next call. undefined if dead: times wrap after 4.6
   * hours, and would look recent.
   */
  #readWindow(key: Buffer): Buffer | undefined {
    const value = this.#state.windows.getBinaryFast(key)
    if (value === undefined || value.readUInt32BE(0) * 1000 <= this.#nowMs) return undefined
    const { length } = value
    const record = records.ofLength(length - RECORD_OFFSET)
    copyBytes(value, RECORD_OFFSET, length, record, 0)
    return record
  }

  #writeWindow(key: Buffer, record: Buffer, keepMs: number): void {
    const { length } = record
    const value = values.ofLength(RECORD_OFFSET + length)
    value.writeUInt32BE(Math.ceil((this.#nowMs + keepMs) / 1000), 0)
    copyBytes(record, 0, length, value, RECORD_OFFSET)
    this.#state.windows.putSync(key, value)
  }

  readonly #isExpired = (mark: Buffer): boolean =>
    mark.readUInt32BE(0) * 1000 <= this.#clocks.wallMs() &&
    mark.readUInt32BE(4) * 1000 <= this.#clocks.monotonicMs()

  /** @returns whether it was written */
  #mark(key: Buffer, expiresAtMs: number, claim: string, how?: typeof IF_ABSENT): boolean {
    const mark = values.ofLength(CLAIM_OFFSET + claim.length)
    const restMs = Math.max(0, expiresAtMs - this.#clocks.wallMs())
    mark.writeUInt32BE(Math.ceil((expiresAtMs + MARK_MARGIN_MS) / 1000), 0)
    mark.writeUInt32BE(Math.ceil((this.#nowMs + restMs + MARK_MARGIN_MS) / 1000), 4)
    mark.write(claim, CLAIM_OFFSET, 'latin1')
    // lmdb's types say that it returns nothing.
    return this.#state.marks.putSync(key, mark, how!) as unknown as boolean
  }

  /**
   * Removes the dead among the next `count` windows and marks.
   *
   * @returns the larger share of dead ones; undefined if both tables ended
   */
  sweep(count: number): number | undefined {
    const { windows, marks } = this.#state
    const now = this.#clocks.monotonicMs()
    const isDead = (value: Buffer) => value.readUInt32BE(0) * 1000 <= now
    const ofWindows = this.#sweepSlice(windows, this.#windowsSweptTo, count, isDead)
    const ofMarks = this.#sweepSlice(marks, this.#marksSweptTo, count, this.#isExpired)
    this.#windowsSweptTo = ofWindows.next
    this.#marksSweptTo = ofMarks.next
    const isAtEnd = ofWindows.next === undefined && ofMarks.next === undefined
    return isAtEnd ? undefined : Math.max(ofWindows.deadShare, ofMarks.deadShare)
  }

  #sweepSlice(
    database: Database<Buffer, Buffer>,
    start: Buffer | undefined,
    count: number,
    isDead: (value: Buffer) => boolean,
  ) {
    const range = database.getRange({ ...(start === undefined ? {} : { start }), limit: count })
    const entries = [...range]
    const dead = entries.filter(({ value }) => isDead(value))
    // Read again under the lock: another process may have rewritten it.
    if (dead.length > 0) {
      this.#state.file.write(() => {
        for (const { key } of dead) {
          const value = database.getBinaryFast(key)
          if (value !== undefined && isDead(value)) database.removeSync(key)
        }
      })
    }
    return {
      next: entries.length < count ? undefined : entries[entries.length - 1]!.key,
      deadShare: dead.length / count,
    }
  }
}

const asItIs = (key: string): string => key

/** @param name one-byte characters */
function windowKey(name: string): Buffer {
  const key = keys.ofLength(name.length)
  writeText(key, 0, name)
  return key
}

/** Of its windows, and its network's meter. */
export function keysOf(windows: Database<Buffer, Buffer>, addressKey: string): readonly Buffer[] {
  const starts = [ADDRESS, CALLER].map(kind => kind + addressKey)
  const found = starts.flatMap(start => {
    const range = { start: Buffer.from(start), end: Buffer.from(`${start}~`) } // no window's key goes on with a tilde
    return [...windows.getKeys(range)].map(key => Buffer.from(key))
  })
  const meter = Buffer.from(meterKey(ownerKey(addressKey)))
  return windows.doesExist(meter) ? [...found, meter] : found
}

function markKey(kind: number, nonce: string): Buffer {
  const key = keys.ofLength(1 + nonce.length / 2)
  key[0] = kind
  key.write(nonce, 1, 'hex')
  return key
}
