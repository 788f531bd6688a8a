/**
 * POST /verify: checks a solution and issues a token.
 *
 *   site key -> body read -> site -> [ evaluate: everything that needs no store ] -> limits, nonce -> score -> token
 *   400         413          503                                                    429/503  400      200     200
 *
 *   evaluate: site, active?, origin -> content type, body -> IP rules -> nonce    -> proof
 *             403                      400                   200 failed  400/403     200 failed
 *
 * The store is called once, whatever `evaluate` finds, because every request counts against the limits; 429 takes precedence
 * over all other answers. The steps up to the origin are in visit.ts.
 */

import { type Address, limitKey } from '../domain/address.ts'
import { timeText } from '../domain/bytes.ts'
import { comesAgain, isShared } from '../domain/difficulty.ts'
import { challengeLifetimeMs, type NonceTerms, readNonce } from '../domain/nonce.ts'
import type { Refusal } from '../domain/outcome.ts'
import { pageOf } from '../domain/page.ts'
import { checkProof } from '../domain/pow.ts'
import {
  type JudgementReason,
  type Score,
  type ScoreReason,
  type ScoreSignals,
  scoreOf,
} from '../domain/score.ts'
import type { Site } from '../domain/site.ts'
import { mintToken } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS } from '../http/replies.ts'
import { parseSolution } from '../http/schemas.ts'
import type { Solution } from '../protocol/wire.ts'
import type { SolutionAdmission, SolutionRequest } from '../store/store.ts'
import { CLOCK_SKEW_MS, type Judgement } from './service.ts'
import { voteOnSpeed } from './solve-time.ts'
import { type AllowedVisit, type Visit, VisitorEndpoint } from './visit.ts'

type Admitted = Extract<SolutionAdmission, { status: 'admitted' }>

/** The judgement of a request before the store is called. */
type Attempt =
  | { readonly verdict: 'refused'; readonly refusal: Refusal }
  /** The failed result (contract §2.3), and its reason. The nonce stays unused. */
  | {
      readonly verdict: 'failed'
      readonly nonce: string
      readonly reason: Exclude<JudgementReason, ScoreReason>
    }
  | {
      readonly verdict: 'solved'
      readonly solution: Solution
      readonly spend: NonNullable<SolutionRequest['spend']>
      /** When the nonce was read, the epoch of the shard that holds the site's redemption records. */
      readonly siteEpoch: number
      readonly signals: ScoreSignals
      readonly score: Score
    }

type Solved = Extract<Attempt, { verdict: 'solved' }>

/** The score of every solution at a test site. */
const CERTAIN: Score = { score: 1, reasons: [] }

/** An access provider gives one customer at most a /48, with any number of addresses in it. */
const FINGERPRINT_PREFIX_BITS = 48

const FAILED_BODY = '{"token":null,"passed":false,"expiresAt":null}'

export class VerifyEndpoint extends VisitorEndpoint {
  protected admit(visit: Visit, body: Buffer): void {
    const attempt =
      visit.refusal === undefined ? this.#evaluate(visit, body) : refused({ reason: visit.refusal })
    const spend = attempt.verdict === 'solved' ? attempt.spend : undefined
    this.service.store.admitSolution(
      this.chargeOf(visit, this.#isFailure(attempt, visit.site), spend),
      visit.exchange.guard(admission => {
        if (this.admits(visit.exchange, admission, visit.ownLimits)) this.#conclude(visit, attempt, admission)
      }),
    )
  }

  #evaluate({ exchange, site, address, addressKey }: AllowedVisit, body: Buffer): Attempt {
    const { record } = site
    const parsed = parseSolution(body, exchange.contentType)
    if (!parsed.ok) return refused(parsed.refusal)
    const { nonce } = parsed.body
    exchange.nonce = nonce
    if (site.test === 'fails') return { verdict: 'failed', nonce, reason: 'test-key' }
    if (site.ipRules?.block.has(address)) return { verdict: 'failed', nonce, reason: 'ip-blocked' }
    if (site.ipRules !== undefined && !site.ipRules.allow.isEmpty && !site.ipRules.allow.has(address)) {
      return { verdict: 'failed', nonce, reason: 'ip-not-allowed' }
    }
    const { store, settings } = this.service
    const addressEpoch = store.epochOf(addressKey)
    const siteEpoch = store.epochOf(record.siteKey)
    const storeEpoch = store.nonceEpoch(addressKey, record.siteKey)
    if (addressEpoch === undefined || siteEpoch === undefined || storeEpoch === undefined)
      return refused({ reason: 'store-unavailable' })
    const binding = { siteKey: record.siteKey, storeEpoch, lifetimes: settings, address }
    const latestMs = this.service.now() + CLOCK_SKEW_MS
    const reading = readNonce(this.service.keyring, parsed.body.nonce, binding, latestMs)
    switch (reading.status) {
      case 'genuine':
        return this.#evaluateSolution(site, parsed.body, reading, addressEpoch, siteEpoch)
      case 'other-address':
        return refused({ reason: 'nonce-other-address' })
      default:
        return refused({ reason: 'nonce-forged' })
    }
  }

  /** Whether the nonce was issued to another address on another shard of a Cluster, which has its own epoch. */
  #isOfOtherShard(nonce: string, siteKey: string, address: Address): boolean {
    const { settings: lifetimes, keyring, now } = this.service
    for (const storeEpoch of this.service.store.nonceEpochs(siteKey)) {
      const binding = { siteKey, storeEpoch, lifetimes, address }
      const { status } = readNonce(keyring, nonce, binding, now() + CLOCK_SKEW_MS)
      if (status === 'other-address') return true
    }
    return false
  }

  #evaluateSolution(
    site: Site,
    solution: Solution,
    terms: NonceTerms,
    addressEpoch: number,
    siteEpoch: number,
  ): Attempt {
    const { nonce } = solution
    const now = this.service.now()
    const { issuedAtMs, difficulty } = terms
    const lifetimeMs = challengeLifetimeMs(difficulty, this.service.settings.challengeLifetimeMs)
    if (issuedAtMs > now + CLOCK_SKEW_MS) return refused({ reason: 'nonce-from-future' })
    if (now >= issuedAtMs + lifetimeMs) return refused({ reason: 'nonce-expired' })
    if (!checkProof(nonce, solution.counter, difficulty))
      return { verdict: 'failed', nonce, reason: 'proof-wrong' }
    const signals: ScoreSignals = {
      environment: solution.environment,
      solveTimeMs: solution.solveTimeMs,
      elapsedMs: now - issuedAtMs,
      difficulty,
      fingerprintAddresses: 1, // #signalsOf counts fingerprints, of admitted solutions only
      addressFailures: 0,
    }
    const score = scoreOf(signals, site.scoreWeights)
    // If this host's clock is ahead, the nonce is still valid on a host with the right time.
    const expiresAtMs = Math.max(issuedAtMs, now) + lifetimeMs
    const spend = { nonce, storeEpoch: addressEpoch, expiresAtMs }
    return { verdict: 'solved', solution, spend, siteEpoch, signals, score }
  }

  /**
   * Whether the attempt counts as a failure of the address, as far as is known before the store is called. Failures at a test
   * site, or by a site's IP rules, do not count.
   */
  #isFailure(attempt: Attempt, site: Site | null): boolean {
    if (site?.test !== undefined) return false
    switch (attempt.verdict) {
      case 'solved':
        return attempt.score.score < (site?.record.threshold ?? 1)
      case 'failed':
        return attempt.reason === 'proof-wrong'
      default:
        return false
    }
  }

  #conclude(visit: Visit, attempt: Attempt, admitted: Admitted): void {
    const { exchange } = visit
    if (visit.refusal !== undefined) return this.refuse(exchange, visit.refusal)
    switch (attempt.verdict) {
      case 'solved':
        if (admitted.nonce !== 'spent') this.refuse(exchange, 'nonce-used')
        else this.#grade(visit, attempt, admitted)
        break
      case 'failed':
        this.#fail(exchange, {
          site: visit.site,
          nonce: attempt.nonce,
          passed: false,
          score: null,
          reasons: [attempt.reason],
          signals: undefined,
        })
        break
      default:
        this.#refuse(visit, attempt.refusal)
    }
  }

  /** Checks a forged nonce against all other shards, at one HMAC each. This comes after the limits, which bound the work. */
  #refuse({ exchange, site, address }: AllowedVisit, refusal: Refusal): void {
    const isElsewhere =
      refusal.reason === 'nonce-forged' && this.#isOfOtherShard(exchange.nonce, site.record.siteKey, address)
    if (isElsewhere) this.refuse(exchange, 'nonce-other-address')
    else this.refuse(exchange, refusal.reason, refusal)
  }

  /** Adds the signals that come from the store and from other visits. */
  #signalsOf(site: Site, address: Address, { solution, signals }: Solved, admitted: Admitted): ScoreSignals {
    const { fingerprints, now } = this.service
    const { failures, accepted } = admitted
    const network = limitKey(address, FINGERPRINT_PREFIX_BITS)
    const fingerprintAddresses = fingerprints.note(site.logTag, solution.fingerprintHash, network, now())
    // Where most people behind an address succeed, somebody else's failures take off one weight at most.
    const isOthers = failures > 1 && isShared(failures, accepted)
    const addressFailures = isOthers ? 1 : failures
    if (fingerprintAddresses === signals.fingerprintAddresses && addressFailures === signals.addressFailures)
      return signals
    return { ...signals, fingerprintAddresses, addressFailures }
  }

  #grade({ exchange, site, address, isKnown }: AllowedVisit, solved: Solved, admitted: Admitted): void {
    const { siteKey, threshold } = site.record
    const isTest = site.test !== undefined
    const signals = isTest ? solved.signals : this.#signalsOf(site, address, solved, admitted)
    const known = isTest ? CERTAIN : solved.score
    const { score, reasons } = signals === solved.signals ? known : scoreOf(signals, site.scoreWeights)
    const { nonce } = solved.solution
    const passed = score >= threshold
    const storeEpoch = solved.siteEpoch
    if (!passed) {
      this.#fail(exchange, { site, nonce, passed, score, reasons, signals })
    } else if (storeEpoch !== this.service.store.epochOf(siteKey)) {
      // The store has lost its memory meanwhile. A token of the old epoch would be refused, one of the new could be a second.
      this.refuse(exchange, 'store-unavailable')
    } else {
      const issuedAtMs = this.service.now()
      if (!isTest && !isKnown) {
        const source = this.service.sources.of(address, issuedAtMs)
        const isOfAttack = this.service.loads.count(site.record, comesAgain(admitted.accepted, source))
        this.service.sources.accepted(address, isOfAttack)
      }
      if (!isTest && reasons.length === 0) voteOnSpeed(this.service, site, address, solved.solution, signals)
      const { counter } = solved.solution
      const lifetimes = this.service.settings
      const page = pageOf(solved.solution, exchange.origin, site.origins)
      const { tag } = site
      const claims = { issuedAtMs, lifetimes, nonce, counter, siteTag: tag, address, score, storeEpoch, page }
      const token = mintToken(this.service.keyring, claims)
      const expiresAt = timeText(issuedAtMs + lifetimes.tokenLifetimeMs)
      this.service.events.judged(exchange, { site, nonce, passed, score, reasons, signals })
      exchange.answer({
        status: 200,
        body: `{"token":"${token}","passed":true,"expiresAt":${expiresAt}}`,
        headers: NO_HEADERS,
      })
    }
  }

  #fail(exchange: Exchange, judgement: Judgement): void {
    this.service.events.judged(exchange, judgement)
    exchange.answer({ status: 200, outcome: 'failed', body: FAILED_BODY, headers: NO_HEADERS })
  }
}

function refused(refusal: Refusal): Attempt {
  return { verdict: 'refused', refusal }
}
