/**
 * Redeems a token, once, for POST /verify-token and POST /siteverify.
 *
 *   API key loaded? -> attempt: what needs no store -> admission: limits, single use -> conclusion
 *   503                                                429/503                          401, 400 or 200
 *
 *   attempt:    API key -> body -> token's shape, HMAC, expiry -> site -> expectedIp     (401 and 400; the token stays unused)
 *   conclusion: redeemed? -> score                                                       (400)
 *
 * Fails closed: an unknown outcome is 503. Callers without a valid key are counted apart: they could otherwise use up the
 * limit of a backend at their address.
 */

import { hash } from 'node:crypto'
import type { Address } from '../addresses/address.ts'
import { addressFrom } from '../addresses/forwarded-for.ts'
import { windowOfRefused, windowOfSite } from '../domain/address-tags.ts'
import { CLOCK_SKEW_MS } from '../domain/clock.ts'
import type { Redeemed, RefusalSubject } from '../domain/ending.ts'
import { challengeLifetimeMs, nonceTerms } from '../domain/nonce.ts'
import type { Refusal } from '../domain/outcome.ts'
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

/** Reads an endpoint's bodies, and writes its answers. */
export interface Dialect<Body> {
  /** Copies a body that must be valid after the callback. */
  readonly copyBody: (body: Body) => Body
  readonly read: (body: Body, contentType: string, site: Site) => Parsed<Redemption>
  /** Compares the address that a backend expects with the visitor's. */
  readonly matchesVisitor: (expected: Address, visitor: Address, settings: ServiceSettings) => boolean
  /** The answer, in JSON. */
  readonly success: (claims: TokenClaims, site: Site) => string
}

/** @param key an API key of the right form, and `keyId` the id inside it */
type Redeem<Body> = (exchange: Exchange, key: string, keyId: string, body: Body) => void

interface AcceptedCaller {
  readonly apiKey: ApiKeyRecord
  readonly site: Site
}

/** The owner of the API key, or why the key is refused. */
type Caller = AcceptedCaller | Refusal

/** Succeeds if the token was unused. */
interface Redeemable {
  readonly verdict: 'redeemable'
  readonly caller: AcceptedCaller
  readonly claims: TokenClaims
  /** undefined with a test key, which reads and redeems no token. */
  readonly redeem: TokenRedemption | undefined
  /** The backend sent the visitor's address. */
  readonly namesVisitor: boolean
  /** The name of a field of the body that powgate does not know, if any. */
  readonly ignored: string | undefined
  readonly nonce: string | undefined
}

type Attempt = RefusedAttempt | Redeemable

type Admitted = Extract<RedemptionAdmission, { status: 'admitted' }>

export function redemption<Body>(service: Service, style: ReplyStyle, dialect: Dialect<Body>): Redeem<Body> {
  const charge = (exchange: Exchange, caller: Caller, keyId: string, body: Body): void => {
    const { address } = exchange
    if (address === undefined) return exchange.drop()
    recordKeyUse(service, caller)
    const attempt = attemptOf(service, dialect, caller, body, exchange.contentType, address)
    const request = requestOf(service, address, caller, attempt)
    service.store.redeemToken(
      request,
      exchange.guard(admission => {
        if ('apiKey' in caller) countBackend(service, address, request, attempt, admission)
        exchange.answer(replyTo(style, dialect, caller, keyId, attempt, admission))
      }),
    )
  }
  // The closure is made here and not in the function below, so that requests with a cached key allocate none.
  const load = (exchange: Exchange, key: string, keyId: string, body: Body): void =>
    loadCaller(service, exchange, keyId, () => {
      const caller = cachedCaller(service, key, keyId)
      if (caller !== undefined) charge(exchange, caller, keyId, body)
      else exchange.answer(refusalReply(style, { reason: 'store-unavailable' }, { apiKeyId: keyId }))
    })
  return (exchange, key, keyId, body) => {
    const caller = cachedCaller(service, key, keyId)
    if (caller !== undefined) charge(exchange, caller, keyId, body)
    else load(exchange, key, keyId, dialect.copyBody(body))
  }
}

/** undefined if the API key or its site is not cached. */
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

function recordKeyUse({ keyUses, now }: Service, caller: Caller): void {
  if ('apiKey' in caller && caller.site.test === undefined) keyUses.note(caller.apiKey.id, now())
}

function attemptOf<Body>(
  { keyring, settings, now }: Service,
  dialect: Dialect<Body>,
  caller: Caller,
  body: Body,
  contentType: string,
  address: Address,
): Attempt {
  if ('reason' in caller) return refused(caller)
  const { site, apiKey } = caller
  const parsed = dialect.read(body, contentType, site)
  if (!parsed.ok) return refused(parsed.refusal)
  const nowMs = now()
  if (site.test !== undefined) return testAttemptOf(caller, settings, parsed.body, address, nowMs)
  const { token, expectedIp, idempotencyKey } = parsed.body
  const reading = readToken(keyring, token)
  if (reading.status !== 'genuine') {
    const reason = reading.status === 'malformed' ? 'token-malformed' : 'token-forged'
    return refused({ reason }, statedNonce(token) || undefined)
  }
  const { claims } = reading
  const { nonce, storeEpoch } = claims
  if (claims.issuedAtMs > nowMs + CLOCK_SKEW_MS) return refused({ reason: 'token-from-future' }, nonce)
  if (nowMs >= claims.issuedAtMs + claims.lifetimes.tokenLifetimeMs)
    return refused({ reason: 'token-expired' }, nonce)
  if (claims.siteTag !== site.tag) return refused({ reason: 'token-other-site' }, nonce)
  const expected = expectedIp === undefined ? undefined : addressFrom(expectedIp)!
  if (expected !== undefined && !dialect.matchesVisitor(expected, claims.address, settings)) {
    const mismatch = { expected, visitor: claims.address }
    return refused({ reason: 'token-other-address', mismatch }, nonce)
  }
  const claim = claimOf(apiKey.id, idempotencyKey, token)
  const redeem = { nonce, storeEpoch, expiresAtMs: recordExpiresAtMs(claims, nowMs), claim }
  const namesVisitor = expected !== undefined
  return { verdict: 'redeemable', caller, claims, redeem, namesVisitor, ignored: parsed.ignored, nonce }
}

function testAttemptOf(
  caller: AcceptedCaller,
  lifetimes: ServiceSettings,
  { expectedIp }: Redemption,
  address: Address,
  issuedAtMs: number,
): Attempt {
  const { test, tag } = caller.site
  if (test !== 'passes') return refused({ reason: test === 'used' ? 'test-key-used' : 'test-key-fails' })
  const claims = {
    issuedAtMs,
    lifetimes,
    nonce: '0'.repeat(NONCE_LENGTH),
    counter: 0,
    siteTag: tag,
    address: expectedIp === undefined ? address : addressFrom(expectedIp)!,
    score: 1,
    storeEpoch: 0,
  }
  const unread = { redeem: undefined, namesVisitor: true, ignored: undefined, nonce: undefined }
  return { verdict: 'redeemable', caller, claims, ...unread }
}

/** Retries of a redemption have the same claim. JSON keeps every triple distinct, even with lone surrogates, which it escapes. */
function claimOf(keyId: string, idempotencyKey: string | undefined, token: string): string {
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
    terms.issuedAtMs + challengeLifetimeMs(terms.difficulty, lifetimes.challengeLifetimeMs, terms.puzzle)
  return Math.max(issuedAtMs, nonceExpiresAtMs, nowMs) + lifetimes.tokenLifetimeMs
}

/** A site with its own limit counts its callers' addresses apart. */
function requestOf(
  { settings, tags }: Service,
  address: Address,
  caller: Caller,
  attempt: Attempt,
): RedemptionRequest {
  const { limits, ipv6PrefixBits } = settings
  const key = tags.keyOf(address, ipv6PrefixBits)
  if ('reason' in caller) {
    const callerLimit = limits.redeemAddress
    return { callerKey: windowOfRefused(key), callerLimit, apiKey: undefined, redeem: undefined }
  }
  const { id, siteKey } = caller.apiKey
  const siteLimit = caller.site.record.limits?.redeem
  const isJunk = attempt.verdict === 'refused'
  return {
    callerKey: siteLimit === undefined ? key : windowOfSite(key, siteKey),
    callerLimit: siteLimit ?? limits.redeemAddress,
    apiKey: { id, limit: siteLimit ?? limits.redeemApiKey, siteKey },
    redeem: isJunk ? undefined : attempt.redeem,
    isJunk,
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
  const isSpent =
    admission.status === 'admitted' && (admission.token === 'used' || admission.token === 'forgotten')
  const { siteKey, id: apiKeyId, limit } = apiKey!
  const isJunk = request.isJunk === true || isSpent
  const isRefused = attempt.verdict === 'refused'
  const ignored = isRefused ? undefined : attempt.ignored
  const counted = { callerKey, siteKey, apiKeyId, limits: [callerLimit, limit] as const, isJunk, ignored }
  backends.note(address, counted, isRefused || attempt.namesVisitor)
}

function replyTo<Body>(
  style: ReplyStyle,
  dialect: Dialect<Body>,
  caller: Caller,
  keyId: string,
  attempt: Attempt,
  admission: RedemptionAdmission,
): Reply {
  if (admission.status !== 'admitted')
    return notAdmittedReply(style, admission, siteLimits(caller), subjectOf(caller, keyId, attempt))
  const conclusion = conclude(attempt, admission)
  if ('reason' in conclusion) return refusalReply(style, conclusion, subjectOf(caller, keyId, attempt))
  const { claims, redeem } = conclusion
  const { apiKey, site } = conclusion.caller
  const redeemed: Redeemed = { kind: 'redeemed', apiKey, claims }
  // Redemptions with a test key are not recorded.
  const ending = redeem === undefined ? undefined : redeemed
  return { status: 200, ending, body: dialect.success(claims, site), headers: NO_HEADERS }
}

function siteLimits(caller: Caller): PolicyList | undefined {
  const limit = 'site' in caller ? caller.site.record.limits?.redeem : undefined
  return limit === undefined ? undefined : { address: limit, 'api-key': limit }
}

function subjectOf(caller: Caller, apiKeyId: string, { nonce }: Attempt): RefusalSubject {
  return { siteKey: 'apiKey' in caller ? caller.apiKey.siteKey : undefined, apiKeyId, nonce }
}

function conclude(attempt: Attempt, { token }: Admitted): Redeemable | Refusal {
  if (attempt.verdict === 'refused') return attempt.refusal
  if (attempt.redeem === undefined) return attempt
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
