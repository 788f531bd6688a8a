/**
 * Redeems a token, once, for POST /verify-token and POST /siteverify.
 *
 *   withCaller -> [ evaluate: everything that needs no store ] -> limits, single use -> [ conclude ]
 *   503                                                           429/503               401, 400 or 200
 *
 *   evaluate: API key -> body -> token's shape, HMAC, expiry -> site -> expectedIp     (401 and 400; the token stays unused)
 *   conclude: redeemed? -> score                                                       (400)
 *
 * Fails closed: an unknown outcome is 503. Callers without a valid key are counted apart, or they could use up the limit of
 * a backend at their address.
 */

import { hash } from 'node:crypto'
import type { Address } from '../addresses/address.ts'
import { addressFrom } from '../addresses/forwarded-for.ts'
import { windowOfRefused, windowOfSite } from '../domain/address-tags.ts'
import type { Named, Redeemed } from '../domain/ending.ts'
import { challengeLifetimeMs, nonceTerms } from '../domain/nonce.ts'
import type { Reason, Refusal } from '../domain/outcome.ts'
import { type ApiKeyRecord, isApiKeyOf, isExpired, type Site } from '../domain/site.ts'
import { readToken, statedNonce, type TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS, type PolicyList, type Reply } from '../http/replies.ts'
import type { Parsed } from '../http/schemas.ts'
import { NONCE_LENGTH } from '../protocol/proof.ts'
import type { Redemption } from '../protocol/wire.ts'
import type { RedemptionAdmission, RedemptionRequest, TokenRedemption } from '../store/store.ts'
import {
  CLOCK_SKEW_MS,
  notAdmittedReply,
  type ReplyStyle,
  refusedReply,
  type Service,
  type ServiceSettings,
} from './service.ts'

/** Reads an endpoint's bodies and writes its answers; `Asked` is the body, as bytes or fields. */
export interface Dialect<Asked> {
  /** Copies a body that must be valid after the callback. */
  readonly keep: (asked: Asked) => Asked
  readonly read: (asked: Asked, contentType: string, site: Site) => Parsed<Redemption>
  /** Compares the address that a backend expects with the visitor's. */
  readonly matchesVisitor: (expected: Address, visitor: Address, settings: ServiceSettings) => boolean
  /** The answer, in JSON. */
  readonly success: (claims: TokenClaims, site: Site) => string
}

/** Takes an API key of the right form, the id inside it, and the body. */
export type Redeem<Asked> = (exchange: Exchange, key: string, keyId: string, asked: Asked) => void

type Caller =
  | { readonly status: 'accepted'; readonly apiKey: ApiKeyRecord; readonly site: Site }
  | { readonly status: 'refused'; readonly reason: Reason }

type AcceptedCaller = Extract<Caller, { status: 'accepted' }>

type Attempt =
  | { readonly verdict: 'refused'; readonly refusal: Refusal; readonly nonce: string | undefined }
  | {
      readonly verdict: 'redeemable'
      readonly caller: AcceptedCaller
      readonly claims: TokenClaims
      readonly claim: string
      readonly namesVisitor: boolean
      readonly ignored: string | undefined
      readonly nonce: string
    }
  /** A test key was used: the token is neither read nor redeemed. */
  | {
      readonly verdict: 'certain'
      readonly caller: AcceptedCaller
      readonly claims: TokenClaims
      readonly nonce: undefined
    }

type Redeemable = Extract<Attempt, { verdict: 'redeemable' }>

/** An attempt that succeeds if the token was unused. */
type Good = Exclude<Attempt, { verdict: 'refused' }>

type Admitted = Extract<RedemptionAdmission, { status: 'admitted' }>

export function redemption<Asked>(
  service: Service,
  style: ReplyStyle,
  dialect: Dialect<Asked>,
): Redeem<Asked> {
  const charge = (exchange: Exchange, caller: Caller, keyId: string, asked: Asked): void => {
    const { address } = exchange
    if (address === undefined) return exchange.drop()
    noteUse(service, caller)
    const attempt = evaluate(service, dialect, caller, asked, exchange.contentType, address)
    const request = requestOf(service, address, caller, attempt)
    service.store.redeemToken(
      request,
      exchange.guard(admission => {
        if (caller.status === 'accepted') noteBackend(service, address, request, attempt, admission)
        exchange.answer(replyTo(style, dialect, caller, keyId, attempt, admission))
      }),
    )
  }
  return (exchange, key, keyId, asked) => {
    const caller = cachedCaller(service, key, keyId)
    if (caller !== undefined) return charge(exchange, caller, keyId, asked)
    loadCaller(service, style, exchange, key, keyId, dialect.keep(asked), charge)
  }
}

/** undefined if the API key or its site is not cached. */
function cachedCaller({ apiKeys, sites, now }: Service, key: string, keyId: string): Caller | undefined {
  const apiKey = apiKeys.cached(keyId)
  if (apiKey === undefined) return undefined
  if (apiKey === null) return { status: 'refused', reason: 'api-key-unknown' }
  if (!isApiKeyOf(apiKey, key)) return { status: 'refused', reason: 'api-key-wrong-secret' }
  if (apiKey.revokedAt !== null) return { status: 'refused', reason: 'api-key-revoked' }
  if (isExpired(apiKey, now())) return { status: 'refused', reason: 'api-key-expired' }
  const site = sites.cached(apiKey.siteKey)
  if (site === undefined) return undefined
  if (!site?.record.active) return { status: 'refused', reason: 'api-key-site-inactive' }
  return { status: 'accepted', apiKey, site }
}

/** Calls the next step with the caller once it is loaded, and answers if the store could not be read. */
function loadCaller<Asked>(
  service: Service,
  style: ReplyStyle,
  exchange: Exchange,
  key: string,
  keyId: string,
  asked: Asked,
  next: (exchange: Exchange, caller: Caller, keyId: string, asked: Asked) => void,
): void {
  const { apiKeys, sites } = service
  const done = (isRead: boolean) => {
    const caller = isRead ? cachedCaller(service, key, keyId) : undefined
    if (caller !== undefined) next(exchange, caller, keyId, asked)
    else exchange.answer(refusedReply(style, { reason: 'store-unavailable' }, { apiKeyId: keyId }))
  }
  const keyLoaded = exchange.guard<ApiKeyRecord | null | undefined>(apiKey => {
    const isSiteMissing = apiKey != null && sites.cached(apiKey.siteKey) === undefined
    if (!isSiteMissing) return done(apiKey !== undefined)
    sites.load(
      apiKey.siteKey,
      exchange.guard(site => done(site !== undefined)),
    )
  })
  apiKeys.load(keyId, keyLoaded)
}

function noteUse({ keyUses, now }: Service, caller: Caller): void {
  if (caller.status === 'accepted' && caller.site.test === undefined) keyUses.note(caller.apiKey.id, now())
}

function evaluate<Asked>(
  { keyring, settings, now }: Service,
  dialect: Dialect<Asked>,
  caller: Caller,
  asked: Asked,
  contentType: string,
  address: Address,
): Attempt {
  if (caller.status === 'refused') return refused({ reason: caller.reason })
  const { site, apiKey } = caller
  const parsed = dialect.read(asked, contentType, site)
  if (!parsed.ok) return refused(parsed.refusal)
  const nowMs = now()
  if (site.test !== undefined) return evaluateTest(caller, settings, parsed.body, address, nowMs)
  const { token, expectedIp, idempotencyKey } = parsed.body
  const reading = readToken(keyring, token)
  if (reading.status !== 'genuine') {
    const reason = reading.status === 'malformed' ? 'token-malformed' : 'token-forged'
    return refused({ reason }, statedNonce(token))
  }
  const { claims } = reading
  const { nonce } = claims
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
  const namesVisitor = expected !== undefined
  return { verdict: 'redeemable', caller, claims, claim, namesVisitor, ignored: parsed.ignored, nonce }
}

function evaluateTest(
  caller: AcceptedCaller,
  lifetimes: ServiceSettings,
  { expectedIp }: Redemption,
  address: Address,
  issuedAtMs: number,
): Attempt {
  switch (caller.site.test) {
    case 'passes': {
      const claims = {
        issuedAtMs,
        lifetimes,
        nonce: '0'.repeat(NONCE_LENGTH),
        counter: 0,
        siteTag: caller.site.tag,
        address: expectedIp === undefined ? address : addressFrom(expectedIp)!,
        score: 1,
        storeEpoch: 0,
      }
      return { verdict: 'certain', caller, claims, nonce: undefined }
    }
    case 'used':
      return refused({ reason: 'test-key-used' })
    default:
      return refused({ reason: 'test-key-fails' })
  }
}

function refused(refusal: Refusal, nonce?: string): Attempt {
  return { verdict: 'refused', refusal, nonce: nonce || undefined }
}

/** Retries of a redemption have the same claim. JSON keeps every triple distinct, even with lone surrogates, which it escapes. */
function claimOf(keyId: string, idempotencyKey: string | undefined, token: string): string {
  return idempotencyKey === undefined
    ? ''
    : hash('sha256', JSON.stringify([keyId, idempotencyKey, token]), 'base64url')
}

/** A site with its own limit counts its callers' addresses apart. */
function requestOf(
  { settings, tags, now }: Service,
  address: Address,
  caller: Caller,
  attempt: Attempt,
): RedemptionRequest {
  const { limits, ipv6PrefixBits } = settings
  const key = tags.keyOf(address, ipv6PrefixBits)
  if (caller.status === 'refused') {
    const callerKey = windowOfRefused(key)
    const { redeemAddress: callerLimit } = limits
    return { callerKey, callerLimit, apiKey: undefined, redeem: undefined }
  }
  const { id, siteKey } = caller.apiKey
  const ownLimit = caller.site.record.limits?.redeem
  const callerKey = ownLimit === undefined ? key : windowOfSite(key, siteKey)
  const [ofAddress, ofKey] = [ownLimit ?? limits.redeemAddress, ownLimit ?? limits.redeemApiKey]
  return {
    callerKey,
    callerLimit: ofAddress,
    apiKey: { id, limit: ofKey, siteKey },
    redeem: attempt.verdict === 'redeemable' ? tokenRedemption(attempt, now()) : undefined,
    isJunk: attempt.verdict === 'refused',
  }
}

function tokenRedemption({ claims, claim }: Redeemable, nowMs: number): TokenRedemption {
  const { nonce, storeEpoch } = claims
  return { nonce, storeEpoch, expiresAtMs: recordExpiresAtMs(claims, nowMs), claim }
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

/** Counts the request, to report backends near their limits. */
function noteBackend(
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
  const isRead = attempt.verdict === 'redeemable'
  const ignored = isRead ? attempt.ignored : undefined
  const counted = { callerKey, siteKey, apiKeyId, limits: [callerLimit, limit] as const, isJunk, ignored }
  const namesVisitor = !isRead || attempt.namesVisitor
  backends.note(address, counted, namesVisitor)
}

function replyTo<Asked>(
  style: ReplyStyle,
  dialect: Dialect<Asked>,
  caller: Caller,
  keyId: string,
  attempt: Attempt,
  admission: RedemptionAdmission,
): Reply {
  if (admission.status !== 'admitted')
    return notAdmittedReply(style, admission, ownLimits(caller), namedBy(caller, keyId, attempt))
  const conclusion = conclude(attempt, admission)
  if ('reason' in conclusion) return refusedReply(style, conclusion, namedBy(caller, keyId, attempt))
  const body = dialect.success(conclusion.claims, conclusion.caller.site)
  return { status: 200, ending: endingOf(conclusion), body, headers: NO_HEADERS }
}

/** undefined for a test key, whose redemptions are not recorded. */
function endingOf({ verdict, caller, claims }: Good): Redeemed | undefined {
  return verdict === 'redeemable' ? { kind: 'redeemed', apiKey: caller.apiKey, claims } : undefined
}

function ownLimits(caller: Caller): PolicyList | undefined {
  const limit = caller.status === 'accepted' ? caller.site.record.limits?.redeem : undefined
  return limit === undefined ? undefined : { address: limit, 'api-key': limit }
}

function namedBy(caller: Caller, apiKeyId: string, { nonce }: Attempt): Named {
  return { siteKey: caller.status === 'accepted' ? caller.apiKey.siteKey : undefined, apiKeyId, nonce }
}

function conclude(attempt: Attempt, { token }: Admitted): Good | Refusal {
  switch (attempt.verdict) {
    case 'redeemable':
      return concludeRedeemable(attempt, token)
    case 'certain':
      return attempt
    default:
      return attempt.refusal
  }
}

function concludeRedeemable(attempt: Redeemable, token: Admitted['token']): Good | Refusal {
  switch (token) {
    case 'redeemed':
      return attempt.claims.score < attempt.caller.site.record.minScore
        ? { reason: 'score-too-low' }
        : attempt
    case 'forgotten':
      return { reason: 'token-forgotten' }
    default:
      return { reason: 'token-used' }
  }
}
