/**
 * The service on a virtual clock: the rules of src/domain decide everything, and nothing is hashed, sent or stored. All workers
 * decide by the counts of one store, without delay, so their number does not matter.
 */

import { type Address, formatVisitor } from '../../src/addresses/address.ts'
import { ACCEPTED_MS, admitToLog, LogKind, type Spending } from '../../src/domain/address-log.ts'
import { AddressTags, siteMeter } from '../../src/domain/address-tags.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import type { Meter, Meters } from '../../src/domain/meters.ts'
import { addProof, fadeAll, keptMs, metersFrom, newMeter, renewFirstProof } from '../../src/domain/meters.ts'
import { nonceLifetimeMs } from '../../src/domain/nonce.ts'
import { checkPrice, difficultyOf, priceOf, siteFree, trafficOf } from '../../src/domain/price.ts'
import { networkPricing, PRICING } from '../../src/domain/pricing.ts'
import { countedFailures, PLAIN_ENVIRONMENT, scoreOf } from '../../src/domain/score.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { BASE_BITS } from '../../src/domain/site-fields.ts'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import type { Scenario } from './scenario.ts'
import type { Timeline } from './world.ts'

export const SITE = { siteKey: 'site', tag: 1 }
const LIFETIME_MS = 120_000 // of a challenge, as the settings have it by default
const IPV6_PREFIX_BITS = 64
/** The operator expects no number of proofs a minute (`--usual-rate`). */
const SITE_EXPECTED = 0
/** The operator has named no network. */
const IS_KNOWN_NETWORK = false
/** How often records that time has emptied are looked for and dropped. */
const SWEEP_MS = ACCEPTED_MS

export interface Challenge {
  readonly bits: number
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

type ChallengeAnswer = Challenge | { readonly retryAfterMs: number }

type VerifyAnswer =
  | { readonly status: 'passed'; readonly score: number }
  | { readonly status: 'failed' | 'expired' }
  | { readonly status: 'limited'; readonly retryAfterMs: number }

/** A solution as the rules see one. */
export interface Solution {
  readonly challenge: Challenge
  readonly isRight: boolean
}

type SiteChoice = Pick<Scenario, 'base'> & { readonly puzzle?: PuzzleName }

export class SimulatedService {
  readonly puzzle: PuzzleName
  /** The meters by their names in Redis, without the shard. Whoever continues a history takes them over. */
  meters = new Map<string, Meter>()
  readonly #bounds: typeof SITE_DEFAULTS.difficulty
  readonly #clock: Pick<Timeline, 'nowMs'>
  /** Address logs (src/domain/address-log.ts) by visitor. */
  readonly #records = new Map<string, { record: Buffer; atMs: number }>()
  readonly #tags: AddressTags
  #sweptAtMs = 0
  /** The next proof marks its nonce as used by this number. */
  #nextMark = 1

  /** @param secret the service's, if both have to name networks alike */
  constructor(
    clock: Pick<Timeline, 'nowMs'>,
    { puzzle = 'sha256', base = BASE_BITS[puzzle] }: SiteChoice,
    secret = 'a secret for the bench',
  ) {
    this.#tags = new AddressTags(new Keyring([secret]).signing)
    this.#bounds = { ...SITE_DEFAULTS.difficulty, base }
    this.puzzle = puzzle
    this.#clock = clock
  }

  challenge(address: Address): ChallengeAnswer {
    this.#sweep()
    const { challengeAddress, challengeAddressSite } = CONTRACT_LIMITS
    const admitted = this.#admit(LogKind.challenge, address, challengeAddress, challengeAddressSite)
    if (admitted.status === 'limited') return { retryAfterMs: admitted.retryAfterMs }
    const issuedAtMs = this.#clock.nowMs
    const { siteCount: challenges, accepted } = admitted
    const counts = { challenges, limitPerMinute: challengeAddressSite, accepted }
    const price = priceOf(counts, this.#trafficOf(address, this.#metersOf(address)), PRICING)
    const bits = difficultyOf(this.#bounds, price)
    // The bench may set a fraction of a bit.
    const lifetimeMs = nonceLifetimeMs(Math.ceil(bits), LIFETIME_MS, this.puzzle)
    return { bits, issuedAtMs, expiresAtMs: issuedAtMs + lifetimeMs }
  }

  verify(address: Address, { challenge, isRight }: Solution): VerifyAnswer {
    const { nowMs } = this.#clock
    const { verifyAddress, verifyAddressSite } = CONTRACT_LIMITS
    const isExpired = nowMs >= challenge.expiresAtMs
    const kind = isRight || isExpired ? LogKind.verification : LogKind.failedVerification
    const spending = isRight && !isExpired ? { mark: this.#nextMark++, keepMs: LIFETIME_MS } : undefined
    const admitted = this.#admit(kind, address, verifyAddress, verifyAddressSite, spending)
    if (admitted.status === 'limited') return admitted
    if (isExpired) return { status: 'expired' }
    if (!isRight) return { status: 'failed' }
    const { failures, accepted } = admitted
    const meters = this.#metersOf(address)
    // As in the service, the store counts the proof before the price is known, and takes it out again if it was too cheap.
    this.#addProof(meters, address, accepted, 1)
    const traffic = this.#trafficOf(address, meters)
    const { isUnderpriced, isCapped } = checkPrice(challenge.bits, this.#bounds, accepted, traffic, PRICING)
    if (isUnderpriced || isCapped) this.#addProof(meters, address, accepted, -1)
    if (isUnderpriced) return { status: 'expired' } // a client fetches a new challenge, as for one that has expired
    // Failures lower the score of a plain environment by 0.3 at most, so it stays above the threshold.
    const { score } = scoreOf({
      environment: PLAIN_ENVIRONMENT,
      solveTimeMs: undefined,
      elapsedMs: nowMs - challenge.issuedAtMs,
      difficulty: challenge.bits,
      addressFailures: countedFailures(failures, accepted),
    })
    return { status: 'passed', score }
  }

  #metersOf(address: Address): Meters {
    const { nowMs } = this.#clock
    const key = this.#tags.keyOf(address, IPV6_PREFIX_BITS)
    const networks = this.#tags.networkMeters(address, key, this.puzzle)
    const names = [...this.#tags.firstProofNames, siteMeter(SITE.siteKey), ...networks]
    const records = names.map(name => this.#meter(name))
    const meters = metersFrom(records, nowMs)
    fadeAll(meters, nowMs, PRICING)
    return meters
  }

  #trafficOf(address: Address, meters: Meters) {
    return trafficOf(meters, networkPricing(address, PRICING), SITE_EXPECTED, IS_KNOWN_NETWORK, PRICING)
  }

  #addProof(meters: Meters, address: Address, accepted: number, proofs: 1 | -1): void {
    const { owner, wide } = networkPricing(address, PRICING).free
    addProof(meters, [siteFree(SITE_EXPECTED, PRICING), owner, wide], accepted, proofs, PRICING)
    // The stores do so too when they take a proof out.
    for (const name of this.#tags.firstProofNames) renewFirstProof(this.#meter(name), this.#clock.nowMs)
  }

  #meter(key: string): Meter {
    const { nowMs } = this.#clock
    const known = this.meters.get(key)
    if (known !== undefined && nowMs <= known.atMs + keptMs(known)) return known
    const meter = newMeter(nowMs)
    this.meters.set(key, meter)
    return meter
  }

  #sweep(): void {
    const { nowMs } = this.#clock
    if (nowMs < this.#sweptAtMs + SWEEP_MS) return
    this.#sweptAtMs = nowMs
    for (const [key, { atMs }] of this.#records) if (atMs < nowMs - SWEEP_MS) this.#records.delete(key)
    for (const [key, meter] of this.meters) if (nowMs > meter.atMs + keptMs(meter)) this.meters.delete(key)
  }

  #admit(kind: LogKind, address: Address, addressLimit: number, siteLimit: number, spending?: Spending) {
    const { nowMs } = this.#clock
    const key = formatVisitor(address, IPV6_PREFIX_BITS)
    const now = Math.floor(nowMs)
    const before = this.#records.get(key)?.record
    const decision = admitToLog(before, now, kind, { siteTag: SITE.tag, addressLimit, siteLimit }, spending)
    if (decision.status === 'admitted')
      this.#records.set(key, { record: Buffer.from(decision.record), atMs: nowMs })
    return decision
  }
}
