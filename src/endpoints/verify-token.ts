/**
 * POST /verify-token, for a site's backend.
 *
 *   Authorization -> body read -> redemption.ts
 *   401              413
 *
 * Pages cannot call it: Authorization makes browsers send a preflight, which gets 405.
 */

import { formatAddress, isSameClient } from '../addresses/address.ts'
import { apiKeyId } from '../domain/site.ts'
import { parseRedemption } from '../http/schemas.ts'
import { type Dialect, redeemer } from './redemption.ts'
import type { Endpoint, Service } from './service.ts'

const BEARER = /^Bearer +([^ ]+) *$/i

const DIALECT: Dialect = {
  expectedField: 'expectedIp',
  matchesVisitor: isSameClient,
  success: ({ score, address, issuedAtMs }) =>
    `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`,
}

export function verifyToken(service: Service): Endpoint {
  const redeem = redeemer(service, DIALECT)
  return exchange => {
    const { authorization } = exchange
    if (authorization === '') return exchange.refuse({ reason: 'credentials-missing' })
    const key = BEARER.exec(authorization)?.[1] ?? ''
    const keyId = apiKeyId(key)
    if (keyId === undefined) return exchange.refuse({ reason: 'credentials-malformed' })
    exchange.readBody(service.settings.bodyBytesMax, body => {
      if (body === undefined) return exchange.refuse({ reason: 'body-too-large' })
      const copy = Buffer.from(body) // the server reuses the memory of the body
      redeem(exchange, key, keyId, () => parseRedemption(copy, exchange.contentType))
    })
  }
}
