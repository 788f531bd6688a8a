/**
 * GET /challenge: issues a proof-of-work challenge, bound to the site and to the client's address.
 *
 *   site key -> site, active?, origin -> limits  -> difficulty -> nonce
 *   400         503                      429/503 403
 *
 * The steps before the limits are in visit.ts. A request that is refused for its site or origin is charged first.
 */

import { timeText } from '../domain/bytes.ts'
import { difficultyFor, trialDifficulty } from '../domain/difficulty.ts'
import { challengeLifetimeMs, mintNonce, NONCE_RANDOM_BITS } from '../domain/nonce.ts'
import { MANY_PEOPLE, sourceOf } from '../domain/sources.ts'
import { NO_HEADERS } from '../http/replies.ts'
import type { ChallengeAdmission } from '../store/store.ts'
import { boundsFor } from './solve-time.ts'
import { type AllowedVisit, type Visit, VisitorEndpoint } from './visit.ts'

type Admitted = Extract<ChallengeAdmission, { status: 'admitted' }>

export class ChallengeEndpoint extends VisitorEndpoint {
  protected admit(visit: Visit): void {
    const { exchange, ownLimits, refusal } = visit
    this.service.store.admitChallenge(
      this.chargeOf(visit),
      exchange.guard(admission => {
        if (!this.admits(exchange, admission, ownLimits)) return
        if (refusal === undefined) this.#issue(visit, admission)
        else this.refuse(exchange, refusal)
      }),
    )
  }

  #issue(visit: AllowedVisit, admitted: Admitted): void {
    const { exchange, address, isKnown, addressKey, siteLimit, site } = visit
    const { siteKey } = site.record
    const storeEpoch = this.service.store.nonceEpoch(addressKey, siteKey)
    if (storeEpoch === undefined) {
      this.refuse(exchange, 'store-unavailable')
      return
    }
    const issuedAtMs = this.service.now()
    const load = this.service.loads.load(site.record)
    const inputs = {
      addressChallenges: admitted.siteCount,
      addressLimit: siteLimit,
      addressFailures: admitted.failures,
      addressAccepted: admitted.accepted,
      source: isKnown ? MANY_PEOPLE : this.service.sources.of(address, issuedAtMs),
      siteRate: load.rate,
      siteRateUsual: load.usualRate,
      siteGrowth: load.growth,
    }
    const bounds = boundsFor(this.service, site, addressKey, issuedAtMs)
    const difficulty = difficultyFor(bounds, inputs)
    const nonce = mintNonce(
      this.service.keyring,
      { issuedAtMs, difficulty },
      { siteKey, storeEpoch, lifetimes: this.service.settings, address: address },
      this.service.randomBits(NONCE_RANDOM_BITS),
    )
    const expiresAt = issuedAtMs + challengeLifetimeMs(difficulty, this.service.settings.challengeLifetimeMs)
    const { shadow } = site
    const shadowDifficulty =
      shadow &&
      trialDifficulty(shadow, bounds, {
        ...inputs,
        source: isKnown ? MANY_PEOPLE : sourceOf(inputs.source.view, shadow),
      })
    this.service.events.issued(exchange, { site, nonce, difficulty, bounds, inputs, shadowDifficulty })
    exchange.answer({
      status: 200,
      body: `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"sha256","expiresAt":${timeText(expiresAt)}}`,
      headers: NO_HEADERS,
    })
  }
}
