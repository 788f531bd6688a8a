/**
 * POST /siteverify, and GET at reCAPTCHA's path: /verify-token with the field names of the large hosted CAPTCHAs.
 *
 *   a page? -> body read -> secret -> redemption.ts
 *   400        413          200
 *
 * Requests from pages are refused: a page could post forms here without a preflight, and so use up the limit of a backend that
 * shares its visitors' address.
 */

import { type Address, visitorKey } from '../domain/address.ts'
import { pageHostname } from '../domain/page.ts'
import { apiKeyId, type Site } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { siteverifyJson } from '../http/replies.ts'
import type { Parsed } from '../http/schemas.ts'
import { parseSiteverify, readSiteverify, type SiteverifyFields, secretOf } from '../http/siteverify.ts'
import type { Redemption } from '../protocol/wire.ts'
import { RedemptionEndpoint } from './redemption.ts'

export class SiteverifyEndpoint extends RedemptionEndpoint<SiteverifyFields> {
  handle(exchange: Exchange, query: string): void {
    if (exchange.isOfPage) return this.refuse(exchange, 'sent-by-page')
    exchange.readBody(this.service.settings.bodyBytesMax, body => {
      if (body === undefined) this.refuse(exchange, 'body-too-large')
      else this.#begin(exchange, body, query)
    })
  }

  #begin(exchange: Exchange, body: Buffer, query: string): void {
    const fields = readSiteverify(body, exchange.contentType, query)
    if (!fields.ok) return this.refuse(exchange, fields.refusal.reason, fields.refusal)
    const secret = secretOf(fields.body)
    if (secret === undefined) return this.refuse(exchange, 'credentials-missing')
    const keyId = typeof secret === 'string' ? apiKeyId(secret) : undefined
    if (keyId === undefined) return this.refuse(exchange, 'credentials-malformed')
    this.redeem(exchange, secret as string, keyId, fields.body)
  }

  protected keep(fields: SiteverifyFields): SiteverifyFields {
    return fields
  }

  protected read(fields: SiteverifyFields, _exchange: Exchange, site: Site): Parsed<Redemption> {
    return parseSiteverify(fields, site)
  }

  /** Some backends mask IPv6 addresses before sending them (better-auth: to a /64). */
  protected override isOfVisitor(expected: Address, visitor: Address): boolean {
    const { ipv6PrefixBits } = this.service.settings
    const isOfNetwork = visitorKey(expected, ipv6PrefixBits) === visitorKey(visitor, ipv6PrefixBits)
    return isOfNetwork || super.isOfVisitor(expected, visitor)
  }

  protected success(claims: TokenClaims, site: Site): string {
    return siteverifyJson(this.fieldsOf(claims, site))
  }

  /** Always with an `action`: some backends check score and action only if there is one, and visitors could send none. */
  protected fieldsOf({ score, issuedAtMs, page }: TokenClaims, { origins }: Site): object {
    return {
      success: true,
      score,
      challenge_ts: new Date(issuedAtMs).toISOString(),
      hostname: pageHostname(page, origins),
      action: page?.action ?? '',
      ...(page?.cdata === undefined ? {} : { cdata: page.cdata }),
    }
  }
}

/** Adds empty `error-codes` to a success, which backends of hCaptcha and reCAPTCHA would take for a failure. */
export class TurnstileEndpoint extends SiteverifyEndpoint {
  protected override fieldsOf(claims: TokenClaims, site: Site): object {
    return { ...super.fieldsOf(claims, site), cdata: claims.page?.cdata ?? '', 'error-codes': [] }
  }
}
