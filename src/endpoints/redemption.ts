/**
 * Redeems a token, once, for POST /verify-token and POST /siteverify.
 *
 *   API key -> [ evaluate: everything that needs no store ] -> limits, single use -> score
 *   401/503                                                    429/503  400          400/200
 *
 *   evaluate: body -> token's shape, HMAC, expiry -> site -> expectedIp        (all 400; the token stays unused)
 *
 * Fails closed: an unknown outcome is 503. Callers without a valid key are counted apart, or they could use up the limit of
 * a backend at their address.
 */

import { hash } from 'node:crypto'
import { type Address, isSameClient } from '../domain/address.ts'
import { windowOfRefused, windowOfSite } from '../domain/address-tags.ts'
import { addressFrom } from '../domain/client-address.ts'
import type { Redeemed } from '../domain/ending.ts'
import { challengeLifetimeMs, nonceTerms } from '../domain/nonce.ts'
import type { Reason, Refusal } from '../domain/outcome.ts'
import { type ApiKeyRecord, isApiKeyOf, isExpired, type Site } from '../domain/site.ts'
import { readToken, statedNonce, type TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS } from '../http/replies.ts'
import type { Parsed } from '../http/schemas.ts'
import { NONCE_LENGTH } from '../protocol/proof.ts'
import type { Redemption } from '../protocol/wire.ts'
import type { RedemptionAdmission, RedemptionRequest, TokenRedemption } from '../store/store.ts'
import { CLOCK_SKEW_MS, Endpoint } from './service.ts'

type Caller =
  | { readonly status: 'accepted'; readonly apiKey: ApiKeyRecord; readonly site: Site }
  | { readonly status: 'refused'; readonly reason: Reason }

type AcceptedCaller = Extract<Caller, { status: 'accepted' }>

type Attempt =
  | { readonly verdict: 'refused'; readonly refusal: Refusal }
  | {
      readonly verdict: 'redeemable'
      readonly caller: AcceptedCaller
      readonly claims: TokenClaims
      readonly claim: string
      readonly namesVisitor: boolean
      readonly ignored: string | undefined
    }
  /** A test key: the token is neither read nor redeemed. */
  | { readonly verdict: 'certain'; readonly caller: AcceptedCaller; readonly claims: TokenClaims }

type Redeemable = Extract<Attempt, { verdict: 'redeemable' }>

type Admitted = Extract<RedemptionAdmission, { status: 'admitted' }>

/** `Asked` is a body, as bytes or fields. */
export abstract class RedemptionEndpoint<Asked> extends Endpoint {
  /** A copy that outlives the callback. */
  protected abstract keep(asked: Asked): Asked
  protected abstract read(asked: Asked, exchange: Exchange, site: Site): Parsed<Redemption>
  protected isOfVisitor(expected: Address, visitor: Address): boolean {
    return isSameClient(expected, visitor)
  }

  /** The answer, in JSON. */
  protected abstract success(claims: TokenClaims, site: Site): string

  /** @param keyId the id inside the key */
  protected redeem(exchange: Exchange, key: string, keyId: string, asked: Asked): void {
    exchange.apiKeyId = keyId
    const caller = this.#cachedCaller(key, keyId)
    if (caller !== undefined) return this.#admit(exchange, caller, asked)
    const kept = this.keep(asked)
    this.#loadCaller(exchange, key, keyId, found => this.#admit(exchange, found, kept))
  }

  /** undefined if the API key or its site is not cached. */
  #cachedCaller(key: string, keyId: string): Caller | undefined {
    const apiKey = this.service.apiKeys.cached(keyId)
    if (apiKey === undefined) return undefined
    if (apiKey === null) return { status: 'refused', reason: 'api-key-unknown' }
    if (!isApiKeyOf(apiKey, key)) return { status: 'refused', reason: 'api-key-wrong-secret' }
    if (apiKey.revokedAt !== null) return { status: 'refused', reason: 'api-key-revoked' }
    if (isExpired(apiKey, this.service.now())) return { status: 'refused', reason: 'api-key-expired' }
    const site = this.service.sites.cached(apiKey.siteKey)
    if (site === undefined) return undefined
    if (!site?.record.active) return { status: 'refused', reason: 'api-key-site-inactive' }
    return { status: 'accepted', apiKey, site }
  }

  #loadCaller(exchange: Exchange, key: string, keyId: string, done: (caller: Caller) => void): void {
    const unavailable = () => this.refuse(exchange, 'store-unavailable')
    const judge = () => {
      const caller = this.#cachedCaller(key, keyId)
      if (caller === undefined) unavailable()
      else done(caller)
    }
    this.service.apiKeys.load(
      keyId,
      exchange.guard(apiKey => {
        if (apiKey === undefined) unavailable()
        else if (apiKey === null || this.service.sites.cached(apiKey.siteKey) !== undefined) judge()
        else
          this.service.sites.load(
            apiKey.siteKey,
            exchange.guard(site => (site === undefined ? unavailable() : judge())),
          )
      }),
    )
  }

  #admit(exchange: Exchange, caller: Caller, asked: Asked): void {
    const { address } = exchange
    if (address === undefined) return exchange.drop()
    const isAccepted = caller.status === 'accepted'
    const attempt = isAccepted ? this.#evaluate(exchange, caller, asked) : refused({ reason: caller.reason })
    const ownLimit = isAccepted ? caller.site.record.limits?.redeem : undefined
    const ownLimits = ownLimit === undefined ? undefined : { address: ownLimit, 'api-key': ownLimit }
    const request = this.#request(address, caller, attempt)
    this.service.store.redeemToken(
      request,
      exchange.guard(admission => {
        if (isAccepted) this.#noteBackend(address, request, attempt, admission)
        if (this.admits(exchange, admission, ownLimits)) this.#conclude(exchange, attempt, admission)
      }),
    )
  }

  /** For what is told of a backend near its limits. */
  #noteBackend(
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
    this.service.backends.note(address, counted, namesVisitor)
  }

  /** A site with its own limit counts its callers' addresses apart. */
  #request(address: Address, caller: Caller, attempt: Attempt): RedemptionRequest {
    const { limits, ipv6PrefixBits } = this.service.settings
    const key = this.service.tags.keyOf(address, ipv6PrefixBits)
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
      redeem: attempt.verdict === 'redeemable' ? this.#tokenRedemption(attempt) : undefined,
      isJunk: attempt.verdict === 'refused',
    }
  }

  #tokenRedemption({ claims, claim }: Redeemable): TokenRedemption {
    const { nonce, storeEpoch } = claims
    return { nonce, storeEpoch, expiresAtMs: this.#recordExpiresAtMs(claims), claim }
  }

  /**
   * Outlives this token and any other that the nonce could yield in an outage, if /verify fails open. At least a token's
   * lifetime from now: a host whose clock is behind still accepts it. Lifetimes are the token's own; settings may change.
   */
  #recordExpiresAtMs({ nonce, issuedAtMs, lifetimes }: TokenClaims): number {
    const terms = nonceTerms(nonce)
    const nonceExpiresAtMs =
      terms.issuedAtMs + challengeLifetimeMs(terms.difficulty, lifetimes.challengeLifetimeMs, terms.puzzle)
    return Math.max(issuedAtMs, nonceExpiresAtMs, this.service.now()) + lifetimes.tokenLifetimeMs
  }

  #evaluate(exchange: Exchange, caller: AcceptedCaller, asked: Asked): Attempt {
    exchange.siteKey = caller.apiKey.siteKey
    if (caller.site.test === undefined) this.service.keyUses.note(caller.apiKey.id, this.service.now())
    const parsed = this.read(asked, exchange, caller.site)
    if (!parsed.ok) return refused(parsed.refusal)
    if (caller.site.test !== undefined) return this.#evaluateTest(exchange, caller, parsed.body)
    const { token, expectedIp, idempotencyKey } = parsed.body
    const reading = readToken(this.service.keyring, token)
    exchange.nonce = reading.status === 'genuine' ? reading.claims.nonce : statedNonce(token)
    if (reading.status !== 'genuine') {
      return refused({ reason: reading.status === 'malformed' ? 'token-malformed' : 'token-forged' })
    }
    const { claims } = reading
    const now = this.service.now()
    if (claims.issuedAtMs > now + CLOCK_SKEW_MS) return refused({ reason: 'token-from-future' })
    if (now >= claims.issuedAtMs + claims.lifetimes.tokenLifetimeMs)
      return refused({ reason: 'token-expired' })
    if (claims.siteTag !== caller.site.tag) return refused({ reason: 'token-other-site' })
    const expected = expectedIp === undefined ? undefined : addressFrom(expectedIp)!
    if (expected !== undefined && !this.isOfVisitor(expected, claims.address))
      return refused({ reason: 'token-other-address', mismatch: { expected, visitor: claims.address } })
    const claim = claimOf(caller.apiKey.id, idempotencyKey, token)
    const { ignored } = parsed
    return { verdict: 'redeemable', caller, claims, claim, namesVisitor: expected !== undefined, ignored }
  }

  #evaluateTest(exchange: Exchange, caller: AcceptedCaller, { expectedIp }: Redemption): Attempt {
    switch (caller.site.test) {
      case 'passes':
        return {
          verdict: 'certain',
          caller,
          claims: {
            issuedAtMs: this.service.now(),
            lifetimes: this.service.settings,
            nonce: '0'.repeat(NONCE_LENGTH),
            counter: 0,
            siteTag: caller.site.tag,
            address: expectedIp === undefined ? exchange.address! : addressFrom(expectedIp)!,
            score: 1,
            storeEpoch: 0,
          },
        }
      case 'used':
        return refused({ reason: 'test-key-used' })
      default:
        return refused({ reason: 'test-key-fails' })
    }
  }

  #conclude(exchange: Exchange, attempt: Attempt, admitted: Admitted): void {
    switch (attempt.verdict) {
      case 'redeemable':
        this.#concludeRedeemable(exchange, attempt, admitted)
        break
      case 'certain':
        // No ending, because redemptions by test keys are not recorded.
        this.#succeed(exchange, attempt)
        break
      default:
        this.refuse(exchange, attempt.refusal.reason, attempt.refusal)
    }
  }

  #concludeRedeemable(exchange: Exchange, attempt: Redeemable, admitted: Admitted): void {
    switch (admitted.token) {
      case 'redeemed':
        if (attempt.claims.score < attempt.caller.site.record.minScore)
          return this.refuse(exchange, 'score-too-low')
        this.#succeed(exchange, attempt, {
          kind: 'redeemed',
          apiKey: attempt.caller.apiKey,
          claims: attempt.claims,
        })
        break
      case 'forgotten':
        this.refuse(exchange, 'token-forgotten')
        break
      default:
        this.refuse(exchange, 'token-used')
    }
  }

  #succeed(
    exchange: Exchange,
    { caller, claims }: Pick<Redeemable, 'caller' | 'claims'>,
    ending?: Redeemed,
  ): void {
    const body = this.success(claims, caller.site)
    exchange.answer({ status: 200, ending, body, headers: NO_HEADERS })
  }
}

function refused(refusal: Refusal): Attempt {
  return { verdict: 'refused', refusal }
}

/** The same for retries of a redemption. JSON tells every triple apart, even with lone surrogates, which it escapes. */
function claimOf(keyId: string, idempotencyKey: string | undefined, token: string): string {
  return idempotencyKey === undefined
    ? ''
    : hash('sha256', JSON.stringify([keyId, idempotencyKey, token]), 'base64url')
}
