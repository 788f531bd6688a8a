/**
 * POST /siteverify: /verify-token for backends that use the field names of the large hosted CAPTCHAs.
 *
 *   a page? -> body read -> secret -> redemption.ts
 *   400        413          200
 *
 * Every verdict has status 200, as at those services. A page can post a form here without a preflight, so requests from
 * pages are refused. Otherwise a page could make its visitors use up the limit of a backend behind the same address.
 */

import { apiKeyId, type Site } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { parseSiteverify, readSiteverify, type SiteverifyFields, secretOf } from '../http/siteverify.ts'
import { RedemptionFlow } from './redemption.ts'
import type { Endpoint, Refusals, Service } from './service.ts'

export class SiteverifyEndpoint implements Endpoint {
  readonly refusals: Refusals
  readonly #bodyBytesMax: number
  readonly #redemption: RedemptionFlow<SiteverifyFields>

  constructor(service: Service) {
    this.#bodyBytesMax = service.settings.bodyBytesMax
    this.#redemption = new RedemptionFlow<SiteverifyFields>(service, {
      endpoint: 'siteverify',
      keep: fields => fields,
      read: (fields, _exchange, site) => parseSiteverify(fields, site),
      success: successBody,
    })
    this.refusals = this.#redemption.refusals
  }

  handle(exchange: Exchange): void {
    if (exchange.isOfPage) return this.refusals.refuse(exchange, 'sent-by-page')
    exchange.readBody(this.#bodyBytesMax, body => {
      if (body === undefined) this.refusals.refuse(exchange, 'body-too-large')
      else this.#redeem(exchange, body)
    })
  }

  #redeem(exchange: Exchange, body: Buffer): void {
    const fields = readSiteverify(body, exchange.contentType)
    if (!fields.ok) return this.refusals.refuse(exchange, fields.refusal.reason, fields.refusal)
    const secret = secretOf(fields.body)
    if (secret === undefined) return this.refusals.refuse(exchange, 'credentials-missing')
    const keyId = typeof secret === 'string' ? apiKeyId(secret) : undefined
    if (keyId === undefined) return this.refusals.refuse(exchange, 'credentials-malformed')
    this.#redemption.redeem(exchange, secret as string, keyId, fields.body)
  }
}

function successBody({ score, issuedAtMs }: TokenClaims, { origins }: Site): string {
  return JSON.stringify({
    success: true,
    score,
    challenge_ts: new Date(issuedAtMs).toISOString(),
    ...(origins.onlyHostname === undefined ? {} : { hostname: origins.onlyHostname }),
    'error-codes': [],
  })
}
