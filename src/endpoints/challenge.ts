/**
 * GET /challenge: issues a challenge bound to the site and the client's address.
 *
 *   site key -> site -> limits  -> site active, origin allowed? -> difficulty -> nonce
 *   400         503     429/503    403                                          200/503
 *
 * visit.ts has the steps up to the limits.
 */

import type { Issued } from '../domain/ending.ts'
import { mintNonce, NONCE_RANDOM_BITS, nonceLifetimeMs } from '../domain/nonce.ts'
import { boundsOf, difficultyOf, priceOf } from '../domain/price.ts'
import { raisedBits, type Site } from '../domain/site.ts'
import type { SIGNALS } from '../domain/site-fields.ts'
import type { Exchange } from '../http/exchange.ts'
import { NO_HEADERS, type Reply, type ReplyStyle, refusalReply, withHeader } from '../http/replies.ts'
import type { ChallengeAdmission } from '../store/store.ts'
import { type Endpoint, notAdmittedReply, type Service } from './service.ts'
import {
  type AllowedVisit,
  chargeOf,
  nonceEpochOf,
  siteKeyRefusal,
  trafficAround,
  type Visit,
  visitOf,
  withSite,
} from './visit.ts'

/**
 * A header tells the widget what it may read of the browser, because the contract fixes the body. It is written together with the
 * Content-Type, because each header of its own takes 0.4 us.
 */
const JSON_TYPES = {
  none: withHeader('X-Powgate-Signals', 'none'),
  flags: withHeader('X-Powgate-Signals', 'flags'),
} satisfies Record<(typeof SIGNALS)[number], string>

const NO_BODY = Buffer.alloc(0)

type Admitted = Extract<ChallengeAdmission, { status: 'admitted' }>

export function challenge(service: Service): Endpoint {
  const admit = (exchange: Exchange, site: Site | null): void => {
    const visit = visitOf(service, 'challenge', exchange, site)
    if (visit.refusal === undefined && isAwayElsewhere(service, visit))
      return exchange.refuse({ reason: 'store-unavailable' })
    service.store.admitChallenge(
      chargeOf(service.pricing, visit, 'challenge'),
      exchange.guard(admission => exchange.answer(replyTo(service, exchange.rules.style, visit, admission))),
    )
  }
  return exchange => {
    const refusal = siteKeyRefusal(exchange.siteKey)
    if (refusal === undefined) withSite(service, exchange, NO_BODY, admit)
    else exchange.refuse(refusal)
  }
}

/**
 * True if only the site's shard of a Cluster is away. No challenge can be issued then, so the request is refused before the address's
 * shard, which answers, charges the visitor.
 */
function isAwayElsewhere(service: Service, visit: AllowedVisit): boolean {
  return (
    service.store.awayMs(visit.addressKey) === 0 && nonceEpochOf(service, 'challenge', visit) === undefined
  )
}

function replyTo(service: Service, style: ReplyStyle, visit: Visit, admission: ChallengeAdmission): Reply {
  const isRefusedAnyway = visit.refusal !== undefined
  if (admission.status !== 'admitted')
    return notAdmittedReply(style, admission, isRefusedAnyway, visit.sitePolicies)
  if (visit.refusal !== undefined) return refusalReply(style, visit.refusal)
  const storeEpoch = nonceEpochOf(service, 'challenge', visit)
  if (storeEpoch === undefined) return refusalReply(style, { reason: 'store-unavailable' })
  const issued = issue(service, visit, admission, storeEpoch, service.now())
  const { nonce, puzzle, difficulty, issuedAtMs } = issued
  const expiresAt = issuedAtMs + nonceLifetimeMs(difficulty, service.settings.challengeLifetimeMs, puzzle)
  return {
    status: 200,
    ending: issued,
    body: `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"${puzzle}","expiresAt":${expiresAt}}`,
    headers: NO_HEADERS,
    jsonType: JSON_TYPES[visit.site.record.signals],
  }
}

function issue(
  { keyring, settings, pricing, randomBits }: Service,
  visit: AllowedVisit,
  { siteCount, accepted, meters }: Admitted,
  storeEpoch: number,
  issuedAtMs: number,
): Issued {
  const { site, address, siteLimit, addressLimit } = visit
  const { puzzle } = site.record
  const counts = { challenges: siteCount, limitPerMinute: Math.min(siteLimit, addressLimit), accepted }
  const traffic = trafficAround(pricing, visit, meters)
  const bounds = boundsOf(site.record.difficulty, raisedBits(site.record, issuedAtMs))
  const price = priceOf(counts, traffic, pricing)
  const difficulty = difficultyOf(bounds, price)
  const binding = { siteKey: site.record.siteKey, storeEpoch, lifetimes: settings, address }
  const random = randomBits(NONCE_RANDOM_BITS)
  const nonce = mintNonce(keyring, { issuedAtMs, puzzle, difficulty }, binding, random)
  return { kind: 'issued', site, nonce, issuedAtMs, puzzle, difficulty, bounds, counts, traffic, price }
}
