/**
 * POST /verify: checks a solution and issues a token.
 *
 *   site key -> body read -> site -> attempt: what needs no store -> admission: limits, nonce -> conclusion
 *   400         413          503                                     429/503                     400 or 200
 *
 *   attempt:    site, active?, origin -> content type, body -> IP rules -> nonce       -> proof
 *               403                      400                   200 failed  400/403/503   200 failed
 *   conclusion: nonce unused? -> price still holds? -> score      -> token
 *               400              400                   200 failed    200/503
 *
 * One call to the store, whose answer is the admission, charges the limits and spends the nonce. Refused attempts make it too, because
 * 429 takes precedence, except those that a shard's outage refuses. visit.ts has the steps up to the origin.
 */

import { CLOCK_SKEW_MS } from '../domain/clock.ts'
import type { Judged } from '../domain/ending.ts'
import { type GenuineNonce, nonceLifetimeMs, readNonce } from '../domain/nonce.ts'
import type { Refusal } from '../domain/outcome.ts'
import { pageOf } from '../domain/page.ts'
import { checkProof } from '../domain/pow.ts'
import { boundsOf, checkPrice } from '../domain/price.ts'
import {
  countedFailures,
  type JudgementReason,
  PLAIN_ENVIRONMENT,
  type Score,
  type ScoreReason,
  type ScoreSignals,
  scoreOf,
} from '../domain/score.ts'
import { raisedBits, type Site } from '../domain/site.ts'
import { BASE_BITS } from '../domain/site-fields.ts'
import { mintToken } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS, type Reply, type ReplyStyle, refusalReply } from '../http/replies.ts'
import { parseSolution } from '../http/schemas.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import type { Solution } from '../protocol/wire.ts'
import type { SolutionAdmission, SolutionRequest } from '../store/store.ts'
import { type Endpoint, notAdmittedReply, type RefusedAttempt, refused, type Service } from './service.ts'
import {
  type AllowedVisit,
  type Charge,
  chargeOf,
  nonceEpochOf,
  siteKeyRefusal,
  trafficAround,
  type Visit,
  visitOf,
  withSite,
} from './visit.ts'

/** `failures` and `accepted` count what the address did before this request; `meters` count this proof, too (store/store.ts). */
type Admitted = Extract<SolutionAdmission, { status: 'admitted' }>

/** The answer is 200, and the nonce stays unused. `chargeFor` says which of these count against the address. */
interface Failed {
  readonly verdict: 'failed'
  readonly reason: Exclude<JudgementReason, ScoreReason>
  readonly nonce: string
}

interface Solved {
  readonly verdict: 'solved'
  /** Has the tags of the secret that signed the nonce. */
  readonly visit: AllowedVisit
  readonly solution: Solution
  readonly puzzle: PuzzleName
  readonly spend: NonNullable<SolutionRequest['spend']>
  /** The epoch of the site's shard when the nonce was read. */
  readonly siteEpoch: number
  readonly signals: ScoreSignals
  readonly score: Score
  readonly nonce: string
}

type Attempt = RefusedAttempt | Failed | Solved

type Conclusion =
  | { readonly refusal: Refusal }
  | {
      readonly judgement: Judged
      /** True if the proof, which the store has counted with the admission, must leave the meters again. */
      readonly takesBack: boolean
      readonly token?: { readonly text: string; readonly expiresAtMs: number }
    }

const FAILED_BODY = '{"token":null,"passed":false,"expiresAt":null}'

export function verify(service: Service): Endpoint {
  const admit = (exchange: Exchange, site: Site | null, body: Buffer): void => {
    const found = visitOf(service, 'verify', exchange, site)
    const attempt = attemptOf(service, found, body, exchange.contentType)
    // Without an epoch of both shards (one was never reached, or the site's is away and may not fail open) no nonce can be read, so
    // nothing is charged.
    if (attempt.verdict === 'refused' && attempt.refusal.reason === 'store-unavailable')
      return exchange.refuse(attempt.refusal, attempt)
    const solved = attempt.verdict === 'solved' ? attempt : undefined
    const visit = solved?.visit ?? found
    // The store spends the nonce only if it was solved.
    const request = chargeOf(service.pricing, visit, 'verify', chargeFor(attempt), solved)
    /** Answers, and returns whether the proof must leave the meters again. */
    const settle = exchange.guard((admission: SolutionAdmission): boolean => {
      const { style } = exchange.rules
      if (admission.status !== 'admitted') {
        const { verdict, nonce } = attempt
        const isRefusedAnyway = verdict === 'refused'
        exchange.answer(notAdmittedReply(style, admission, isRefusedAnyway, visit.sitePolicies, { nonce }))
        return true
      }
      const conclusion = conclude(service, visit, attempt, admission, service.now())
      exchange.answer(replyTo(style, conclusion, attempt))
      return 'refusal' in conclusion || conclusion.takesBack
    })
    service.store.admitSolution(request, admission => {
      // A proof without a token must not make its neighbours pay. undefined comes after a fault, or if the client has left.
      const takesBack = settle(admission) ?? true
      if (takesBack && admission.status === 'admitted' && admission.nonce === 'spent')
        service.store.takeBack(request, admission.accepted)
    })
  }
  return exchange => {
    const refusal = siteKeyRefusal(exchange.siteKey)
    if (refusal !== undefined) return exchange.refuse(refusal)
    exchange.readBody(service.settings.bodyBytesMax, body => {
      if (body === undefined) exchange.refuse({ reason: 'body-too-large' })
      else withSite(service, exchange, body, admit)
    })
  }
}

function replyTo(style: ReplyStyle, conclusion: Conclusion, { nonce }: Attempt): Reply {
  if ('refusal' in conclusion) return refusalReply(style, conclusion.refusal, { nonce })
  const { judgement, token } = conclusion
  const body =
    token === undefined
      ? FAILED_BODY
      : `{"token":"${token.text}","passed":true,"expiresAt":${token.expiresAtMs}}`
  return { status: 200, ending: judgement, body, headers: NO_HEADERS }
}

function attemptOf(service: Service, visit: Visit, body: Buffer, contentType: string): Attempt {
  if (visit.refusal !== undefined) return refused(visit.refusal)
  const { site, address } = visit
  const parsed = parseSolution(body, contentType)
  if (!parsed.ok) return refused(parsed.refusal)
  const { nonce } = parsed.body
  if (site.test === 'fails') return { verdict: 'failed', reason: 'test-key', nonce }
  const { block, allow } = site.ipRules
  if (block.has(address)) return { verdict: 'failed', reason: 'ip-blocked', nonce }
  if (!allow.isEmpty && !allow.has(address)) return { verdict: 'failed', reason: 'ip-not-allowed', nonce }
  const nowMs = service.now()
  let attempt = attemptWithTags(service, visit, parsed.body, nowMs)
  // During a rotation another host may have signed with another secret, under which the address may be on another Cluster shard. The
  // last refusal is answered: 503, if this worker has not reached that shard yet.
  for (const tags of service.otherTags) {
    if (attempt.verdict !== 'refused' || attempt.refusal.reason !== 'nonce-forged') break
    const addressKey = tags.translated(visit.addressKey, address, service.settings.ipv6PrefixBits)
    attempt = attemptWithTags(service, { ...visit, tags, addressKey }, parsed.body, nowMs)
  }
  return attempt
}

function attemptWithTags(service: Service, visit: AllowedVisit, solution: Solution, nowMs: number): Attempt {
  const { site, address, addressKey } = visit
  const { siteKey } = site.record
  const { nonce } = solution
  const { store, settings, keyring } = service
  // The nonce is bound to both shards, and spent on the address's; the token will be redeemed on the site's.
  const addressEpoch = store.epochOf(addressKey)
  const siteEpoch = store.epochOf(siteKey)
  const jointEpoch = nonceEpochOf(service, 'verify', visit)
  if (addressEpoch === undefined || siteEpoch === undefined || jointEpoch === undefined)
    return refused({ reason: 'store-unavailable' }, nonce)
  const binding = { siteKey, storeEpoch: jointEpoch, lifetimes: settings, address }
  const reading = readNonce(keyring, nonce, binding, nowMs + CLOCK_SKEW_MS)
  switch (reading.status) {
    case 'genuine':
      return attemptWithNonce(service, visit, solution, reading, { addressEpoch, siteEpoch }, nowMs)
    case 'other-address':
      return refused({ reason: 'nonce-other-address' }, nonce)
    default:
      return refused({ reason: 'nonce-forged' }, nonce)
  }
}

function attemptWithNonce(
  { settings }: Service,
  visit: AllowedVisit,
  solution: Solution,
  { issuedAtMs, puzzle, difficulty }: GenuineNonce,
  { addressEpoch, siteEpoch }: { readonly addressEpoch: number; readonly siteEpoch: number },
  nowMs: number,
): Attempt {
  const { site } = visit
  const { nonce } = solution
  const lifetimeMs = nonceLifetimeMs(difficulty, settings.challengeLifetimeMs, puzzle)
  if (issuedAtMs > nowMs + CLOCK_SKEW_MS) return refused({ reason: 'nonce-from-future' }, nonce)
  if (nowMs >= issuedAtMs + lifetimeMs) return refused({ reason: 'nonce-expired' }, nonce)
  if (!checkProof(nonce, solution.counter, difficulty, puzzle))
    return { verdict: 'failed', reason: 'proof-wrong', nonce }
  const signals: ScoreSignals = {
    environment: site.record.signals === 'none' ? PLAIN_ENVIRONMENT : solution.environment,
    solveTimeMs: solution.solveTimeMs,
    elapsedMs: nowMs - issuedAtMs,
    difficulty,
    addressFailures: 0, // the store will tell: withFailures
  }
  const score = scoreOf(signals, site.scoreWeights)
  // The record lives at least a lifetime from now, because a host whose clock is behind still accepts the nonce.
  const expiresAtMs = Math.max(issuedAtMs, nowMs) + lifetimeMs
  const spend = { nonce, storeEpoch: addressEpoch, expiresAtMs }
  return { verdict: 'solved', visit, solution, puzzle, spend, siteEpoch, signals, score, nonce }
}

/** Failures by IP rules, or at a test site that always fails, do not count against the address. */
function chargeFor(attempt: Attempt): Charge {
  if (attempt.verdict === 'refused') return 'junk'
  const countsAgainst =
    attempt.verdict === 'solved'
      ? attempt.score.score < attempt.visit.site.record.threshold
      : attempt.reason === 'proof-wrong'
  return countsAgainst ? 'failure' : 'plain'
}

function conclude(
  service: Service,
  visit: Visit,
  attempt: Attempt,
  admitted: Admitted,
  nowMs: number,
): Conclusion {
  if (visit.refusal !== undefined) return { refusal: visit.refusal }
  switch (attempt.verdict) {
    case 'solved':
      return admitted.nonce === 'spent'
        ? concludeSolved(service, visit, attempt, admitted, nowMs)
        : { refusal: { reason: 'nonce-used' } }
    case 'failed': {
      const { nonce, reason } = attempt
      const failed = { kind: 'judged', site: visit.site, nonce, passed: false, score: null } as const
      return { judgement: { ...failed, reasons: [reason], signals: undefined }, takesBack: false }
    }
    default:
      return { refusal: preciseRefusal(service, visit, attempt, nowMs) }
  }
}

/** Tells a nonce of an earlier epoch or another Cluster shard from a forged one. Each try costs a hash, so limits come first. */
function preciseRefusal(
  { store, settings, keyring }: Service,
  { site, address, addressKey }: AllowedVisit,
  { refusal, nonce }: RefusedAttempt,
  nowMs: number,
): Refusal {
  if (refusal.reason !== 'nonce-forged' || nonce === undefined) return refusal
  const { siteKey } = site.record
  const readUnder = (storeEpoch: number) => {
    const binding = { siteKey, storeEpoch, lifetimes: settings, address }
    return readNonce(keyring, nonce, binding, nowMs + CLOCK_SKEW_MS)
  }
  if (store.nonceEpochs(siteKey).some(epoch => readUnder(epoch).status === 'other-address'))
    return { reason: 'nonce-other-address' }
  const readings = store.formerNonceEpochs(addressKey, siteKey).map(readUnder)
  const former = readings.find(({ status }) => status === 'genuine')
  if (former?.status !== 'genuine') return refusal
  const { issuedAtMs, difficulty, puzzle } = former
  const lifetimeMs = nonceLifetimeMs(difficulty, settings.challengeLifetimeMs, puzzle)
  // An old nonce tells nothing of the store: whoever keeps one would otherwise report its loss for weeks.
  return { reason: nowMs >= issuedAtMs + lifetimeMs ? 'nonce-expired' : 'nonce-forgotten' }
}

function concludeSolved(
  { store, settings, pricing, keyring }: Service,
  visit: AllowedVisit,
  solved: Solved,
  admitted: Admitted,
  nowMs: number,
): Conclusion {
  const { origin, site, address } = visit
  const { siteKey, threshold } = site.record
  const { solution, puzzle, siteEpoch } = solved
  const { difficulty } = solved.signals
  const bounds = boundsOf(site.record.difficulty, raisedBits(site.record, nowMs))
  const traffic = trafficAround(pricing, visit, admitted.meters)
  // If the site has changed its puzzle since the challenge, the site's bits do not apply, because bits of two puzzles do not compare:
  // the base is the challenge's own bits, at most the puzzle's default. What its network or site must pay still comes on top, so
  // hoarding challenges gains nothing.
  const base = Math.min(difficulty, BASE_BITS[puzzle])
  const within = puzzle === site.record.puzzle ? bounds : { ...bounds, min: base, base }
  const { isUnderpriced, isCapped } = checkPrice(difficulty, within, admitted.accepted, traffic, pricing)
  if (isUnderpriced) return { refusal: { reason: 'nonce-underpriced' } }
  const signals = withFailures(solved.signals, admitted)
  const { score, reasons } = signals === solved.signals ? solved.score : scoreOf(signals, site.scoreWeights)
  const { nonce, counter } = solution
  const passed = score >= threshold
  const judgement: Judged = { kind: 'judged', site, nonce, passed, score, reasons, signals }
  // The store has counted the proof if only the address's earlier failures, of which it tells now, lower the score too far.
  if (!passed) return { judgement, takesBack: true }
  // The store has lost its memory: a token of the old epoch would be refused, one of the new epoch could be a second token.
  if (siteEpoch !== store.epochOf(siteKey)) return { refusal: { reason: 'store-unavailable' } }
  const text = mintToken(keyring, {
    issuedAtMs: nowMs,
    lifetimes: settings,
    nonce,
    counter,
    siteTag: site.tokenTag,
    address,
    score,
    storeEpoch: siteEpoch,
    page: pageOf(solution, origin, site.origins),
  })
  // Capped by this site's maximum, the proof was cheaper than at other sites, so it must not raise its neighbours' price there.
  return {
    judgement,
    takesBack: isCapped,
    token: { text, expiresAtMs: nowMs + settings.tokenLifetimeMs },
  }
}

function withFailures(signals: ScoreSignals, { failures, accepted }: Admitted): ScoreSignals {
  if (failures === 0) return signals
  return { ...signals, addressFailures: countedFailures(failures, accepted) }
}
