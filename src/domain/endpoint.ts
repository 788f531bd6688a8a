/**
 * The facts of each endpoint that the whole service needs; routes.ts joins them with endpoints/, which does the work. The
 * dashboard's page imports this file, so it runs in browsers too.
 */

import type { Policy } from './limits.ts'
import type { SiteSettings } from './site-fields.ts'

/**
 * Under load `new` is refused first: a challenge or a file. `begun` is refused last: a solution or a token, for which a browser has
 * computed, or a script of the widget, for which no browser asks again.
 */
export type Work = 'new' | 'begun'

interface EndpointSpec {
  readonly method: 'get' | 'post'
  /** Decides what is shed first under load (http/overload.ts). */
  readonly work: Work
  /** The RateLimit-Policy header has them in this order. Endpoints with the same limits count requests together. */
  readonly limits: readonly EndpointLimit[]
  readonly errorStyle: ErrorStyle
  /** Pages of any origin may call it (CORS); if not, a preflight is a wrong method. */
  readonly isCrossOrigin: boolean
  /** The line of the dashboard's traffic in which an answer with 200 counts; `failed`, if the answer says `passed: false`. */
  readonly counts: { readonly ok: TrafficCount; readonly failed?: TrafficCount }
}

interface EndpointLimit {
  readonly policy: Policy
  readonly limit: keyof Limits
  /** The site's setting that replaces the service's limit, if any. Two policies with one setting (`redeem`) still count apart. */
  readonly siteSetting: keyof NonNullable<SiteSettings['limits']> | undefined
}

/** /verify-token and /siteverify always have a field `success`. */
export type ErrorStyle = 'plain' | 'redemption' | 'siteverify'

export type TrafficCount = 'challenges' | 'passed' | 'failed' | 'redeemed'

/** The service's limits, with their settings (docs/reference/contract.md, §8). */
export const LIMITS = {
  challengeAddress: row('POWGATE_LIMIT_CHALLENGE_ADDRESS', 60, '/challenge, per address'),
  challengeAddressSite: row('POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE', 30, '/challenge, per address and site'),
  verifyAddress: row('POWGATE_LIMIT_VERIFY_ADDRESS', 30, '/verify, per address'),
  verifyAddressSite: row('POWGATE_LIMIT_VERIFY_ADDRESS_SITE', 20, '/verify, per address and site'),
  redeemAddress: row(
    'POWGATE_LIMIT_REDEEM_ADDRESS',
    100,
    '/verify-token and /siteverify, per calling address',
  ),
  redeemApiKey: row('POWGATE_LIMIT_REDEEM_API_KEY', 200, '/verify-token and /siteverify, per API key'),
}

function row<Setting extends string>(setting: Setting, perMinute: number, about: string) {
  return { setting, perMinute, about }
}

/** Requests a minute that the service's settings allow, by the names in LIMITS. */
export type Limits = Readonly<Record<keyof typeof LIMITS, number>>

export function limitsOf(perMinuteOf: (row: (typeof LIMITS)[keyof Limits]) => number): Limits {
  return Object.fromEntries(Object.entries(LIMITS).map(([name, row]) => [name, perMinuteOf(row)])) as Limits
}

/** The defaults, which are the contract's. */
export const CONTRACT_LIMITS = limitsOf(({ perMinute }) => perMinute)

const REDEMPTION = {
  method: 'post',
  work: 'begun',
  limits: [
    { policy: 'address', limit: 'redeemAddress', siteSetting: 'redeem' },
    { policy: 'api-key', limit: 'redeemApiKey', siteSetting: 'redeem' },
  ],
  isCrossOrigin: false,
  counts: { ok: 'redeemed' },
} as const

export const ENDPOINTS = {
  challenge: {
    method: 'get',
    work: 'new',
    limits: [
      { policy: 'address', limit: 'challengeAddress', siteSetting: undefined },
      { policy: 'address-site', limit: 'challengeAddressSite', siteSetting: 'challenge' },
    ],
    errorStyle: 'plain',
    isCrossOrigin: true,
    counts: { ok: 'challenges' },
  },
  verify: {
    method: 'post',
    work: 'begun',
    limits: [
      { policy: 'address', limit: 'verifyAddress', siteSetting: undefined },
      { policy: 'address-site', limit: 'verifyAddressSite', siteSetting: 'verify' },
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
