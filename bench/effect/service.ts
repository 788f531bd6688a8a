/**
 * The service on a virtual clock: the rules of src/domain decide everything, and nothing is hashed, sent or stored. Workers
 * share a store without delay. A visit goes to any worker, and workers exchange their loads once a second.
 */

import { type Address, limitKey } from '../../src/domain/address.ts'
import { ACCEPTED_MS, admitToLog, LogKind, type Spending } from '../../src/domain/address-log.ts'
import { comesAgain, type DifficultyInputs, difficultyFor, isShared } from '../../src/domain/difficulty.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { FingerprintWatch } from '../../src/domain/fingerprints.ts'
import { addLoad, type LoadState, loadOf } from '../../src/domain/load.ts'
import { NetworkMemory, type NetworkReport, reportNetworks } from '../../src/domain/networks.ts'
import { challengeLifetimeMs } from '../../src/domain/nonce.ts'
import { PLAIN_ENVIRONMENT, scoreOf } from '../../src/domain/score.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { SourceWatch } from '../../src/domain/sources.ts'
import { LoadTracker } from '../../src/store/load-tracker.ts'
import type { LoadReport, SiteLoad } from '../../src/store/store.ts'
import type { ChallengeAnswer, Clock, Policy, Solution, VerifyAnswer } from './policy.ts'

const SITE = { siteKey: 'site', tag: 1 }
const LIFETIME_MS = 120_000
const IPV6_PREFIX_BITS = 64
const FINGERPRINT_PREFIX_BITS = 48
/** Records that time has emptied are looked for so often. */
const SWEEP_MS = ACCEPTED_MS

interface Worker {
  readonly loads: LoadTracker
  readonly fingerprints: FingerprintWatch
  readonly sources: SourceWatch
}

export class Service implements Policy {
  readonly base: number
  readonly #clock: Clock
  readonly #workers: readonly Worker[]
  readonly #records = new Map<string, { record: Buffer; atMs: number }>()
  #load: LoadState | undefined
  readonly #networks = new NetworkMemory()
  #sweptAtMs = 0
  #proofs = 1

  constructor(clock: Clock, workers: number, base: number = SITE_DEFAULTS.difficulty.base, hosts = 1) {
    this.base = base
    this.#clock = clock
    const store = {
      sites: { exchangeLoad: async (reports: readonly LoadReport[]) => this.#exchange(reports) },
      exchangeNetworks: async (proofs: number, reports: readonly NetworkReport[]) =>
        reportNetworks(this.#networks, clock.nowMs, proofs, reports),
    }
    const now = () => clock.nowMs
    this.#workers = Array.from({ length: workers }, (_, index) => {
      const sources = new SourceWatch()
      const loads = new LoadTracker(store, sources, workers / hosts, now, now)
      return { loads, sources, fingerprints: new FingerprintWatch(workers, index + 1) }
    })
  }

  /** To be called once a virtual second. */
  async exchange(): Promise<void> {
    for (const { loads } of this.#workers) {
      await loads.exchange()
      await loads.exchangeNetworks()
    }
    if (this.#clock.nowMs < this.#sweptAtMs + SWEEP_MS) return
    this.#sweptAtMs = this.#clock.nowMs
    for (const [key, { atMs }] of this.#records)
      if (atMs < this.#clock.nowMs - SWEEP_MS) this.#records.delete(key)
  }

  challenge(address: Address, worker: number): ChallengeAnswer {
    const { challengeAddress, challengeAddressSite } = CONTRACT_LIMITS
    const admitted = this.#admit(LogKind.challenge, address, challengeAddress, challengeAddressSite)
    if (admitted.status === 'limited') return { retryAfterMs: admitted.retryAfterMs }
    const { loads, sources } = this.#workers[worker]!
    const issuedAtMs = this.#clock.nowMs
    const load = loads.load(SITE.siteKey)
    const inputs: DifficultyInputs = {
      addressChallenges: admitted.siteCount,
      addressLimit: challengeAddressSite,
      addressFailures: admitted.failures,
      addressAccepted: admitted.accepted,
      source: sources.of(address, issuedAtMs),
      siteRate: load.rate,
      siteRateUsual: load.usualRate,
      siteGrowth: load.growth,
    }
    const bits = difficultyFor({ ...SITE_DEFAULTS.difficulty, base: this.base }, inputs)
    return { bits, issuedAtMs, expiresAtMs: issuedAtMs + challengeLifetimeMs(bits, LIFETIME_MS) }
  }

  verify(address: Address, worker: number, { challenge, isRight, fingerprint }: Solution): VerifyAnswer {
    const { nowMs } = this.#clock
    const { verifyAddress, verifyAddressSite } = CONTRACT_LIMITS
    const isExpired = nowMs >= challenge.expiresAtMs
    const kind = isRight || isExpired ? LogKind.verification : LogKind.failedVerification
    const spending = isRight && !isExpired ? { mark: this.#proofs++, keepMs: LIFETIME_MS } : undefined
    const admitted = this.#admit(kind, address, verifyAddress, verifyAddressSite, spending)
    if (admitted.status === 'limited') return admitted
    if (isExpired) return { status: 'expired' }
    if (!isRight) return { status: 'failed' }
    const { loads, fingerprints, sources } = this.#workers[worker]!
    const { failures, accepted } = admitted
    const isOthers = failures > 1 && isShared(failures, accepted)
    const network = limitKey(address, FINGERPRINT_PREFIX_BITS)
    const { score } = scoreOf({
      environment: PLAIN_ENVIRONMENT,
      solveTimeMs: undefined,
      elapsedMs: nowMs - challenge.issuedAtMs,
      difficulty: challenge.bits,
      fingerprintAddresses: fingerprints.note(SITE.tag, fingerprint, network, nowMs),
      addressFailures: isOthers ? 1 : failures,
    })
    if (score < SITE_DEFAULTS.threshold) return { status: 'failed' }
    loads.count(SITE, comesAgain(accepted, sources.of(address, nowMs)))
    sources.accepted(address, nowMs)
    return { status: 'passed', score }
  }

  #admit(kind: LogKind, address: Address, addressLimit: number, siteLimit: number, spending?: Spending) {
    const { nowMs } = this.#clock
    const key = limitKey(address, IPV6_PREFIX_BITS)
    const now = Math.floor(nowMs)
    const before = this.#records.get(key)?.record
    const decision = admitToLog(before, now, kind, { siteTag: SITE.tag, addressLimit, siteLimit }, spending)
    if (decision.status === 'admitted')
      this.#records.set(key, { record: Buffer.from(decision.record), atMs: nowMs })
    return decision
  }

  #exchange(reports: readonly LoadReport[]): SiteLoad[] {
    return reports.map(({ siteKey, ...counts }) => {
      this.#load = addLoad(this.#load, this.#clock.nowMs, counts)
      return { siteKey, ...loadOf(this.#load), sinceMs: this.#load.sinceMs }
    })
  }
}
