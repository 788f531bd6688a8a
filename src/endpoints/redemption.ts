/**
 * Redeems a token, once, for POST /verify-token and POST /siteverify.
 *
 *   API key loaded? -> attempt: what needs no store -> admission: limits, single use -> conclusion
 *   503                                                429/503                          401, 400 or 200
 *
 *   attempt:    API key -> body -> token's shape, HMAC, expiry -> site -> expectedIp     (the token stays unused)
 *   conclusion: refused attempt? -> redeemed? -> score                                   (401 and 400)
 *
 * A refused attempt goes to the store too, because 429 takes precedence; there it is only counted, as junk. Callers without a valid key are
 * counted apart too: they could use up the limit of a backend at their address. Fails closed: an unknown outcome is 503.
 */

import { hash } from 'node:crypto'
import type { Address } from '../addresses/address.ts'
import { addressFrom } from '../addresses/forwarded-for.ts'
import { windowOfRefused, windowOfSite } from '../domain/address-tags.ts'
import { CLOCK_SKEW_MS } from '../domain/clock.ts'
import type { Redeemed, RefusalSubject } from '../domain/ending.ts'
import { type Lifetimes, nonceLifetimeMs, nonceTerms } from '../domain/nonce.ts'
import { OUTCOMES, type Refusal } from '../domain/outcome.ts'
import { type ApiKeyRecord, isApiKeyOf, isExpired, type Site } from '../domain/site.ts'
import { readToken, statedNonce, type TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS, type PolicyList, type Reply, type ReplyStyle, refusalReply } from '../http/replies.ts'
import type { Parsed } from '../http/schemas.ts'
import { NONCE_LENGTH } from '../protocol/proof.ts'
import type { Redemption } from '../protocol/wire.ts'
import type { RedemptionAdmission, RedemptionRequest, TokenRedemption } from '../store/store.ts'
import {
  notAdmittedReply,
  type RefusedAttempt,
  refused,
  type Service,
  type ServiceSettings,
} from './service.ts'

/** What differs between /verify-token (verify-token.ts) and /siteverify (siteverify.ts). */
export interface Dialect {
  /** The body's name for `expectedIp`. */
  readonly expectedField: string
  /** Compares the address that a backend expects with the visitor's. */
  readonly matchesVisitor: (expected: Address, visitor: Address, settings: ServiceSettings) => boolean
  /** The answer, in JSON. */
  readonly success: (claims: TokenClaims, site: Site) => string
}

/** Reads the body for the site of its API key, perhaps after the store has answered. */
type ReadBody = (site: Site) => Parsed<Redemption>

/** @param key an API key of the right form, and `keyId` the id inside it */
type Redeemer = (exchange: Exchange, key: string, keyId: string, read: ReadBody) => void

interface AcceptedCaller {
  readonly apiKey: ApiKeyRecord
  readonly site: Site
}

/** The owner of the API key, or why the key is refused. */
type Caller = AcceptedCaller | Refusal

const isRefusal = (result: object): result is Refusal => 'reason' in result

/** The token is genuine. It may still have been used before, or its score be too low for the site. */
interface Redeemable {
  readonly verdict: 'redeemable'
  readonly caller: AcceptedCaller
  readonly claims: TokenClaims
  /** undefined for a test key that passes: it redeems no token, and has no ending: the log lacks it, metrics count it as `ok`. */
  readonly redeem: TokenRedemption | undefined
  /** The backend sent the visitor's address. */
  readonly namesVisitor: boolean
  /** The name of a field of the body that powgate does not know, if any. */
  readonly ignored: string | undefined
  readonly nonce: string | undefined
}

type Attempt = RefusedAttempt | Redeemable

type Admitted = Extract<RedemptionAdmission, { status: 'admitted' }>

export function redeemer(service: Service, dialect: Dialect): Redeemer {
  const redeem = (exchange: Exchange, caller: Caller, keyId: string, read: ReadBody): void => {
    const { address } = exchange
    // Uses of test keys are not noted.
    if (!isRefusal(caller) && caller.site.test === undefined)
      service.keyUses.note(caller.apiKey.id, service.now())
    const attempt = attemptOf(service, dialect, caller, read, address)
    const request = requestOf(service, address, caller, attempt)
    service.store.redeemToken(
      request,
      exchange.guard(admission => {
        countBackend(service, address, request, attempt, admission)
        exchange.answer(replyTo(exchange.rules.style, dialect, caller, keyId, attempt, admission))
      }),
    )
  }
  return (exchange, key, keyId, read) => {
    const cached = cachedCaller(service, key, keyId)
    if (cached !== undefined) return redeem(exchange, cached, keyId, read)
    loadCaller(service, exchange, keyId, () => {
      const caller = cachedCaller(service, key, keyId)
      if (caller !== undefined) redeem(exchange, caller, keyId, read)
      else exchange.refuse({ reason: 'store-unavailable' }, { apiKeyId: keyId })
    })
  }
}

/** undefined if the API key or its site is not cached. The caches hold null for what the store does not have. */
function cachedCaller({ apiKeys, sites, now }: Service, key: string, keyId: string): Caller | undefined {
  const apiKey = apiKeys.cached(keyId)
  if (apiKey === undefined) return undefined
  if (apiKey === null) return { reason: 'api-key-unknown' }
  if (!isApiKeyOf(apiKey, key)) return { reason: 'api-key-wrong-secret' }
  if (apiKey.revokedAt !== null) return { reason: 'api-key-revoked' }
  if (isExpired(apiKey, now())) return { reason: 'api-key-expired' }
  const site = sites.cached(apiKey.siteKey)
  if (site === undefined) return undefined
  if (!site?.record.active) return { reason: 'api-key-site-inactive' }
  return { apiKey, site }
}

/** Caches the API key, if there is such a key, and its site, unless the store cannot be read. */
function loadCaller({ apiKeys, sites }: Service, exchange: Exchange, keyId: string, done: () => void): void {
  const keyLoaded = exchange.guard<ApiKeyRecord | null | undefined>(apiKey => {
    if (apiKey == null || sites.cached(apiKey.siteKey) !== undefined) done()
    else sites.load(apiKey.siteKey, exchange.guard(done))
  })
  apiKeys.load(keyId, keyLoaded)
}

function attemptOf(
  { keyring, settings, now }: Service,
  dialect: Dialect,
  caller: Caller,
  read: ReadBody,
  address: Address,
): Attempt {
  if (isRefusal(caller)) return refused(caller)
  const { site, apiKey } = caller
  const parsed = read(site)
  if (!parsed.ok) return refused(parsed.refusal)
  const { token, expectedIp, idempotencyKey } = parsed.body
  const expected = expectedIp === undefined ? undefined : addressFrom(expectedIp)
  if (expectedIp !== undefined && expected === undefined)
    return refused({ reason: 'expected-ip-malformed', field: dialect.expectedField })
  const nowMs = now()
  if (site.test !== undefined) return testAttemptOf(caller, settings, expected ?? address, nowMs)
  const reading = readToken(keyring, token)
  if (reading.status !== 'genuine') {
    const reason = reading.status === 'malformed' ? 'token-malformed' : 'token-forged'
    return refused({ reason }, statedNonce(token))
  }
  const { claims } = reading
  const { nonce, storeEpoch } = claims
  if (claims.issuedAtMs > nowMs + CLOCK_SKEW_MS) return refused({ reason: 'token-from-future' }, nonce)
  if (nowMs >= claims.issuedAtMs + claims.lifetimes.tokenLifetimeMs)
    return refused({ reason: 'token-expired' }, nonce)
  if (claims.siteTag !== site.tokenTag) return refused({ reason: 'token-other-site' }, nonce)
  if (expected !== undefined && !dialect.matchesVisitor(expected, claims.address, settings)) {
    const mismatch = { expected, visitor: claims.address }
    return refused({ reason: 'token-other-address', mismatch }, nonce)
  }
  const claim = retryClaim(apiKey.id, idempotencyKey, token)
  const redeem = { nonce, storeEpoch, expiresAtMs: recordExpiresAtMs(claims, nowMs), claim }
  const namesVisitor = expected !== undefined
  return { verdict: 'redeemable', caller, claims, redeem, namesVisitor, ignored: parsed.ignored, nonce }
}

function testAttemptOf(
  caller: AcceptedCaller,
  lifetimes: Lifetimes,
  address: Address,
  issuedAtMs: number,
): Attempt {
  const { test, tokenTag } = caller.site
  if (test !== 'passes') return refused({ reason: test === 'used' ? 'test-key-used' : 'test-key-fails' })
  const claims = {
    issuedAtMs,
    lifetimes,
    nonce: '0'.repeat(NONCE_LENGTH),
    counter: 0,
    siteTag: tokenTag,
    address,
    score: 1,
    storeEpoch: 0,
  }
  // Test keys must not cause the warning about backends that send no expectedIp.
  const about = { redeem: undefined, namesVisitor: true, ignored: undefined, nonce: undefined }
  return { verdict: 'redeemable', caller, claims, ...about }
}

/** A retry with the same claim succeeds again; empty for none. JSON keeps every triple distinct, because it escapes lone surrogates. */
function retryClaim(keyId: string, idempotencyKey: string | undefined, token: string): string {
  return idempotencyKey === undefined
    ? ''
    : hash('sha256', JSON.stringify([keyId, idempotencyKey, token]), 'base64url')
}

/**
 * The record outlives this token, and any other that the nonce could yield in an outage if /verify fails open. It lives for at
 * least a token's lifetime from now, because a host whose clock is behind still accepts the token. Settings may change, so
 * lifetimes are the token's own.
 */
function recordExpiresAtMs({ nonce, issuedAtMs, lifetimes }: TokenClaims, nowMs: number): number {
  const terms = nonceTerms(nonce)
  const nonceExpiresAtMs =
    terms.issuedAtMs + nonceLifetimeMs(terms.difficulty, lifetimes.challengeLifetimeMs, terms.puzzle)
  const lastIssueMs = Math.max(issuedAtMs, nonceExpiresAtMs) // of any token of this nonce
  return Math.max(lastIssueMs, nowMs) + lifetimes.tokenLifetimeMs
}

function requestOf(
  { settings, tags }: Service,
  address: Address,
  caller: Caller,
  attempt: Attempt,
): RedemptionRequest {
  const { limits, ipv6PrefixBits } = settings
  const key = tags.keyOf(address, ipv6PrefixBits)
  if (isRefusal(caller)) {
    const callerLimit = limits.redeemAddress
    return { callerKey: windowOfRefused(key), callerLimit, apiKey: undefined, redeem: undefined }
  }
  const { id, siteKey } = caller.apiKey
  const siteLimit = caller.site.record.limits?.redeem
  return {
    // A site with its own limit counts its callers' addresses apart.
    callerKey: siteLimit === undefined ? key : windowOfSite(key, siteKey),
    callerLimit: siteLimit ?? limits.redeemAddress,
    apiKey: { id, limit: siteLimit ?? limits.redeemApiKey, siteKey },
    redeem: attempt.verdict === 'redeemable' ? attempt.redeem : undefined,
    isJunk: attempt.verdict === 'refused',
  }
}

/** Counts a request with a valid API key, to report backends that are near their limits. */
function countBackend(
  { backends }: Service,
  address: Address,
  request: RedemptionRequest,
  attempt: Attempt,
  admission: RedemptionAdmission,
): void {
  const { callerKey, callerLimit, apiKey } = request
  if (apiKey === undefined) return // the key is not valid
  if (admission.status === 'unavailable') return // no limit refused it, and whether it is junk is not known
  const { siteKey, id: apiKeyId, limit } = apiKey
  // The store finds more junk: tokens that were used, or whose use it may have forgotten. A limit that refused says whether it is junk's.
  const isJunkInStore =
    admission.status === 'admitted'
      ? admission.token === 'used' || admission.token === 'forgotten'
      : admission.isJunk === true
  const isJunk = attempt.verdict === 'refused' || isJunkInStore
  const token = attempt.verdict === 'redeemable' ? attempt : undefined
  const counted = {
    callerKey,
    siteKey,
    apiKeyId,
    limits: [callerLimit, limit] as const,
    isJunk,
    ignored: token?.ignored,
    badBody: badBodyOf(attempt),
  }
  // A backend is warned if it never sends the visitor's address. Without a token there was none to send.
  backends.note(address, counted, token?.namesVisitor ?? true)
}

/** A missing or wrong token is left out, because any visitor can post one. */
function badBodyOf(attempt: Attempt): string | undefined {
  if (attempt.verdict !== 'refused') return undefined
  const { reason, field } = attempt.refusal
  const isOfBody = ['invalid-body', 'content-type'].includes(OUTCOMES[reason].code)
  if (!isOfBody || reason === 'token-missing' || field === 'token') return undefined
  return field === undefined ? reason : `${reason} ${field}`
}

function replyTo(
  style: ReplyStyle,
  dialect: Dialect,
  caller: Caller,
  keyId: string,
  attempt: Attempt,
  admission: RedemptionAdmission,
): Reply {
  const isRefusedAnyway = attempt.verdict === 'refused'
  const subject = () => subjectOf(caller, keyId, attempt)
  if (admission.status !== 'admitted')
    return notAdmittedReply(style, admission, isRefusedAnyway, sitePolicies(caller), subject())
  const conclusion = conclude(attempt, admission)
  if (isRefusal(conclusion)) return refusalReply(style, conclusion, subject())
  const { claims, redeem } = conclusion
  const { apiKey, site } = conclusion.caller
  const ending: Redeemed | undefined = redeem && { kind: 'redeemed', apiKey, claims }
  return { status: 200, ending, body: dialect.success(claims, site), headers: NO_HEADERS }
}

function sitePolicies(caller: Caller): PolicyList | undefined {
  const limit = isRefusal(caller) ? undefined : caller.site.record.limits?.redeem
  return limit === undefined ? undefined : { address: limit, 'api-key': limit }
}

function subjectOf(caller: Caller, apiKeyId: string, { nonce }: Attempt): RefusalSubject {
  return { siteKey: isRefusal(caller) ? undefined : caller.apiKey.siteKey, apiKeyId, nonce }
}

function conclude(attempt: Attempt, { token }: Admitted): Redeemable | Refusal {
  if (attempt.verdict === 'refused') return attempt.refusal
  if (attempt.caller.site.test === 'passes') return attempt
  switch (token) {
    case 'redeemed': {
      const isEnough = attempt.claims.score >= attempt.caller.site.record.minScore
      return isEnough ? attempt : { reason: 'score-too-low' }
    }
    case 'forgotten':
      return { reason: 'token-forgotten' }
    default:
      return { reason: 'token-used' }
  }
}
