/**
 * Bridges an outage of Redis ("fails open"): answers /challenge and /verify from this worker's memory, once Redis has been away for
 * `failOpenAfterMs`, longer than a failover takes. A failover draws a new epoch, by which all that was issued meanwhile is refused:
 * without the wait, a failover lost 110 of 160 visits.
 *
 * Each worker then knows only its own requests and used nonces, so a nonce may be spent in two workers. It still gives one
 * redemption, because /verify-token fails closed and redeems once per nonce.
 */

import { admitToLog, LogKind, verificationKind } from '../../domain/address-log.ts'
import { ownerKey } from '../../domain/address-tags.ts'
import { WINDOW_MS } from '../../domain/limits.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  type Done,
  type SolutionAdmission,
  type SolutionRequest,
  UNAVAILABLE,
} from '../store.ts'
import { ShardedRequests } from './requests.ts'
import type { Shard } from './shard.ts'

const ADDRESSES_MAX = 100_000
/** Beyond ADDRESSES_MAX, all addresses of an IPv4 /24 or IPv6 /48 share a record, with this many times the limits of an address. */
const SHARED_TIMES = 8
const NONCES_MAX = 200_000
/** A full map is searched for expired entries at most this often, since that takes milliseconds. */
const SWEEP_MS = 1000
/** `onCrowded` is called again after this time in which all addresses fitted. */
const CROWDED_AGAIN_MS = 600_000
/** Everything that has expired is removed this often; otherwise it would stay after an outage until the worker ends. */
const FORGET_MS = 60_000

export interface BridgeOptions {
  readonly workers: number
  readonly failOpen: { readonly challenge: boolean; readonly verify: boolean }
  readonly failOpenAfterMs: number
  /** Milliseconds that never step back. */
  readonly monotonicMs: () => number
  /** Called when more than ADDRESSES_MAX addresses ask. */
  readonly onCrowded?: () => void
}

export class BridgedRequests extends ShardedRequests {
  readonly #options: BridgeOptions
  readonly #timer: NodeJS.Timeout
  readonly #logs = new ExpiringMap<Buffer>(ADDRESSES_MAX)
  /** Records of networks whose addresses no longer fit: a flood shares its network's limit, and visitors from elsewhere keep theirs. */
  readonly #networkLogs = new ExpiringMap<Buffer>(ADDRESSES_MAX)
  /** The time by `monotonicMs` until which `onCrowded` is not called again. */
  #crowdedUntil = 0
  /** These expire by Unix time, as nonces do; the records above by `monotonicMs`. */
  readonly #usedNonces = new ExpiringMap<true>(NONCES_MAX)

  constructor(shards: readonly Shard[], now: () => number, options: BridgeOptions) {
    super(shards, now)
    this.#options = options
    this.#timer = setInterval(() => this.#forgetExpired(), FORGET_MS).unref()
  }

  override stop(): void {
    clearInterval(this.#timer)
    super.stop()
  }

  /** Asks for the site's shard alone, since no admission reaches it. The admission decides on the address's (`#isLongAway`). */
  override nonceEpoch(addressKey: string, siteKey: string, mayFailOpen = false): number | undefined {
    const awayMs = this.awayMs(siteKey)
    const serves = awayMs === 0 || (mayFailOpen && awayMs >= this.#options.failOpenAfterMs)
    return serves ? super.nonceEpoch(addressKey, siteKey) : undefined
  }

  override admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    super.admitChallenge(request, answer => {
      const { failOpen = this.#options.failOpen.challenge } = request
      done(failOpen && this.#isLongAway(request, answer) ? this.#challengeFromMemory(request) : answer)
    })
  }

  override admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    super.admitSolution(request, answer => {
      const { failOpen = this.#options.failOpen.verify } = request
      done(failOpen && this.#isLongAway(request, answer) ? this.#solutionFromMemory(request) : answer)
    })
  }

  #isLongAway({ addressKey }: ChallengeRequest, { status }: { readonly status: string }): boolean {
    const awayMs = this.awayMs(addressKey)
    // A shard that is up may refuse too, while too many calls are pending.
    return status === 'unavailable' && awayMs > 0 && awayMs >= this.#options.failOpenAfterMs
  }

  #challengeFromMemory(request: ChallengeRequest): ChallengeAdmission {
    const decision = this.#admit(request, LogKind.challenge)
    if (decision.status !== 'admitted') return decision
    const { failures, accepted } = decision
    // The price depends on the used share of the limit. This worker counts against its part of that, so its count is scaled up.
    const siteCount = Math.round(decision.siteCount * (request.siteLimit / Math.max(1, decision.siteLimit)))
    return { status: 'admitted', siteCount, failures, accepted, meters: undefined }
  }

  #solutionFromMemory(request: SolutionRequest): SolutionAdmission {
    const decision = this.#admit(request, verificationKind(request))
    if (decision.status !== 'admitted') return decision
    const nonce = this.#spend(request.spend)
    if (nonce === undefined) return UNAVAILABLE
    const { failures, accepted } = decision
    return { status: 'admitted', failures, accepted, meters: undefined, nonce }
  }

  /** @returns undefined if the nonce does not fit into the memory */
  #spend(spend: SolutionRequest['spend']): 'spent' | 'used' | 'untouched' | undefined {
    if (spend === undefined) return 'untouched'
    const now = Date.now()
    if (this.#usedNonces.get(spend.nonce, now) !== undefined) return 'used'
    if (!this.#usedNonces.makesRoom(spend.nonce, now)) return undefined
    this.#usedNonces.set(spend.nonce, true, spend.expiresAtMs)
    return 'spent'
  }

  /** Charges the address's record; for an address that no longer fits, its network's. */
  #admit(request: ChallengeRequest, kind: LogKind) {
    const { addressKey, siteTag, addressLimit, siteLimit } = request
    if (this.epochOf(addressKey) === undefined) return UNAVAILABLE // not reached yet; an outage keeps the last epoch
    const now = Math.floor(this.#options.monotonicMs())
    const fits = this.#logs.makesRoom(addressKey, now)
    if (!fits) this.#noteCrowded(now)
    const { logs, key, limitTimes } = fits
      ? { logs: this.#logs, key: addressKey, limitTimes: 1 }
      : { logs: this.#networkLogs, key: ownerKey(addressKey), limitTimes: SHARED_TIMES }
    // Each worker has its part of a limit, since none knows what the others admit.
    const share = (limit: number) =>
      limit === 0 ? 0 : Math.max(1, Math.floor((limit * limitTimes) / this.#options.workers))
    const limits = { siteTag, addressLimit: share(addressLimit), siteLimit: share(siteLimit) }
    const decision = admitToLog(logs.get(key, now), now, kind, limits)
    if (decision.status === 'limited') return decision
    const record = Buffer.from(decision.record) // a copy, since the next call reuses that memory
    if (!logs.makesRoom(key, now)) logs.dropFirst() // only among networks: an address that does not fit is not here
    logs.set(key, record, now + WINDOW_MS)
    return { ...decision, siteLimit: limits.siteLimit }
  }

  #forgetExpired(): void {
    for (const logs of [this.#logs, this.#networkLogs]) logs.removeExpired(this.#options.monotonicMs())
    this.#usedNonces.removeExpired(Date.now())
  }

  #noteCrowded(now: number): void {
    if (now >= this.#crowdedUntil) this.#options.onCrowded?.()
    this.#crowdedUntil = now + CROWDED_AGAIN_MS
  }
}

/** A map of entries that expire. `set` checks no size: call `makesRoom` before, and `dropFirst` where that gives false. */
class ExpiringMap<Value> {
  readonly #entries = new Map<string, { value: Value; expiresAt: number }>()
  readonly #sizeMax: number
  #sweptAt = 0

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  get(key: string, now: number): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.expiresAt > now ? entry.value : undefined
  }

  /** Removes expired entries if the map is full. @returns true if the key fits, or is there already */
  makesRoom(key: string, now: number): boolean {
    if (this.#entries.size < this.#sizeMax || this.#entries.has(key)) return true
    this.removeExpired(now)
    return this.#entries.size < this.#sizeMax
  }

  set(key: string, value: Value, expiresAt: number): void {
    this.#entries.set(key, { value, expiresAt })
  }

  dropFirst(): void {
    const [first] = this.#entries.keys()
    this.#entries.delete(first!)
  }

  /** Scans everything, since entries expire in any order; does nothing within SWEEP_MS of the last scan. */
  removeExpired(now: number): void {
    if (now < this.#sweptAt + SWEEP_MS) return
    this.#sweptAt = now
    for (const [key, { expiresAt }] of this.#entries) if (expiresAt <= now) this.#entries.delete(key)
  }
}
