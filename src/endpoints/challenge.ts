/**
 * GET /challenge: issues a challenge bound to the site and the client's address.
 *
 *   site key -> site -> limits  -> site active, origin allowed? -> difficulty -> nonce
 *   400         503     429/503    403
 *
 * visit.ts has the steps before the limits.
 */

import { timeText } from '../domain/bytes.ts'
import type { Issued } from '../domain/ending.ts'
import { challengeLifetimeMs, mintNonce, NONCE_RANDOM_BITS } from '../domain/nonce.ts'
import { boundsOf, difficultyOf, priceOf } from '../domain/price.ts'
import { raisedBits } from '../domain/site.ts'
import type { SIGNALS } from '../domain/site-fields.ts'
import { NO_HEADERS, withHeader } from '../http/replies.ts'
import type { ChallengeAdmission } from '../store/store.ts'
import { type AllowedVisit, trafficAround, type Visit, VisitorEndpoint } from './visit.ts'

/** What the widget may read of the browser. The body has the contract's fields alone. */
const HEADS = {
  none: withHeader('X-Powgate-Signals', 'none'),
  flags: withHeader('X-Powgate-Signals', 'flags'),
} satisfies Record<(typeof SIGNALS)[number], string>

type Admitted = Extract<ChallengeAdmission, { status: 'admitted' }>

export class ChallengeEndpoint extends VisitorEndpoint {
  protected admit(visit: Visit): void {
    const { exchange, ownLimits, refusal } = visit
    this.service.store.admitChallenge(
      this.chargeOf(visit),
      exchange.guard(admission => {
        if (!this.admits(exchange, admission, ownLimits)) return
        if (refusal === undefined) this.#answer(visit, admission)
        else this.refuse(exchange, refusal)
      }),
    )
  }

  #answer(visit: AllowedVisit, admitted: Admitted): void {
    const { exchange, addressKey, site } = visit
    const storeEpoch = this.service.store.nonceEpoch(addressKey, site.record.siteKey)
    if (storeEpoch === undefined) return this.refuse(exchange, 'store-unavailable')
    const nowMs = this.service.now()
    const issued = this.#issue(visit, admitted, storeEpoch, nowMs)
    const { nonce, puzzle, difficulty } = issued
    const expiresAt =
      nowMs + challengeLifetimeMs(difficulty, this.service.settings.challengeLifetimeMs, puzzle)
    exchange.answer({
      status: 200,
      ending: issued,
      body: `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"${puzzle}","expiresAt":${timeText(expiresAt)}}`,
      headers: NO_HEADERS,
      head: HEADS[site.record.signals],
    })
  }

  #issue(
    visit: AllowedVisit,
    { siteCount, accepted, meters }: Admitted,
    storeEpoch: number,
    nowMs: number,
  ): Issued {
    const { site, address, siteLimit, addressLimit } = visit
    const { puzzle } = site.record
    const { keyring, settings, randomBits } = this.service
    const counts = { challenges: siteCount, limit: Math.min(siteLimit, addressLimit), accepted }
    const traffic = trafficAround(visit, meters)
    const bounds = boundsOf(site.record.difficulty, raisedBits(site.record, nowMs))
    const price = priceOf(counts, traffic)
    const difficulty = difficultyOf(bounds, price)
    const binding = { siteKey: site.record.siteKey, storeEpoch, lifetimes: settings, address }
    const random = randomBits(NONCE_RANDOM_BITS)
    const nonce = mintNonce(keyring, { issuedAtMs: nowMs, puzzle, difficulty }, binding, random)
    return {
      kind: 'issued',
      site,
      nonce,
      issuedAtMs: nowMs,
      puzzle,
      difficulty,
      bounds,
      counts,
      traffic,
      price,
    }
  }
}
