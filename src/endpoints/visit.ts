/**
 * The steps that endpoints for browsers share, in the order of their use.
 *
 *   siteKeyRefusal -> withSite -> visitOf            -> chargeOf -> the store -> trafficAround
 *   400               503         403, once charged
 *
 * Requests to be refused are charged too, so a 403 comes after the store's answer.
 */

import { type Address, PRIVATE } from '../addresses/address.ts'
import { type AddressTags, windowOfJunk, windowOfKnown, windowOfRefused } from '../domain/address-tags.ts'
import { ENDPOINTS } from '../domain/endpoint.ts'
import type { Meters } from '../domain/meters.ts'
import type { Reason, Refusal } from '../domain/outcome.ts'
import { NO_TRAFFIC, siteFree, type Traffic, trafficOf } from '../domain/price.ts'
import { networkPricing, type Pricing } from '../domain/pricing.ts'
import { isSiteKey, type Site, siteRefusal } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import type { PolicyList } from '../http/replies.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import type { Metering, SolutionRequest } from '../store/store.ts'
import type { Service } from './service.ts'

interface Visitor {
  readonly address: Address
  /** Empty if absent. */
  readonly origin: string
  /** True in a network that the site's setting `known.networks` names. */
  readonly isKnown: boolean
  /** The key of the address log in the store that counts the visitor's requests. */
  readonly addressKey: string
  /** The tags that made `addressKey`: /verify may try those of another secret. */
  readonly tags: AddressTags
  /** The limits that the site sets itself, for the headers. */
  readonly sitePolicies: PolicyList | undefined
  readonly addressLimit: number
  /** The limit per address and site; 0 for none, if the site does not exist. */
  readonly siteLimit: number
}

export interface AllowedVisit extends Visitor {
  readonly site: Site
  readonly refusal: undefined
}

interface RefusedVisit extends Visitor {
  /** null if the site does not exist. */
  readonly site: Site | null
  readonly refusal: Refusal
}

export type Visit = AllowedVisit | RefusedVisit

type VisitorEndpointName = 'challenge' | 'verify'

const MINUTE_SECONDS = 60
const ORIGIN_CHARACTERS_MAX = 200

export function siteKeyRefusal(siteKey: string): Refusal | undefined {
  if (siteKey === '') return { reason: 'site-key-missing' }
  return isSiteKey(siteKey) ? undefined : { reason: 'site-key-malformed' }
}

/** The site is null if it does not exist; the body is valid only until the call returns. */
type OnSite = (exchange: Exchange, site: Site | null, body: Buffer) => void

/** Calls the next step with the exchange's site, at once if it is cached, and answers if the store could not be read. */
export function withSite({ sites }: Service, exchange: Exchange, body: Buffer, next: OnSite): void {
  const cached = sites.cached(exchange.siteKey)
  if (cached !== undefined) return next(exchange, cached, body)
  const copy = Buffer.from(body)
  const loaded = exchange.guard<Site | null | undefined>(site => {
    if (site === undefined) exchange.refuse({ reason: 'store-unavailable' })
    else next(exchange, site, copy)
  })
  sites.load(exchange.siteKey, loaded)
}

/** Finds the visitor, the limits of the request, and why it will be refused. */
export function visitOf(
  { tags, settings }: Service,
  name: VisitorEndpointName,
  exchange: Exchange,
  site: Site | null,
): Visit {
  const { address, origin } = exchange
  const { limits, ipv6PrefixBits } = settings
  const [ofAddress, ofSite] = ENDPOINTS[name].limits
  const key = tags.keyOf(address, ipv6PrefixBits)
  if (site === null)
    return {
      address,
      origin,
      isKnown: false,
      addressKey: key,
      tags,
      sitePolicies: undefined,
      addressLimit: limits[ofAddress.limit],
      siteLimit: 0,
      site,
      refusal: { reason: 'site-unknown' },
    }
  const isKnown = site.known.has(address)
  // A known network's own limit replaces both others, and counts for this site alone.
  const knownLimit = isKnown ? site.record.known.limit : undefined
  const ownSiteLimit = knownLimit ?? site.record.limits?.[ofSite.siteSetting]
  // Browsers send no Origin with a GET to the page's own origin.
  const mayLackOrigin = ENDPOINTS[name].method === 'get' && exchange.isSameOrigin
  const reason = siteRefusal(site, origin, mayLackOrigin, exchange.isFromForeignPage)
  return {
    address,
    origin,
    isKnown,
    addressKey: knownLimit === undefined ? key : windowOfKnown(key, exchange.siteKey),
    tags,
    sitePolicies: ownPolicies(knownLimit, ownSiteLimit),
    addressLimit: knownLimit ?? limits[ofAddress.limit],
    siteLimit: ownSiteLimit ?? limits[ofSite.limit],
    site,
    refusal: reason === undefined ? undefined : { reason, detail: detailOf(reason, origin) },
  }
}

function detailOf(reason: Reason, origin: string): string | undefined {
  if (reason !== 'origin-refused') return undefined
  if (origin === '') return 'The request has no Origin header, and this site requires one.'
  return `${origin.slice(0, ORIGIN_CHARACTERS_MAX)} is not an allowed origin of this site.`
}

/** The epoch that a challenge is bound to (`nonceEpoch` of store.ts), by the site's or the service's fail-open setting. */
export function nonceEpochOf(
  { store, settings }: Service,
  name: VisitorEndpointName,
  { addressKey, site }: AllowedVisit,
): number | undefined {
  const { siteKey, failOpen } = site.record
  return store.nonceEpoch(addressKey, siteKey, failOpen?.[name] ?? settings.failOpen[name])
}

/** `failure`: a wrong solution, or too low a score. `junk`: it will be refused, and cost its sender nothing (an invented nonce). */
export type Charge = 'plain' | 'failure' | 'junk'

/**
 * Makes the store's request.
 *
 * @param solved has the nonce to use up, and its puzzle, which the site may have changed since; without it, the request is only counted
 */
export function chargeOf(
  pricing: Pricing,
  visit: Visit,
  name: VisitorEndpointName,
  charge: Charge = 'plain',
  solved?: { readonly puzzle: PuzzleName; readonly spend: SolutionRequest['spend'] },
): SolutionRequest {
  const { addressKey, addressLimit, siteLimit, site, refusal } = visit
  const isJunk = charge === 'junk'
  return {
    addressKey: chargedKey(addressKey, refusal, isJunk),
    siteTag: site?.logTag ?? 0,
    addressLimit,
    siteLimit,
    metering: refusal === undefined && !isJunk ? meteringOf(pricing, visit, solved?.puzzle) : undefined,
    failOpen: site?.record.failOpen?.[name], // undefined leaves it to the service's setting
    failed: charge === 'failure',
    spend: solved?.spend,
  }
}

/** Requests that will be refused count in windows of their own: others at the address could send them to use up its visitors' limits. */
function chargedKey(addressKey: string, refusal: Refusal | undefined, isJunk: boolean): string {
  if (refusal !== undefined) return windowOfRefused(addressKey)
  return isJunk ? windowOfJunk(addressKey) : addressKey
}

/** In known networks and at private addresses, only the site's meter is asked for. Proofs of known networks and test sites do not count. */
function meteringOf(pricing: Pricing, visit: AllowedVisit, puzzle = visit.site.record.puzzle): Metering {
  const { site, address, isKnown, addressKey, tags } = visit
  const hasNetworks = !isKnown && !PRIVATE.has(address)
  const { owner, wide } = networkPricing(address, pricing).free
  const siteFreeProofs = siteFree(expectedOf(site), pricing)
  return {
    firstProofs: tags.firstProofNames,
    meters: hasNetworks
      ? [site.meterName, ...tags.networkMeters(address, addressKey, puzzle)]
      : [site.meterName],
    free: hasNetworks ? [siteFreeProofs, owner, wide] : [siteFreeProofs],
    counts: !isKnown && site.test === undefined,
  }
}

/** @param meters undefined if a worker's memory answered */
export function trafficAround(
  pricing: Pricing,
  { isKnown, address, site }: Pick<AllowedVisit, 'isKnown' | 'address' | 'site'>,
  meters: Meters | undefined,
): Traffic {
  if (meters === undefined) return { ...NO_TRAFFIC, isKnownNetwork: isKnown }
  return trafficOf(meters, networkPricing(address, pricing), expectedOf(site), isKnown, pricing)
}

/** The operator's estimate (`expected` in price.ts), in proofs of returning addresses a minute. */
function expectedOf({ record }: Site): number {
  return (record.usualRate ?? 0) * MINUTE_SECONDS
}

/** A known network's own limit stands in the headers under both names. */
function ownPolicies(known: number | undefined, site: number | undefined): PolicyList | undefined {
  if (site === undefined) return undefined
  return known === undefined ? { 'address-site': site } : { address: known, 'address-site': site }
}
