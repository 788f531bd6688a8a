/**
 * POST /siteverify, and GET at reCAPTCHA's path: /verify-token with the field names of the large hosted CAPTCHAs.
 *
 *   a page? -> body read -> secret -> redemption.ts
 *   400        413          200: from here on refusals of 400 and 401 are 200 with `error-codes`, as the vendors answer
 *
 * Requests from pages are refused: a page could post forms here without a preflight, and so use up the limit of a backend that
 * shares its visitors' address.
 */

import { type Address, formatVisitor, isSameClient } from '../addresses/address.ts'
import { apiKeyId, type Site } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import { siteverifyJson } from '../http/replies.ts'
import { parseSiteverify, readSiteverify, secretOf } from '../http/siteverify-body.ts'
import { redeemer } from './redemption.ts'
import type { Endpoint, Service, ServiceSettings } from './service.ts'

export const siteverify = (service: Service): Endpoint => endpointFor(service, false)
export const turnstile = (service: Service): Endpoint => endpointFor(service, true)

function endpointFor(service: Service, isTurnstile: boolean): Endpoint {
  const redeem = redeemer(service, {
    expectedField: 'remoteip',
    matchesVisitor,
    success: (claims, site) => siteverifyJson(answerOf(claims, site, isTurnstile)),
  })
  return exchange => {
    if (exchange.isFromPage) return exchange.refuse({ reason: 'sent-by-page' })
    exchange.readBody(service.settings.bodyBytesMax, body => {
      if (body === undefined) return exchange.refuse({ reason: 'body-too-large' })
      const read = readSiteverify(body, exchange.contentType, exchange.query, isTurnstile)
      if (!read.ok) return exchange.refuse(read.refusal)
      const secret = secretOf(read.body)
      if (secret === undefined) return exchange.refuse({ reason: 'credentials-missing' })
      const key = typeof secret === 'string' ? secret : '' // A list or a number is malformed too.
      const keyId = apiKeyId(key)
      if (keyId === undefined) return exchange.refuse({ reason: 'credentials-malformed' })
      redeem(exchange, key, keyId, site => parseSiteverify(read.body, site))
    })
  }
}

/** Some backends mask IPv6 addresses before sending them (better-auth: to a /64). */
function matchesVisitor(expected: Address, visitor: Address, { ipv6PrefixBits }: ServiceSettings): boolean {
  const networkOf = (address: Address) => formatVisitor(address, ipv6PrefixBits)
  return isSameClient(expected, visitor) || networkOf(expected) === networkOf(visitor)
}

/**
 * Each answer has an `action`, because some backends check score and action only if there is one, and visitors could send none. Only
 * Turnstile's always has `cdata`, and empty `error-codes`, which backends of the other vendors would take for a failure.
 */
function answerOf({ score, issuedAtMs, page }: TokenClaims, { origins }: Site, isTurnstile: boolean): object {
  return {
    success: true,
    score,
    challenge_ts: new Date(issuedAtMs).toISOString(),
    hostname: page?.host ?? origins.onlyHostname,
    action: page?.action ?? '',
    cdata: page?.cdata ?? (isTurnstile ? '' : undefined),
    ...(isTurnstile && { 'error-codes': [] }),
  }
}
