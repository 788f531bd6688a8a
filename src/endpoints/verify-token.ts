/**
 * POST /verify-token: a customer's backend redeems a token, once.
 *
 *   Authorization -> body read -> API key -> [ evaluate: everything that needs no store ] -> limits, single use -> score
 *   401              413          401/503                                                    429/503  400          200
 *
 *   evaluate: content type, body -> token's shape, HMAC, expiry -> site -> expectedIp        (all 400, spend nothing)
 *
 * Fails closed: whatever cannot be told is 503. Credentials that name no valid key cost the caller's address alone.
 */

import { hash } from 'node:crypto'
import { type Address, formatAddress, limitKey, parseAddress } from '../domain/address.ts'
import { challengeLifetimeMs, nonceTerms } from '../domain/nonce.ts'
import type { Reason, Refusal } from '../domain/outcome.ts'
import { type ApiKeyRecord, apiKeyId, isApiKeyOf, isExpired, type Site } from '../domain/site.ts'
import { readToken, type TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS, type Reply } from '../http/replies.ts'
import { parseRedemption } from '../http/schemas.ts'
import type { RedemptionAdmission } from '../store/store.ts'
import { CLOCK_SKEW_MS, type Endpoint, Refusals, type Service } from './service.ts'

/** A caller as far as its credentials tell. */
type Caller =
  | { readonly status: 'known'; readonly apiKey: ApiKeyRecord; readonly site: Site }
  | { readonly status: 'refused'; readonly reason: Reason }

type Attempt =
  | { readonly verdict: 'refused'; readonly refusal: Refusal }
  | {
      readonly verdict: 'redeemable'
      readonly apiKey: ApiKeyRecord
      readonly claims: TokenClaims
      readonly claim: string
    }

type Admitted = Extract<RedemptionAdmission, { status: 'admitted' }>

const BEARER = /^Bearer +([^ ]+) *$/i

export class VerifyTokenEndpoint implements Endpoint {
  readonly name = 'verify-token'
  readonly faultReply: Reply
  readonly #service: Service
  readonly #refusals: Refusals

  constructor(service: Service) {
    const { limits } = service.settings
    this.#service = service
    this.#refusals = new Refusals(service, 'verify-token', 'redemption', {
      address: limits.redeemAddress,
      'api-key': limits.redeemApiKey,
    })
    this.faultReply = this.#refusals.faultReply
  }

  handle(exchange: Exchange): void {
    const { authorization } = exchange
    if (authorization === '') return this.#refusals.refuse(exchange, 'credentials-missing')
    const key = BEARER.exec(authorization)?.[1] ?? ''
    const keyId = apiKeyId(key)
    if (keyId === undefined) return this.#refusals.refuse(exchange, 'credentials-malformed')
    exchange.readBody(this.#service.settings.bodyBytesMax, body => {
      if (body === undefined) return this.#refusals.refuse(exchange, 'body-too-large')
      const caller = this.#knownCaller(key, keyId)
      if (caller !== undefined) return this.#admit(exchange, caller, body)
      const kept = Buffer.from(body) // the look-up outlives this callback, the body's memory does not
      this.#loadCaller(exchange, key, keyId, found => this.#admit(exchange, found, kept))
    })
  }

  /** undefined if something has to be looked up first. */
  #knownCaller(key: string, keyId: string): Caller | undefined {
    const apiKey = this.#service.sites.cachedApiKey(keyId)
    if (apiKey === undefined) return undefined
    if (apiKey === null) return { status: 'refused', reason: 'api-key-unknown' }
    if (!isApiKeyOf(apiKey, key)) return { status: 'refused', reason: 'api-key-wrong-secret' }
    if (apiKey.revokedAt !== null) return { status: 'refused', reason: 'api-key-revoked' }
    if (isExpired(apiKey, this.#service.now())) return { status: 'refused', reason: 'api-key-expired' }
    const site = this.#service.sites.cachedSite(apiKey.siteKey)
    if (site === undefined) return undefined
    if (!site?.record.active) return { status: 'refused', reason: 'api-key-site-inactive' }
    return { status: 'known', apiKey, site }
  }

  #loadCaller(exchange: Exchange, key: string, keyId: string, done: (caller: Caller) => void): void {
    const unavailable = () => this.#refusals.refuse(exchange, 'store-unavailable')
    const judge = () => {
      const caller = this.#knownCaller(key, keyId)
      if (caller === undefined) unavailable()
      else done(caller)
    }
    this.#service.sites.loadApiKey(
      keyId,
      exchange.guard(apiKey => {
        if (apiKey === undefined) unavailable()
        else if (apiKey === null || this.#service.sites.cachedSite(apiKey.siteKey) !== undefined) judge()
        else
          this.#service.sites.loadSite(
            apiKey.siteKey,
            exchange.guard(site => (site === undefined ? unavailable() : judge())),
          )
      }),
    )
  }

  #admit(exchange: Exchange, caller: Caller, body: Buffer): void {
    const { address } = exchange
    if (address === undefined) return this.#refusals.refuse(exchange, 'store-unavailable')
    const attempt: Attempt =
      caller.status === 'known'
        ? this.#evaluate(exchange, caller, body)
        : { verdict: 'refused', refusal: { reason: caller.reason } }
    const ownLimit = caller.status === 'known' ? caller.site.record.limits?.redeem : undefined
    if (caller.status === 'known') this.#service.keyUses.note(caller.apiKey.id, this.#service.now())
    const request = {
      callerKey: limitKey(address, this.#service.settings.ipv6PrefixBits),
      callerLimit: this.#service.settings.limits.redeemAddress,
      apiKey:
        caller.status === 'known'
          ? {
              id: caller.apiKey.id,
              limit: ownLimit ?? this.#service.settings.limits.redeemApiKey,
              siteKey: caller.apiKey.siteKey,
            }
          : undefined,
      redeem:
        attempt.verdict === 'redeemable'
          ? {
              nonce: attempt.claims.nonce,
              storeEpoch: attempt.claims.storeEpoch,
              expiresAtMs: this.#forgettableAtMs(attempt.claims),
              claim: attempt.claim,
            }
          : undefined,
    }
    this.#service.store.redeemToken(
      request,
      exchange.guard(admission => {
        switch (admission.status) {
          case 'limited':
            this.#refusals.limit(exchange, admission, ownLimit)
            break
          case 'admitted':
            this.#conclude(exchange, attempt, admission)
            break
          default:
            this.#refusals.unavailable(exchange, ownLimit)
        }
      }),
    )
  }

  /**
   * Until when the redemption must be remembered: as long as the nonce could yield another token (in an outage while
   * /verify fails open), and that token could be redeemed.
   */
  #forgettableAtMs({ nonce, issuedAtMs }: TokenClaims): number {
    const { challengeLifetimeMs: floorMs, tokenLifetimeMs } = this.#service.settings
    const terms = nonceTerms(nonce)
    const nonceExpiresAtMs = terms.issuedAtMs + challengeLifetimeMs(terms.difficulty, floorMs)
    return Math.max(issuedAtMs, nonceExpiresAtMs) + tokenLifetimeMs
  }

  #evaluate(exchange: Exchange, caller: Extract<Caller, { status: 'known' }>, body: Buffer): Attempt {
    const parsed = parseRedemption(body, exchange.contentType)
    if (!parsed.ok) return refused(parsed.refusal)
    const { token, expectedIp, idempotencyKey } = parsed.body
    const reading = readToken(this.#service.keyring, token)
    if (reading.status !== 'genuine') {
      return refused({ reason: reading.status === 'malformed' ? 'token-malformed' : 'token-forged' })
    }
    const { claims } = reading
    const now = this.#service.now()
    if (claims.issuedAtMs > now + CLOCK_SKEW_MS) return refused({ reason: 'token-from-future' })
    if (now >= claims.issuedAtMs + this.#service.settings.tokenLifetimeMs)
      return refused({ reason: 'token-expired' })
    if (claims.siteTag !== caller.site.tag) return refused({ reason: 'token-other-site' })
    if (isOtherAddress(expectedIp, claims.address)) return refused({ reason: 'token-other-address' })
    const { apiKey } = caller
    return { verdict: 'redeemable', apiKey, claims, claim: claimOf(apiKey.id, idempotencyKey, token) }
  }

  #conclude(exchange: Exchange, attempt: Attempt, admitted: Admitted): void {
    if (attempt.verdict !== 'redeemable') {
      return this.#refusals.refuse(exchange, attempt.refusal.reason, attempt.refusal)
    }
    switch (admitted.token) {
      case 'redeemed':
        this.#service.events.redeemed(exchange, attempt.apiKey, attempt.claims)
        exchange.answer({ status: 200, body: successBody(attempt.claims), headers: NO_HEADERS })
        break
      case 'forgotten':
        this.#refusals.refuse(exchange, 'token-forgotten')
        break
      default:
        this.#refusals.refuse(exchange, 'token-used')
    }
  }
}

function refused(refusal: Refusal): Attempt {
  return { verdict: 'refused', refusal }
}

function isOtherAddress(expectedIp: string | undefined, address: Address): boolean {
  return expectedIp !== undefined && parseAddress(expectedIp) !== address
}

/**
 * Names one redemption for its retries. As JSON no two triples make the same text: quotes delimit, and a lone surrogate,
 * which UTF-8 cannot hold, is escaped.
 */
function claimOf(keyId: string, idempotencyKey: string | undefined, token: string): string {
  return idempotencyKey === undefined
    ? ''
    : hash('sha256', JSON.stringify([keyId, idempotencyKey, token]), 'base64url')
}

function successBody(claims: TokenClaims): string {
  const { score, address, issuedAtMs } = claims
  return `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`
}
