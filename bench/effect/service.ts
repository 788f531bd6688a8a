/**
 * The service on a virtual clock: the rules of src/domain decide everything, and nothing is hashed, sent or stored. Workers
 * share a store without delay. A visit goes to any worker, and workers exchange their loads once a second.
 */

import { type Address, limitKey } from '../../src/domain/address.ts'
import { ACCEPTED_MS, admitToLog, LogKind, type Spending } from '../../src/domain/address-log.ts'
import { type Learned, learn, mayVote, voteOf } from '../../src/domain/calibrator.ts'
import { comesAgain, type DifficultyInputs, difficultyFor, isShared } from '../../src/domain/difficulty.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { FingerprintWatch } from '../../src/domain/fingerprints.ts'
import { addLoad, isAttack, type LoadState, loadOf } from '../../src/domain/load.ts'
import { NetworkMemory, type NetworkReport, reportNetworks } from '../../src/domain/networks.ts'
import { challengeLifetimeMs } from '../../src/domain/nonce.ts'
import { PLAIN_ENVIRONMENT, scoreOf } from '../../src/domain/score.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { timingFor, wholeBits } from '../../src/domain/solve-time.ts'
import { SourceWatch } from '../../src/domain/sources.ts'
import { FIRST_COUNTER } from '../../src/protocol/proof.ts'
import { LoadTracker } from '../../src/store/load-tracker.ts'
import { SpeedTracker } from '../../src/store/speed-tracker.ts'
import type { LoadReport, SiteLoad } from '../../src/store/store.ts'
import type { ChallengeAnswer, Clock, Policy, Solution, VerifyAnswer } from './policy.ts'
import { Draw } from './world.ts'

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
  readonly speeds: SpeedTracker
}

export class Service implements Policy {
  readonly base: number
  readonly #clock: Clock
  readonly #workers: readonly Worker[]
  readonly #records = new Map<string, { record: Buffer; atMs: number }>()
  readonly #solveMs: number | undefined
  load: LoadState | undefined
  #learned: Learned | undefined
  /** In place of keyed hashes. */
  readonly #draw = new Draw(1)
  networks = new NetworkMemory()
  #sweptAtMs = 0
  #proofs = 1

  constructor(
    clock: Clock,
    workers: number,
    base: number = SITE_DEFAULTS.difficulty.base,
    hosts = 1,
    solveMs?: number,
  ) {
    this.base = base
    this.#solveMs = solveMs
    this.#clock = clock
    const store = {
      sites: {
        exchangeLoad: async (reports: readonly LoadReport[]) => this.#exchange(reports),
        addVotes: async (votes: ReadonlyMap<string, number>) => this.#addVotes(votes),
      },
      exchangeNetworks: async (proofs: number, reports: readonly NetworkReport[]) =>
        reportNetworks(this.networks, clock.nowMs, proofs, reports),
    }
    const now = () => clock.nowMs
    this.#workers = Array.from({ length: workers }, (_, index) => {
      const sources = new SourceWatch()
      const loads = new LoadTracker(store, sources, workers / hosts, now, now)
      const speeds = new SpeedTracker(store.sites, now, index + 1)
      return { loads, sources, speeds, fingerprints: new FingerprintWatch(workers, index + 1) }
    })
  }

  /** To be called once a virtual second. */
  async exchange(): Promise<void> {
    for (const index of this.#workers.keys()) await this.exchangeOf(index)
    if (this.#clock.nowMs < this.#sweptAtMs + SWEEP_MS) return
    this.#sweptAtMs = this.#clock.nowMs
    for (const [key, { atMs }] of this.#records)
      if (atMs < this.#clock.nowMs - SWEEP_MS) this.#records.delete(key)
  }

  async exchangeOf(worker: number): Promise<void> {
    const { loads, speeds } = this.#workers[worker]!
    await loads.exchange()
    await loads.exchangeNetworks()
    await speeds.exchange()
  }

  challenge(address: Address, worker: number): ChallengeAnswer {
    const { challengeAddress, challengeAddressSite } = CONTRACT_LIMITS
    const admitted = this.#admit(LogKind.challenge, address, challengeAddress, challengeAddressSite)
    if (admitted.status === 'limited') return { retryAfterMs: admitted.retryAfterMs }
    const { loads, sources, speeds } = this.#workers[worker]!
    const issuedAtMs = this.#clock.nowMs
    const load = loads.load(SITE)
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
    const base = this.#baseAt(speeds.lead(SITE.siteKey))
    const bits = difficultyFor({ ...SITE_DEFAULTS.difficulty, base }, inputs)
    return { bits, base, issuedAtMs, expiresAtMs: issuedAtMs + challengeLifetimeMs(bits, LIFETIME_MS) }
  }

  verify(address: Address, worker: number, solution: Solution): VerifyAnswer {
    const { challenge, isRight, fingerprint } = solution
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
    sources.accepted(address, loads.count(SITE, comesAgain(accepted, sources.of(address, nowMs))))
    if (this.#solveMs !== undefined) this.#vote(address, this.#workers[worker]!, solution)
    return { status: 'passed', score }
  }

  #baseAt(lead: number): number {
    if (this.#solveMs === undefined) return this.base
    const { min, max } = SITE_DEFAULTS.difficulty
    return wholeBits(timingFor({ solveMs: this.#solveMs, min, max }, lead).exactBase, this.#draw.share())
  }

  /** As in src/endpoints/solve-time.ts. */
  #vote(address: Address, { loads, speeds }: Worker, { challenge, claim }: Solution): void {
    if (claim === undefined || isAttack(loads.load(SITE))) return
    if (challenge.bits > challenge.base || !mayVote(this.#draw.share())) return
    const { tries, solveTimeMs } = claim
    const counter = FIRST_COUNTER + Math.round(tries) - 1
    const terms = { difficulty: challenge.bits, elapsedMs: this.#clock.nowMs - challenge.issuedAtMs }
    speeds.vote(SITE.siteKey, address, voteOf({ counter, solveTimeMs }, terms, speeds.lead(SITE.siteKey)))
  }

  #addVotes(votes: ReadonlyMap<string, number>): Map<string, Learned> {
    for (const sum of votes.values())
      if (sum !== 0) this.#learned = learn(this.#learned, this.#clock.nowMs, sum)
    return new Map(this.#learned === undefined ? [] : [[SITE.siteKey, this.#learned]])
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
      this.load = addLoad(this.load, this.#clock.nowMs, counts)
      return { siteKey, ...loadOf(this.load), sinceMs: this.load.sinceMs }
    })
  }
}
