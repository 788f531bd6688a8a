/**
 * The request operations on LMDB. Those of one event-loop turn run in ONE synchronous transaction, which LMDB
 * serialises over all processes of the machine; they are answered after its commit.
 *
 * Keys start with a minute, so that what has expired lies together at the front, where it is swept:
 *
 *   windows   | minute of last write 4 | kind 1 | address or key id |  -> record of domain/limits.ts
 *   marks     | minute of the nonce's issue 4 | kind 1 | nonce 16 |    -> | expiry, seconds 4 | claim |
 *
 * Windows run on the machine's monotonic clock, which all its processes share and no adjustment moves: the state does
 * not outlive the machine's boot. Marks expire by the wall clock, as nonces and tokens do.
 */

import type { Database, RootDatabase } from 'lmdb'
import { admitToLog, admitToWindow, LogKind, type Refused, WINDOW_MS } from '../../domain/limits.ts'
import { nonceTerms } from '../../domain/nonce.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  type Done,
  type Limited,
  MARK_MARGIN_MS,
  type RedemptionAdmission,
  type RedemptionRequest,
  type RequestStore,
  type SolutionAdmission,
  type SolutionRequest,
  type TokenRedemption,
  UNAVAILABLE,
  type Unavailable,
} from '../store.ts'
import type { StateEnvironment } from './environment.ts'

const KIND = { address: 0x61, caller: 0x63, apiKey: 0x6b, used: 0x6e, redeemed: 0x72 } as const
const MINUTE_MS = 60_000
const CLAIM_OFFSET = 4

interface Operation {
  readonly run: () => unknown
  readonly done: Done<never>
}

export interface EmbeddedClocks {
  /** Milliseconds since boot, the same in every process. */
  readonly monotonicMs: () => number
  /** Unix milliseconds. */
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
  #queue: Operation[] = []
  /** Set by the owner when the files have reached their bound. */
  isFull = false

  constructor(state: StateEnvironment, clocks: EmbeddedClocks, onFault: (error: unknown) => void) {
    this.#state = state
    this.#clocks = clocks
    this.#onFault = onFault
  }

  addressEpoch(): number {
    return this.#state.epoch
  }

  siteEpoch(): number {
    return this.#state.epoch
  }

  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    this.#enqueue<ChallengeAdmission>(() => this.#challenge(request), done)
  }

  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    this.#enqueue<SolutionAdmission>(() => this.#solution(request), done)
  }

  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void {
    this.#enqueue<RedemptionAdmission>(() => this.#redemption(request), done)
  }

  #enqueue<Answer>(run: () => Answer, done: Done<Answer | Unavailable>): void {
    if (this.isFull) {
      done(UNAVAILABLE)
      return
    }
    if (this.#queue.length === 0) setImmediate(this.flush)
    this.#queue.push({ run, done })
  }

  /** Commits what is queued; the owner calls it before it closes the files. */
  readonly flush = (): void => {
    const operations = this.#queue
    if (operations.length === 0) return
    this.#queue = []
    let answers: unknown[]
    try {
      answers = this.#state.root.transactionSync(() => operations.map(operation => operation.run()))
    } catch (error) {
      // Aborted as a whole: nothing was charged or spent.
      this.#onFault(error)
      answers = operations.map(() => UNAVAILABLE)
    }
    for (let index = 0; index < operations.length; index++) operations[index]!.done(answers[index] as never)
  }

  #challenge(request: ChallengeRequest): ChallengeAdmission {
    const decision = this.#admitAddress(request, LogKind.challenge)
    if (!decision.admitted) return limited(decision)
    return { status: 'admitted', siteCount: decision.siteCount, failures: decision.failures }
  }

  #solution(request: SolutionRequest): SolutionAdmission {
    const kind = request.failed ? LogKind.failedVerification : LogKind.verification
    const decision = this.#admitAddress(request, kind)
    if (!decision.admitted) return limited(decision)
    const { spend } = request
    const { failures } = decision
    if (spend === undefined) return { status: 'admitted', nonce: 'untouched', failures }
    const key = markKey(KIND.used, spend.nonce)
    if (spend.storeEpoch !== this.#state.epoch || this.#isMarked(key))
      return { status: 'admitted', nonce: 'used', failures }
    this.#mark(key, spend.expiresAtMs, '')
    return { status: 'admitted', nonce: 'spent', failures }
  }

  #redemption(request: RedemptionRequest): RedemptionAdmission {
    const now = this.#clocks.monotonicMs()
    const callerKey = windowKey(now, KIND.caller, request.callerKey)
    const caller = admitToWindow(this.#readWindow(callerKey), now, request.callerLimit, 'address')
    const { apiKey } = request
    const apiKeyKey = windowKey(now, KIND.apiKey, apiKey?.id ?? '')
    const ofKey =
      apiKey === undefined
        ? undefined
        : admitToWindow(this.#readWindow(apiKeyKey), now, apiKey.limit, 'api-key')
    if (!caller.admitted) {
      const isKeyLonger = ofKey?.admitted === false && ofKey.retryAfterMs > caller.retryAfterMs
      return limited(isKeyLonger ? ofKey : caller)
    }
    if (ofKey?.admitted === false) return limited(ofKey)
    this.#state.windows.putSync(callerKey, caller.record)
    if (ofKey !== undefined) this.#state.windows.putSync(apiKeyKey, ofKey.record)
    return { status: 'admitted', token: this.#redeem(request.redeem) }
  }

  #redeem(redeem: TokenRedemption | undefined): 'redeemed' | 'used' | 'forgotten' | 'untouched' {
    if (redeem === undefined) return 'untouched'
    if (redeem.storeEpoch !== this.#state.epoch) return 'forgotten'
    const key = markKey(KIND.redeemed, redeem.nonce)
    const mark = this.#state.marks.getBinaryFast(key)
    if (mark !== undefined && !this.#isExpired(mark)) {
      const claim = mark.toString('latin1', CLAIM_OFFSET)
      return redeem.claim !== '' && claim === redeem.claim ? 'redeemed' : 'used'
    }
    this.#mark(key, redeem.expiresAtMs, redeem.claim)
    return 'redeemed'
  }

  #admitAddress(request: ChallengeRequest, kind: LogKind) {
    const now = this.#clocks.monotonicMs()
    const key = windowKey(now, KIND.address, request.addressKey)
    const decision = admitToLog(this.#readWindow(key), now, { ...request, kind })
    if (decision.admitted) this.#state.windows.putSync(key, decision.record)
    return decision
  }

  /** A record is under the minute of its last write: this one, or the one before. */
  #readWindow(key: Buffer): Buffer | undefined {
    const present = this.#state.windows.getBinaryFast(key)
    if (present !== undefined) return present
    const minute = key.readUInt32BE(0)
    if (minute === 0) return undefined
    const before = Buffer.from(key)
    before.writeUInt32BE(minute - 1, 0)
    return this.#state.windows.getBinaryFast(before)
  }

  #isMarked(key: Buffer): boolean {
    const mark = this.#state.marks.getBinaryFast(key)
    return mark !== undefined && !this.#isExpired(mark)
  }

  #isExpired(mark: Buffer): boolean {
    return mark.readUInt32BE(0) * 1000 <= this.#clocks.wallMs()
  }

  #mark(key: Buffer, expiresAtMs: number, claim: string): void {
    const mark = Buffer.allocUnsafe(CLAIM_OFFSET + claim.length)
    mark.writeUInt32BE(Math.ceil((expiresAtMs + MARK_MARGIN_MS) / 1000), 0)
    mark.write(claim, CLAIM_OFFSET, 'latin1')
    this.#state.marks.putSync(key, mark)
  }

  /** Removes up to `count` expired windows; returns how many. */
  sweepWindows(count: number): number {
    const { root, windows } = this.#state
    const end = Buffer.alloc(4)
    // A record of the minute before can still hold live entries.
    end.writeUInt32BE(Math.max(0, Math.floor(this.#clocks.monotonicMs() / WINDOW_MS) - 1), 0)
    const keys = [...windows.getKeys({ end, limit: count })]
    removeAll(root, windows, keys)
    return keys.length
  }

  /**
   * Looks at up to `count` marks from `start` on and removes the expired ones. Returns where to go on, or undefined at
   * the end.
   */
  sweepMarks(start: Buffer | undefined, count: number): Buffer | undefined {
    const { root, marks } = this.#state
    const entries = [...marks.getRange({ ...(start === undefined ? {} : { start }), limit: count })]
    const expired = entries.filter(({ value }) => this.#isExpired(value)).map(({ key }) => key)
    removeAll(root, marks, expired)
    return entries.length < count ? undefined : entries[entries.length - 1]!.key
  }
}

function removeAll(root: RootDatabase, database: Database<Buffer, Buffer>, keys: readonly Buffer[]): void {
  if (keys.length === 0) return
  root.transactionSync(() => {
    for (const key of keys) database.removeSync(key)
  })
}

function limited(refused: Refused): Limited {
  return { status: 'limited', retryAfterMs: refused.retryAfterMs, policy: refused.policy }
}

function windowKey(nowMs: number, kind: number, name: string): Buffer {
  const key = Buffer.allocUnsafe(5 + name.length)
  key.writeUInt32BE(Math.floor(nowMs / MINUTE_MS), 0)
  key[4] = kind
  key.write(name, 5, 'latin1')
  return key
}

function markKey(kind: number, nonce: string): Buffer {
  const key = Buffer.allocUnsafe(5 + nonce.length / 2)
  key.writeUInt32BE(Math.floor(nonceTerms(nonce).issuedAtMs / MINUTE_MS), 0)
  key[4] = kind
  key.write(nonce, 5, 'hex')
  return key
}
