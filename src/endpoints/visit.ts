/**
 * The first steps of the endpoints that a visitor's browser calls.
 *
 *   site key -> body read, if any -> site -> active?, origin -> the endpoint
 *   400         413                  503
 *
 * The endpoint gets every request that names a site, also those to be refused for it: they are charged before the answer.
 */

import { type Address, limitKey, windowOfRefused } from '../domain/address.ts'
import { ENDPOINTS, type EndpointName } from '../domain/endpoint.ts'
import type { Reason } from '../domain/outcome.ts'
import { isSiteKey, type Site, siteRefusal } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import type { SolutionRequest } from '../store/store.ts'
import { Endpoint, type Service } from './service.ts'

/** A request that names a site; the site is null if it does not exist. */
export type Visit = {
  readonly exchange: Exchange
  readonly address: Address
  /** From `limitKey`. */
  readonly addressKey: string
  /** The site's own limit, for the headers; undefined if the service's limit applies. */
  readonly ownLimit: number | undefined
  /** The limit per address and site that applies; 0 if the site does not exist. */
  readonly siteLimit: number
} & (
  | { readonly site: Site; readonly refusal: undefined }
  | { readonly site: Site | null; readonly refusal: Reason }
)

export type AllowedVisit = Extract<Visit, { refusal: undefined }>

/** The endpoints that pages call. */
type VisitorEndpointName = {
  [Name in EndpointName]: (typeof ENDPOINTS)[Name] extends { isCrossOrigin: true } ? Name : never
}[EndpointName]

/** The body of a GET. */
const NO_BODY = Buffer.alloc(0)

export abstract class VisitorEndpoint extends Endpoint {
  readonly #rules: (typeof ENDPOINTS)[VisitorEndpointName]

  constructor(service: Service, name: VisitorEndpointName) {
    super(service, name)
    this.#rules = ENDPOINTS[name]
  }

  /** @param body valid only until this returns */
  protected abstract admit(visit: Visit, body: Buffer): void

  handle(exchange: Exchange): void {
    const { siteKey } = exchange
    if (siteKey === '') return this.refuse(exchange, 'site-key-missing')
    if (!isSiteKey(siteKey)) return this.refuse(exchange, 'site-key-malformed')
    if (this.#rules.method === 'get') return this.#findSite(exchange, NO_BODY)
    exchange.readBody(this.service.settings.bodyBytesMax, body => {
      if (body === undefined) this.refuse(exchange, 'body-too-large')
      else this.#findSite(exchange, body)
    })
  }

  #findSite(exchange: Exchange, body: Buffer): void {
    const { sites } = this.service
    const cached = sites.cached(exchange.siteKey)
    if (cached !== undefined) return this.#begin(exchange, cached, body)
    const kept = Buffer.from(body) // the body's memory is valid only until this call returns
    const begin = exchange.guard<Site | null | undefined>(site => {
      if (site === undefined) this.refuse(exchange, 'store-unavailable')
      else this.#begin(exchange, site, kept)
    })
    sites.load(exchange.siteKey, begin)
  }

  #begin(exchange: Exchange, site: Site | null, body: Buffer): void {
    const { address, origin } = exchange
    if (address === undefined) return exchange.drop()
    const { limits, ipv6PrefixBits } = this.service.settings
    const { limit, ofSite } = this.#rules.limits[1]
    const addressKey = limitKey(address, ipv6PrefixBits)
    const refusal = siteRefusal(site, origin, this.#rules.method === 'get' && exchange.isSameOrigin)
    const ownLimit = site?.record.limits?.[ofSite]
    const siteLimit = site === null ? 0 : (ownLimit ?? limits[limit])
    // A site that does not exist is refused.
    this.admit({ exchange, address, addressKey, ownLimit, siteLimit, site, refusal } as Visit, body)
  }

  /**
   * What the store is to charge. If the request is to be refused, in a window of its own. One literal for all endpoints: to
   * spread it into another takes 2 us.
   */
  protected chargeOf(visit: Visit, failed = false, spend?: SolutionRequest['spend']): SolutionRequest {
    const { addressKey, siteLimit, site, refusal } = visit
    const { limits } = this.#rules
    return {
      addressKey: refusal === undefined ? addressKey : windowOfRefused(addressKey),
      siteTag: site?.logTag ?? 0,
      addressLimit: this.service.settings.limits[limits[0].limit],
      siteLimit,
      failOpen: site?.record.failOpen?.[limits[1].ofSite],
      failed,
      spend,
    }
  }
}
