/**
 * POST /verify-token: the backend of a site redeems a token, once.
 *
 *   Authorization -> body read -> redemption.ts
 *   401              413
 *
 * A page cannot call this endpoint: its browser sends a preflight before Authorization, and the preflight gets 405.
 */

import { formatAddress } from '../domain/address.ts'
import { apiKeyId } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { parseRedemption } from '../http/schemas.ts'
import { RedemptionFlow } from './redemption.ts'
import type { Endpoint, Refusals, Service } from './service.ts'

const BEARER = /^Bearer +([^ ]+) *$/i

export class VerifyTokenEndpoint implements Endpoint {
  readonly refusals: Refusals
  readonly #bodyBytesMax: number
  readonly #redemption: RedemptionFlow<Buffer>

  constructor(service: Service) {
    this.#bodyBytesMax = service.settings.bodyBytesMax
    this.#redemption = new RedemptionFlow<Buffer>(service, {
      endpoint: 'verify-token',
      keep: body => Buffer.from(body), // the body's memory is valid only until the callback returns
      read: (body, exchange) => parseRedemption(body, exchange.contentType),
      success: successBody,
    })
    this.refusals = this.#redemption.refusals
  }

  handle(exchange: Exchange): void {
    const { authorization } = exchange
    if (authorization === '') return this.refusals.refuse(exchange, 'credentials-missing')
    const key = BEARER.exec(authorization)?.[1] ?? ''
    const keyId = apiKeyId(key)
    if (keyId === undefined) return this.refusals.refuse(exchange, 'credentials-malformed')
    exchange.readBody(this.#bodyBytesMax, body => {
      if (body === undefined) this.refusals.refuse(exchange, 'body-too-large')
      else this.#redemption.redeem(exchange, key, keyId, body)
    })
  }
}

function successBody({ score, address, issuedAtMs }: TokenClaims): string {
  return `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`
}
