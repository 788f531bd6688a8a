/**
 * Makes the replies of refusals, with their bodies and headers, in the form of each endpoint. The endpoints write the bodies
 * of successes.
 */

import type { ErrorStyle } from '../domain/endpoint.ts'
import { OUTCOMES, type Reason, type Refusal } from '../domain/outcome.ts'
import type { Limited } from '../store/store.ts'

export type HeaderList = readonly (readonly [name: string, value: string])[]

/** The meaning of an answer: a refusal's reason, `failed` for a failed verification, `ok` otherwise. */
export type ReplyOutcome = Reason | 'ok' | 'failed'

export interface Reply {
  readonly status: number
  /** `ok` if absent. */
  readonly outcome?: ReplyOutcome
  /** JSON. */
  readonly body: string
  readonly headers: HeaderList
}

/** A file or a page. No headers are added to those given, which include Content-Type and Cache-Control. */
export interface ContentReply {
  readonly status: number
  /** With 304, only the length of the body is sent. */
  readonly body: Buffer | string
  readonly headers: HeaderList
}

export const NO_HEADERS: HeaderList = []

const UNAUTHORIZED_HEADERS: HeaderList = [['WWW-Authenticate', 'Bearer']]
const RETRY_UNAVAILABLE_SECONDS = 1

/** Not for `rate-limited`, `overloaded` and `store-unavailable`, which have more headers: see below. */
export function refusalReply(refusal: Refusal, style: ErrorStyle, headers: HeaderList = NO_HEADERS): Reply {
  if (style === 'siteverify') return siteverifyRefusal(refusal, headers)
  const { status, code, message } = OUTCOMES[refusal.reason]
  const error = refusal.detail ?? message
  const field = refusal.field === undefined ? {} : { field: refusal.field }
  const body = style === 'plain' ? { error, code, ...field } : { success: false, error, code, ...field }
  return {
    status,
    outcome: refusal.reason,
    body: JSON.stringify(body),
    headers: status === 401 ? [...UNAUTHORIZED_HEADERS, ...headers] : headers,
  }
}

function siteverifyRefusal({ reason, detail }: Refusal, headers: HeaderList): Reply {
  const body = {
    success: false,
    'error-codes': [siteverifyCode(reason)],
    messages: [detail ?? siteverifyMessage(reason)],
  }
  return { status: siteverifyStatus(reason), outcome: reason, body: JSON.stringify(body), headers }
}

/** The limits that an endpoint applies, as the RateLimit-Policy header lists them. */
export interface PolicyList {
  readonly [policy: string]: number
}

const WINDOW_SECONDS = 60

function policyHeader(policies: PolicyList): string {
  return Object.entries(policies)
    .map(([name, quota]) => `"${name}";q=${quota};w=${WINDOW_SECONDS}`)
    .join(', ')
}

export function limitedReply(limited: Limited, policies: PolicyList, style: ErrorStyle): Reply {
  // A client that waits this many whole seconds is admitted, so round up.
  const seconds = Math.max(1, Math.ceil(limited.retryAfterMs / 1000))
  return refusalReply({ reason: 'rate-limited' }, style, [
    ['Retry-After', String(seconds)],
    ['RateLimit-Policy', policyHeader(policies)],
    ['RateLimit', `"${limited.policy}";r=0;t=${seconds}`],
  ])
}

export function unavailableReply(
  policies: PolicyList,
  style: ErrorStyle,
  reason: Extract<Reason, 'store-unavailable' | 'overloaded' | 'internal'> = 'store-unavailable',
): Reply {
  return refusalReply({ reason }, style, [
    ['Retry-After', String(RETRY_UNAVAILABLE_SECONDS)],
    ['RateLimit-Policy', policyHeader(policies)],
    ['RateLimit', `"address";r=0;t=${RETRY_UNAVAILABLE_SECONDS}`],
  ])
}

/**
 * The `error-codes` of the large hosted CAPTCHAs, for POST /siteverify. The first seven are common to reCAPTCHA and Turnstile,
 * the next two are hCaptcha's. The last two are powgate's own, for cases that those services do not report or check.
 */
export const SITEVERIFY_CODES = [
  'missing-input-secret',
  'invalid-input-secret',
  'missing-input-response',
  'invalid-input-response',
  'timeout-or-duplicate',
  'bad-request',
  'internal-error',
  'sitekey-secret-mismatch',
  'invalid-remoteip',
  'remoteip-mismatch',
  'rate-limited',
] as const

export type SiteverifyCode = (typeof SITEVERIFY_CODES)[number]

const CODES: Partial<Readonly<Record<Reason, SiteverifyCode>>> = {
  'credentials-missing': 'missing-input-secret',
  'credentials-malformed': 'invalid-input-secret',
  'api-key-unknown': 'invalid-input-secret',
  'api-key-wrong-secret': 'invalid-input-secret',
  'api-key-revoked': 'invalid-input-secret',
  'api-key-expired': 'invalid-input-secret',
  'api-key-site-inactive': 'invalid-input-secret',
  'token-missing': 'missing-input-response',
  'token-malformed': 'invalid-input-response',
  'token-forged': 'invalid-input-response',
  'token-from-future': 'invalid-input-response',
  'token-forgotten': 'invalid-input-response',
  'test-key-fails': 'invalid-input-response',
  'token-expired': 'timeout-or-duplicate',
  'token-used': 'timeout-or-duplicate',
  'test-key-used': 'timeout-or-duplicate',
  'token-other-site': 'sitekey-secret-mismatch',
  'site-key-other-site': 'sitekey-secret-mismatch',
  'expected-ip-malformed': 'invalid-remoteip',
  'token-other-address': 'remoteip-mismatch',
  'rate-limited': 'rate-limited',
  'store-unavailable': 'internal-error',
  overloaded: 'internal-error',
  internal: 'internal-error',
}

/** Messages that replace those of the table of outcomes which name /verify-token's header and fields. */
const MESSAGES: Partial<Readonly<Record<Reason, string>>> = {
  'content-type':
    'The Content-Type header must be application/x-www-form-urlencoded, application/json or multipart/form-data.',
  'credentials-missing': 'secret is missing; an API key is expected.',
  'token-missing': 'response is missing; the token is expected.',
  'site-key-other-site': 'sitekey is not that of the secret.',
  'expected-ip-malformed': 'remoteip is not an IPv4 or IPv6 address.',
  'token-other-address': 'The token was issued to another IP address than remoteip.',
}

/** The code of a reason; `bad-request` if the table has none. */
export function siteverifyCode(reason: Reason): SiteverifyCode {
  return CODES[reason] ?? 'bad-request'
}

export function siteverifyMessage(reason: Reason): string {
  return MESSAGES[reason] ?? OUTCOMES[reason].message
}

/** The status of a refusal. The hosted services answer every verdict with 200; other refusals keep their status. */
export function siteverifyStatus(reason: Reason): number {
  const { status } = OUTCOMES[reason]
  const isVerdict =
    reason !== 'length-ambiguous' && reason !== 'sent-by-page' && (status === 400 || status === 401)
  return isVerdict ? 200 : status
}
