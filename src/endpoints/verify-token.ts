/**
 * POST /verify-token, for a site's backend.
 *
 *   Authorization -> body read -> redemption.ts
 *   401              413
 *
 * Pages cannot call it: Authorization makes browsers send a preflight, which gets 405.
 */

import { formatAddress } from '../domain/address.ts'
import { apiKeyId } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Parsed, parseRedemption } from '../http/schemas.ts'
import type { Redemption } from '../protocol/wire.ts'
import { RedemptionEndpoint } from './redemption.ts'

const BEARER = /^Bearer +([^ ]+) *$/i

export class VerifyTokenEndpoint extends RedemptionEndpoint<Buffer> {
  handle(exchange: Exchange): void {
    const { authorization } = exchange
    if (authorization === '') return this.refuse(exchange, 'credentials-missing')
    const key = BEARER.exec(authorization)?.[1] ?? ''
    const keyId = apiKeyId(key)
    if (keyId === undefined) return this.refuse(exchange, 'credentials-malformed')
    exchange.readBody(this.service.settings.bodyBytesMax, body => {
      if (body === undefined) this.refuse(exchange, 'body-too-large')
      else this.redeem(exchange, key, keyId, body)
    })
  }

  protected keep(body: Buffer): Buffer {
    return Buffer.from(body)
  }

  protected read(body: Buffer, exchange: Exchange): Parsed<Redemption> {
    return parseRedemption(body, exchange.contentType)
  }

  protected success({ score, address, issuedAtMs }: TokenClaims): string {
    return `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`
  }
}
