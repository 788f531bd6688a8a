/**
 * GET /challenge: issues a proof-of-work challenge, bound to the site and to the requesting address.
 *
 *   site key -> site -> limits -> active? -> origin -> difficulty -> nonce
 *   400         403/503  429/503   403        403
 */

import { limitKey } from '../domain/address.ts'
import { difficultyFor } from '../domain/difficulty.ts'
import { challengeLifetimeMs, mintNonce, NONCE_RANDOM_BITS } from '../domain/nonce.ts'
import { isSiteKey, type Site } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS } from '../http/replies.ts'
import type { ChallengeAdmission } from '../store/store.ts'
import { type Endpoint, Refusals, type Service } from './service.ts'

type Admitted = Extract<ChallengeAdmission, { status: 'admitted' }>

export function challengeEndpoint(service: Service): Endpoint {
  const { limits, challengeLifetimeMs: lifetimeFloorMs, ipv6PrefixBits } = service.settings
  const refusals = new Refusals('challenge', 'plain', {
    address: limits.challengeAddress,
    'address-site': limits.challengeAddressSite,
  })

  function handle(exchange: Exchange): void {
    const { siteKey } = exchange
    if (siteKey === '') return refusals.refuse(service, exchange, 'site-key-missing')
    if (!isSiteKey(siteKey)) return refusals.refuse(service, exchange, 'site-key-malformed')
    const cached = service.sites.cachedSite(siteKey)
    if (cached !== undefined) return admit(exchange, cached)
    service.sites.loadSite(
      siteKey,
      exchange.guard(site => {
        if (site === undefined) refusals.refuse(service, exchange, 'store-unavailable')
        else admit(exchange, site)
      }),
    )
  }

  /** Every request that names a site is charged; one that names none costs its address alone. */
  function admit(exchange: Exchange, site: Site | null): void {
    if (exchange.address === undefined) {
      refusals.refuse(service, exchange, 'store-unavailable')
      return
    }
    const addressKey = limitKey(exchange.address, ipv6PrefixBits)
    const request = {
      addressKey,
      siteTag: site?.logTag ?? 0,
      addressLimit: limits.challengeAddress,
      siteLimit: site === null ? 0 : limits.challengeAddressSite,
    }
    service.store.admitChallenge(
      request,
      exchange.guard(admission => {
        switch (admission.status) {
          case 'limited':
            refusals.limit(service, exchange, admission)
            break
          case 'admitted':
            decide(exchange, site, addressKey, admission)
            break
          default:
            refusals.refuse(service, exchange, 'store-unavailable')
        }
      }),
    )
  }

  function decide(exchange: Exchange, site: Site | null, addressKey: string, admitted: Admitted): void {
    if (site === null) refusals.refuse(service, exchange, 'site-unknown')
    else if (!site.record.active) refusals.refuse(service, exchange, 'site-inactive')
    else if (!site.origins.allows(exchange.origin, site.record.requireOrigin)) {
      refusals.refuse(service, exchange, 'origin-refused')
    } else issue(exchange, site, addressKey, admitted)
  }

  function issue(exchange: Exchange, site: Site, addressKey: string, admitted: Admitted): void {
    const { siteKey } = site.record
    const storeEpoch = service.store.addressEpoch(addressKey)
    if (storeEpoch === undefined) {
      refusals.refuse(service, exchange, 'store-unavailable')
      return
    }
    const load = service.loads.load(siteKey)
    const difficulty = difficultyFor(site.record.difficulty, {
      addressChallenges: admitted.siteCount,
      addressLimit: limits.challengeAddressSite,
      addressFailures: admitted.failures,
      siteRate: load.rate,
      siteRateUsual: load.usualRate,
    })
    const issuedAtMs = service.now()
    const nonce = mintNonce(
      service.keyring,
      { issuedAtMs, difficulty },
      { siteKey, storeEpoch, address: exchange.address! },
      service.randomBits(NONCE_RANDOM_BITS),
    )
    const expiresAt = issuedAtMs + challengeLifetimeMs(difficulty, lifetimeFloorMs)
    service.loads.countChallenge(siteKey)
    exchange.answer({
      status: 200,
      body: `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"sha256","expiresAt":${expiresAt}}`,
      headers: NO_HEADERS,
    })
  }

  return { handle, faultReply: refusals.faultReply }
}
