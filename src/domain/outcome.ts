/**
 * All expected refusals: for each private reason (logs and metrics), the public answer and how it is logged. Unexpected faults are
 * exceptions, answered as `internal`. Words for the operator are in words/refusals.ts.
 */

import type { Address } from '../addresses/address.ts'
import type { SiteverifyCode } from '../protocol/wire.ts'
import type { Policy } from './limits.ts'

interface Row {
  readonly as: {
    readonly status: 400 | 401 | 403 | 404 | 405 | 413 | 429 | 503
    /** Part of the stable interface. */
    readonly code: string
    readonly siteverify: SiteverifyCode
    readonly quota: RefusalQuota
  }
  readonly message: string
  /** Replaces a `message` that names the header or the fields of /verify-token. */
  readonly siteverifyMessage?: string
  /** /siteverify keeps this status, not 200: it is no verdict on a token. */
  readonly keepsStatus?: true
}

/** Each quota of log lines is separate, so a flood of one hides no other. `routine` is a broken client, logged at level debug. */
export type RefusalQuota =
  | 'limits'
  | 'sites'
  | 'bodies'
  | 'nonces'
  | 'tokens'
  | 'credentials'
  | 'outages'
  | 'routine'

/** Several reasons share a message, because clients must not tell them apart. */
const INVALID_NONCE = 'The nonce was not issued for this site.'
const INVALID_API_KEY =
  'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.'
const INVALID_SECRET = 'secret is not a valid API key of this service.'
const INVALID_TOKEN = 'The token is not valid.'
const TOKEN_USED = 'Token already used'
const UNAVAILABLE = 'The service is temporarily unavailable. Try again shortly.'

const TABLE = {
  'site-key-missing': {
    as: { status: 400, code: 'site-key-missing', siteverify: 'bad-request', quota: 'routine' },
    message: 'The X-Site-Key header is missing.',
  },
  'site-key-malformed': {
    as: { status: 400, code: 'site-key-malformed', siteverify: 'bad-request', quota: 'routine' },
    message: 'The X-Site-Key header is not a site key (site_ and 22 letters or digits).',
  },
  'site-unknown': {
    as: { status: 403, code: 'site-unknown', siteverify: 'bad-request', quota: 'sites' },
    message: 'The site key is not known.',
  },
  'site-inactive': {
    as: { status: 403, code: 'site-inactive', siteverify: 'bad-request', quota: 'sites' },
    message: 'The site is not active.',
  },
  'origin-refused': {
    as: { status: 403, code: 'origin-not-allowed', siteverify: 'bad-request', quota: 'sites' },
    message: 'The origin is not allowed for this site.',
  },

  'content-type': {
    as: { status: 400, code: 'content-type', siteverify: 'bad-request', quota: 'routine' },
    message: 'The Content-Type header must be application/json.',
    siteverifyMessage:
      'The Content-Type header must be application/x-www-form-urlencoded, application/json or multipart/form-data.',
  },
  'body-empty': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', quota: 'routine' },
    message: 'The body is empty; a JSON object is expected.',
  },
  'body-not-utf8': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', quota: 'routine' },
    message: 'The body is not UTF-8.',
  },
  'body-not-json': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', quota: 'routine' },
    message: 'The body is not JSON.',
  },
  'body-not-form': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', quota: 'routine' },
    message: 'The body is not a well-formed form.',
  },
  'body-shape': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', quota: 'routine' },
    message: 'A field of the body is missing or wrong.',
  },
  'body-too-large': {
    as: { status: 413, code: 'body-too-large', siteverify: 'bad-request', quota: 'bodies' },
    message: 'The body is too large.',
  },

  'nonce-forged': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', quota: 'nonces' },
    message: INVALID_NONCE,
  },
  'nonce-forgotten': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', quota: 'nonces' },
    message: INVALID_NONCE,
  },
  'nonce-from-future': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', quota: 'nonces' },
    message: INVALID_NONCE,
  },
  'nonce-expired': {
    as: { status: 400, code: 'expired-nonce', siteverify: 'bad-request', quota: 'nonces' },
    message: 'The nonce has expired. Request a new challenge.',
  },
  'nonce-underpriced': {
    as: { status: 400, code: 'expired-nonce', siteverify: 'bad-request', quota: 'nonces' },
    message: 'The nonce has expired. Request a new challenge.',
  },
  'nonce-used': {
    as: { status: 400, code: 'nonce-used', siteverify: 'bad-request', quota: 'nonces' },
    message: 'The nonce was already used. Request a new challenge.',
  },
  'nonce-other-address': {
    as: { status: 403, code: 'ip-mismatch', siteverify: 'bad-request', quota: 'nonces' },
    message: 'The challenge was requested from another IP address.',
  },

  'sent-by-page': {
    as: { status: 400, code: 'sent-by-page', siteverify: 'bad-request', quota: 'credentials' },
    message: 'A page in a browser sent this (Origin or Sec-Fetch-Site says so); only backends redeem tokens.',
    keepsStatus: true,
  },
  'credentials-missing': {
    as: {
      status: 401,
      code: 'missing-credentials',
      siteverify: 'missing-input-secret',
      quota: 'credentials',
    },
    message: 'The Authorization header is missing; Bearer and an API key are expected.',
    siteverifyMessage: 'secret is missing; an API key is expected.',
  },
  'credentials-malformed': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },
  'api-key-unknown': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },
  'api-key-wrong-secret': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },
  'api-key-revoked': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },
  'api-key-expired': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },
  'api-key-site-inactive': {
    as: {
      status: 401,
      code: 'invalid-credentials',
      siteverify: 'invalid-input-secret',
      quota: 'credentials',
    },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
  },

  'token-missing': {
    as: { status: 400, code: 'invalid-body', siteverify: 'missing-input-response', quota: 'routine' },
    message: 'The token is missing.',
    siteverifyMessage: 'response is missing; the token is expected.',
  },
  'expected-ip-malformed': {
    as: { status: 400, code: 'invalid-body', siteverify: 'invalid-remoteip', quota: 'routine' },
    message: 'The expected address is not an IPv4 or IPv6 address.',
    siteverifyMessage: 'remoteip is not an IPv4 or IPv6 address.',
  },
  'site-key-other-site': {
    as: { status: 400, code: 'site-mismatch', siteverify: 'sitekey-secret-mismatch', quota: 'credentials' },
    message: 'The site key is not that of the API key.',
    siteverifyMessage: 'sitekey is not that of the secret.',
  },
  'token-malformed': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', quota: 'tokens' },
    message: INVALID_TOKEN,
  },
  'token-forged': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', quota: 'tokens' },
    message: INVALID_TOKEN,
  },
  'token-from-future': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', quota: 'tokens' },
    message: INVALID_TOKEN,
  },
  'token-forgotten': {
    as: { status: 400, code: 'token-forgotten', siteverify: 'timeout-or-duplicate', quota: 'tokens' },
    message: 'The service has lost its record of this token. Ask the visitor to verify again.',
  },
  'token-expired': {
    as: { status: 400, code: 'token-expired', siteverify: 'timeout-or-duplicate', quota: 'tokens' },
    message: 'Token expired',
  },
  'token-other-site': {
    as: { status: 400, code: 'site-mismatch', siteverify: 'sitekey-secret-mismatch', quota: 'tokens' },
    message: 'Token site mismatch: the API key is of another site than the token',
  },
  'token-other-address': {
    as: { status: 400, code: 'ip-mismatch', siteverify: 'remoteip-mismatch', quota: 'tokens' },
    message: 'The token was issued to another IP address than expectedIp.',
    siteverifyMessage: 'The token was issued to another IP address than remoteip.',
  },
  'token-used': {
    as: { status: 400, code: 'token-used', siteverify: 'timeout-or-duplicate', quota: 'tokens' },
    message: TOKEN_USED,
  },
  'score-too-low': {
    as: { status: 400, code: 'score-too-low', siteverify: 'score-too-low', quota: 'tokens' },
    message: 'The score of the token is below the lowest that the site accepts.',
  },
  'test-key-fails': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', quota: 'routine' },
    message: INVALID_TOKEN,
  },
  'test-key-used': {
    as: { status: 400, code: 'token-used', siteverify: 'timeout-or-duplicate', quota: 'routine' },
    message: TOKEN_USED,
  },

  'rate-limited': {
    as: { status: 429, code: 'rate-limited', siteverify: 'rate-limited', quota: 'limits' },
    message: 'Too many requests. Wait, then try again.',
  },
  'store-unavailable': {
    as: { status: 503, code: 'unavailable', siteverify: 'internal-error', quota: 'outages' },
    message: UNAVAILABLE,
  },
  overloaded: {
    as: { status: 503, code: 'overloaded', siteverify: 'internal-error', quota: 'outages' },
    message: 'The service is overloaded. Try again shortly.',
  },
  internal: {
    as: { status: 503, code: 'unavailable', siteverify: 'internal-error', quota: 'outages' },
    message: UNAVAILABLE,
  },

  'not-found': {
    as: { status: 404, code: 'not-found', siteverify: 'bad-request', quota: 'routine' },
    message: 'There is no such path.',
  },
  'length-ambiguous': {
    as: { status: 400, code: 'ambiguous-length', siteverify: 'bad-request', quota: 'routine' },
    message:
      'Where the body ends is not clear: one Content-Length, or Transfer-Encoding: chunked, is expected.',
    keepsStatus: true,
  },
  'method-not-allowed': {
    as: { status: 405, code: 'method-not-allowed', siteverify: 'bad-request', quota: 'routine' },
    message: 'The path does not take this method; see the Allow header.',
  },
} satisfies Readonly<Record<string, Row>>

export type Reason = keyof typeof TABLE

type Outcome = Row['as'] & Omit<Row, 'as'>

export const OUTCOMES = Object.fromEntries(
  Object.entries<Row>(TABLE).map(([reason, { as, ...words }]) => [reason, { ...as, ...words }]),
) as Readonly<Record<Reason, Outcome>>

export interface Refusal {
  readonly reason: Reason
  readonly policy?: Policy
  /** Replaces the table's message. */
  readonly detail?: string
  readonly field?: string
  /** Only the log shows it. */
  readonly mismatch?: { readonly expected: Address; readonly visitor: Address }
}
