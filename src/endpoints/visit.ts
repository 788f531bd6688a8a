/**
 * The first steps of the endpoints for browsers.
 *
 *   site key -> body read, if any -> site -> active?, origin -> the endpoint
 *   400         413                  503
 *
 * The endpoint gets even requests to be refused, because they are charged first.
 */

import { type Address, isOperatorsOwn } from '../domain/address.ts'
import { type AddressTags, windowOfJunk, windowOfKnown, windowOfRefused } from '../domain/address-tags.ts'
import { ENDPOINTS, type EndpointName } from '../domain/endpoint.ts'
import type { Meters } from '../domain/meters.ts'
import type { Reason } from '../domain/outcome.ts'
import { networkPolicy, POLICY } from '../domain/policy.ts'
import { NO_TRAFFIC, siteFree, type Traffic, trafficOf } from '../domain/price.ts'
import { isSiteKey, type Site, siteRefusal } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import type { PolicyList } from '../http/replies.ts'
import type { Metering, SolutionRequest } from '../store/store.ts'
import { Endpoint, type Service } from './service.ts'

/** The site is null if it does not exist. */
export type Visit = {
  readonly exchange: Exchange
  readonly address: Address
  readonly isKnown: boolean
  /** The window that its requests count in. */
  readonly addressKey: string
  /** Of `addressKey`. */
  readonly tags: AddressTags
  /** The site's, for the headers. */
  readonly ownLimits: PolicyList | undefined
  readonly addressLimit: number
  /** Per address and site; 0 if the site does not exist. */
  readonly siteLimit: number
} & (
  | { readonly site: Site; readonly refusal: undefined }
  | { readonly site: Site | null; readonly refusal: Reason }
)

export type AllowedVisit = Extract<Visit, { refusal: undefined }>

type VisitorEndpointName = {
  [Name in EndpointName]: (typeof ENDPOINTS)[Name] extends { isCrossOrigin: true } ? Name : never
}[EndpointName]

const NO_BODY = Buffer.alloc(0)
const MINUTE_SECONDS = 60

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
    const kept = Buffer.from(body) // a copy
    const begin = exchange.guard<Site | null | undefined>(site => {
      if (site === undefined) this.refuse(exchange, 'store-unavailable')
      else this.#begin(exchange, site, kept)
    })
    sites.load(exchange.siteKey, begin)
  }

  #begin(exchange: Exchange, site: Site | null, body: Buffer): void {
    const { address, origin } = exchange
    if (address === undefined) return exchange.drop()
    const { tags, settings } = this.service
    const { limits, ipv6PrefixBits } = settings
    const [ofAddress, { limit, ofSite }] = this.#rules.limits
    const isKnown = site?.known.has(address) ?? false
    const knownLimit = isKnown ? site?.record.known.limit : undefined
    const siteLimitOwn = knownLimit ?? site?.record.limits?.[ofSite]
    const key = tags.keyOf(address, ipv6PrefixBits)
    // Browsers send no Origin with a GET to the page's own origin.
    const mayLackOrigin = this.#rules.method === 'get' && exchange.isSameOrigin
    const refusal = siteRefusal(site, origin, mayLackOrigin, exchange.isOfForeignPage)
    const visit = {
      exchange,
      address,
      isKnown,
      addressKey: knownLimit === undefined ? key : windowOfKnown(key, exchange.siteKey),
      tags,
      ownLimits: ownLimits(knownLimit, siteLimitOwn),
      addressLimit: knownLimit ?? limits[ofAddress.limit],
      siteLimit: site === null ? 0 : (siteLimitOwn ?? limits[limit]),
      site,
      refusal,
    }
    // If the site is null, `refusal` is set.
    this.admit(visit as Visit, body)
  }

  /**
   * Requests to be refused have their own window, and so has junk. One literal for all endpoints, because spreading it takes 2 us.
   *
   * @param isJunk will be refused at no cost to its sender: a nonce that was invented, say
   */
  protected chargeOf(
    visit: Visit,
    failed = false,
    spend?: SolutionRequest['spend'],
    isJunk = false,
  ): SolutionRequest {
    const { addressKey, addressLimit, siteLimit, site, refusal } = visit
    return {
      addressKey:
        refusal !== undefined ? windowOfRefused(addressKey) : isJunk ? windowOfJunk(addressKey) : addressKey,
      siteTag: site?.logTag ?? 0,
      addressLimit,
      siteLimit,
      metering: refusal === undefined && !isJunk ? this.#meteringOf(visit) : undefined,
      failOpen: site?.record.failOpen?.[this.#rules.limits[1].ofSite],
      failed,
      spend,
    }
  }

  /** Proofs of known networks and at test sites do not count. */
  #meteringOf({ site, address, isKnown, addressKey, tags }: AllowedVisit): Metering {
    const isCounted = !isKnown && !isOperatorsOwn(address)
    const { owner, wide } = networkPolicy(address).free
    const ofSite = siteFree(expectedOf(site), POLICY)
    return {
      names: tags.metersOf(site.meterName, address, isCounted ? addressKey : undefined),
      free: isCounted ? [ofSite, owner, wide] : [ofSite],
      counts: !isKnown && site.test === undefined,
    }
  }
}

/** @param meters undefined if a worker's memory answered */
export function trafficAround(
  { isKnown, address, site }: Pick<AllowedVisit, 'isKnown' | 'address' | 'site'>,
  meters: Meters | undefined,
): Traffic {
  if (meters === undefined) return { ...NO_TRAFFIC, isKnownNetwork: isKnown }
  return trafficOf(meters, networkPolicy(address), expectedOf(site), isKnown)
}

/** The operator's estimate, in proofs of returning addresses a minute. */
function expectedOf({ record }: Site): number {
  return (record.usualRate ?? 0) * MINUTE_SECONDS
}

function ownLimits(address: number | undefined, site: number | undefined): PolicyList | undefined {
  if (site === undefined) return undefined
  return address === undefined ? { 'address-site': site } : { address, 'address-site': site }
}
