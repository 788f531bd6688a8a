/**
 * GET /challenge: issues a proof-of-work challenge, bound to the site and to the client's address.
 *
 *   site key -> site, active?, origin -> limits  -> difficulty -> nonce
 *   400         503                      429/503 403
 *
 * Requests that are refused for their site or origin count too, in a separate window, before they are refused.
 */

import { limitKey, windowOfRefused } from '../domain/address.ts'
import { timeText } from '../domain/bytes.ts'
import { difficultyFor, trialDifficulty } from '../domain/difficulty.ts'
import { challengeLifetimeMs, mintNonce, NONCE_RANDOM_BITS } from '../domain/nonce.ts'
import { isSiteKey, type Site, siteRefusal } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS } from '../http/replies.ts'
import type { ChallengeAdmission } from '../store/store.ts'
import { type Endpoint, Refusals, type Service } from './service.ts'
import { boundsFor } from './solve-time.ts'

type Admitted = Extract<ChallengeAdmission, { status: 'admitted' }>

export class ChallengeEndpoint implements Endpoint {
  readonly refusals: Refusals
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
    this.refusals = new Refusals(service, 'challenge')
  }

  handle(exchange: Exchange): void {
    const { siteKey } = exchange
    if (siteKey === '') return this.refusals.refuse(exchange, 'site-key-missing')
    if (!isSiteKey(siteKey)) return this.refusals.refuse(exchange, 'site-key-malformed')
    const cached = this.#service.sites.cachedSite(siteKey)
    if (cached !== undefined) return this.#admit(exchange, cached)
    this.#service.sites.loadSite(
      siteKey,
      exchange.guard(site => {
        if (site === undefined) this.refusals.refuse(exchange, 'store-unavailable')
        else this.#admit(exchange, site)
      }),
    )
  }

  /** Counts every request that has a site key; if the site is unknown, against the address's limit alone. */
  #admit(exchange: Exchange, site: Site | null): void {
    if (exchange.address === undefined) return exchange.drop()
    const refusal = siteRefusal(site, exchange.origin, exchange.isSameOrigin)
    const addressKey = limitKey(exchange.address, this.#service.settings.ipv6PrefixBits)
    const { limits } = this.#service.settings
    const ownLimit = site?.record.limits?.challenge
    const request = {
      addressKey: refusal === undefined ? addressKey : windowOfRefused(addressKey),
      siteTag: site?.logTag ?? 0,
      addressLimit: limits.challengeAddress,
      siteLimit: site === null ? 0 : (ownLimit ?? limits.challengeAddressSite),
      failOpen: site?.record.failOpen?.challenge,
    }
    this.#service.store.admitChallenge(
      request,
      exchange.guard(admission => {
        if (!this.refusals.admits(exchange, admission, ownLimit)) return
        if (refusal === undefined) this.#issue(exchange, site!, addressKey, admission)
        else this.refusals.refuse(exchange, refusal)
      }),
    )
  }

  #issue(exchange: Exchange, site: Site, addressKey: string, admitted: Admitted): void {
    const { siteKey, limits } = site.record
    const storeEpoch = this.#service.store.nonceEpoch(addressKey, siteKey)
    if (storeEpoch === undefined) {
      this.refusals.refuse(exchange, 'store-unavailable')
      return
    }
    const issuedAtMs = this.#service.now()
    const load = this.#service.loads.load(siteKey)
    const inputs = {
      addressChallenges: admitted.siteCount,
      addressLimit: limits?.challenge ?? this.#service.settings.limits.challengeAddressSite,
      addressFailures: admitted.failures,
      source: this.#service.sources.of(exchange.address!, issuedAtMs),
      siteRate: load.rate,
      siteRateUsual: load.usualRate,
    }
    const bounds = boundsFor(this.#service, site, addressKey, issuedAtMs)
    const difficulty = difficultyFor(bounds, inputs)
    const nonce = mintNonce(
      this.#service.keyring,
      { issuedAtMs, difficulty },
      { siteKey, storeEpoch, lifetimes: this.#service.settings, address: exchange.address! },
      this.#service.randomBits(NONCE_RANDOM_BITS),
    )
    const expiresAt = issuedAtMs + challengeLifetimeMs(difficulty, this.#service.settings.challengeLifetimeMs)
    const { shadow } = site
    const shadowDifficulty =
      shadow &&
      trialDifficulty(shadow, bounds, {
        ...inputs,
        source: this.#service.sources.of(exchange.address!, issuedAtMs, shadow),
      })
    this.#service.events.issued(exchange, { site, nonce, difficulty, bounds, inputs, shadowDifficulty })
    exchange.answer({
      status: 200,
      body: `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"sha256","expiresAt":${timeText(expiresAt)}}`,
      headers: NO_HEADERS,
    })
  }
}
