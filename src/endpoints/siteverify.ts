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
import type { Refusal } from '../domain/outcome.ts'
import { pageHostname } from '../domain/page.ts'
import { apiKeyId, type Site } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import { siteverifyJson } from '../http/replies.ts'
import type { Parsed } from '../http/schemas.ts'
import { parseSiteverify, readSiteverify, type SiteverifyFields, secretOf } from '../http/siteverify-body.ts'
import { redeemer } from './redemption.ts'
import type { Endpoint, Service, ServiceSettings } from './service.ts'

type Answer = (claims: TokenClaims, site: Site) => object

export const siteverify = (service: Service): Endpoint => endpointWith(service, answerOf, false)

/** A success also has empty `error-codes` and always `cdata`. Backends of the other vendors would take `error-codes` for a failure. */
export const turnstile = (service: Service): Endpoint =>
  endpointWith(
    service,
    (claims, site) => {
      return { ...answerOf(claims, site), cdata: claims.page?.cdata ?? '', 'error-codes': [] }
    },
    true,
  )

function endpointWith(service: Service, answer: Answer, isTurnstile: boolean): Endpoint {
  const redeem = redeemer(service, {
    expectedField: 'remoteip',
    matchesVisitor,
    success: (claims, site) => siteverifyJson(answer(claims, site)),
  })
  return exchange => {
    if (exchange.isFromPage) return exchange.refuse({ reason: 'sent-by-page' })
    exchange.readBody(service.settings.bodyBytesMax, body => {
      if (body === undefined) return exchange.refuse({ reason: 'body-too-large' })
      const asked = credentialsIn(readSiteverify(body, exchange.contentType, exchange.query, isTurnstile))
      if ('refusal' in asked) exchange.refuse(asked.refusal)
      else redeem(exchange, asked.secret, asked.keyId, site => parseSiteverify(asked.fields, site))
    })
  }
}

type Credentials =
  | { readonly refusal: Refusal }
  | { readonly fields: SiteverifyFields; readonly secret: string; readonly keyId: string }

function credentialsIn(read: Parsed<SiteverifyFields>): Credentials {
  if (!read.ok) return read
  const secret = secretOf(read.body)
  if (secret === undefined) return { refusal: { reason: 'credentials-missing' } }
  const key = typeof secret === 'string' ? secret : '' // A list or a number is malformed too.
  const keyId = apiKeyId(key)
  if (keyId === undefined) return { refusal: { reason: 'credentials-malformed' } }
  return { fields: read.body, secret: key, keyId }
}

/** Some backends mask IPv6 addresses before sending them (better-auth: to a /64). */
function matchesVisitor(expected: Address, visitor: Address, { ipv6PrefixBits }: ServiceSettings): boolean {
  const networkOf = (address: Address) => formatVisitor(address, ipv6PrefixBits)
  return isSameClient(expected, visitor) || networkOf(expected) === networkOf(visitor)
}

/** Always with an `action`: some backends check score and action only if there is one, and visitors could send none. */
function answerOf({ score, issuedAtMs, page }: TokenClaims, { origins }: Site): object {
  return {
    success: true,
    score,
    challenge_ts: new Date(issuedAtMs).toISOString(),
    hostname: pageHostname(page, origins),
    action: page?.action ?? '',
    ...(page?.cdata === undefined ? {} : { cdata: page.cdata }),
  }
}
