/**
 * The endpoints: what the rest of the service has to know of each one. A file in endpoints/ says what an endpoint does, and
 * routes.ts binds the two. The dashboard's page reads this table too, so this file runs in browsers.
 */

import type { Policy } from './limits.ts'
import type { WorkKind } from './overload.ts'
import type { SiteSettings } from './site-fields.ts'

/** The path of an endpoint is its name. */
interface EndpointSpec {
  readonly method: 'get' | 'post'
  /** What a worker with too many requests sheds first: see overload.ts. */
  readonly work: WorkKind
  /** In the order of the RateLimit-Policy header. Endpoints with the same limits count in the same windows. */
  readonly limits: readonly EndpointLimit[]
  readonly errorStyle: ErrorStyle
  /** Whether pages of any origin may call it (CORS). If not, a preflight is answered as a wrong method. */
  readonly isCrossOrigin: boolean
  /** What its answers of status 200 count as in the traffic, by their outcome; null: nothing. */
  readonly counts: { readonly ok: TrafficCount | null; readonly failed?: TrafficCount }
}

interface EndpointLimit {
  readonly policy: Policy
  /** The limit of the settings, in windows of a minute. */
  readonly limit: keyof Limits
  /** The limit of a site that replaces it; undefined if it counts over all sites together. */
  readonly ofSite: keyof NonNullable<SiteSettings['limits']> | undefined
}

/** The form of an endpoint's errors: /verify-token and /siteverify have a field `success` in every answer. */
export type ErrorStyle = 'plain' | 'redemption' | 'siteverify'

/** What the dashboard shows of a visit's way. */
export type TrafficCount = 'challenges' | 'passed' | 'failed' | 'redeemed'

/** Contract §8. */
export const LIMITS = {
  challengeAddress: limit('POWGATE_LIMIT_CHALLENGE_ADDRESS', 60, '/challenge, per address'),
  challengeAddressSite: limit('POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE', 30, '/challenge, per address and site'),
  verifyAddress: limit('POWGATE_LIMIT_VERIFY_ADDRESS', 30, '/verify, per address'),
  verifyAddressSite: limit('POWGATE_LIMIT_VERIFY_ADDRESS_SITE', 20, '/verify, per address and site'),
  redeemAddress: limit(
    'POWGATE_LIMIT_REDEEM_ADDRESS',
    100,
    '/verify-token and /siteverify, per calling address',
  ),
  redeemApiKey: limit('POWGATE_LIMIT_REDEEM_API_KEY', 200, '/verify-token and /siteverify, per API key'),
}

/** @param perMinute requests a minute, unless the setting says otherwise */
function limit<Setting extends string>(setting: Setting, perMinute: number, counts: string) {
  return { setting, perMinute, counts }
}

/** In requests per minute. */
export type Limits = Readonly<Record<keyof typeof LIMITS, number>>

/** @param of gives the limit of a row of the table */
export function limitsOf(of: (row: (typeof LIMITS)[keyof Limits]) => number): Limits {
  return Object.fromEntries(Object.entries(LIMITS).map(([name, row]) => [name, of(row)])) as Limits
}

export const CONTRACT_LIMITS = limitsOf(({ perMinute }) => perMinute)

const REDEMPTION = {
  method: 'post',
  work: 'begun',
  limits: [
    { policy: 'address', limit: 'redeemAddress', ofSite: 'redeem' },
    { policy: 'api-key', limit: 'redeemApiKey', ofSite: 'redeem' },
  ],
  isCrossOrigin: false,
  counts: { ok: 'redeemed' },
} as const

export const ENDPOINTS = {
  challenge: {
    method: 'get',
    work: 'new',
    limits: [
      { policy: 'address', limit: 'challengeAddress', ofSite: undefined },
      { policy: 'address-site', limit: 'challengeAddressSite', ofSite: 'challenge' },
    ],
    errorStyle: 'plain',
    isCrossOrigin: true,
    counts: { ok: 'challenges' },
  },
  verify: {
    method: 'post',
    work: 'begun',
    limits: [
      { policy: 'address', limit: 'verifyAddress', ofSite: undefined },
      { policy: 'address-site', limit: 'verifyAddressSite', ofSite: 'verify' },
    ],
    errorStyle: 'plain',
    isCrossOrigin: true,
    counts: { ok: 'passed', failed: 'failed' },
  },
  'verify-token': { ...REDEMPTION, errorStyle: 'redemption' },
  siteverify: { ...REDEMPTION, errorStyle: 'siteverify' },
} as const satisfies Readonly<Record<string, EndpointSpec>>

export type EndpointName = keyof typeof ENDPOINTS

export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as readonly EndpointName[]
