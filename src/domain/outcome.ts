/**
 * All expected refusals: for each private reason (logs and metrics), the public answer and how it is logged. Unexpected faults are
 * exceptions, answered as `internal`. Words for the operator are in words/refusals.ts.
 */

import type { Address } from '../addresses/address.ts'
import type { Policy } from './limits.ts'

interface Outcome {
  readonly status: 400 | 401 | 403 | 404 | 405 | 413 | 429 | 503
  /** Part of the stable interface. */
  readonly code: string
  readonly category: RefusalCategory
  readonly message: string
  /** One of `error-codes` of /siteverify. */
  readonly siteverifyCode: string
  /** Replaces `message` at /siteverify, where that names a header or field of /verify-token. */
  readonly siteverifyMessage?: string
  /** /siteverify answers other refusals of 400 and 401 with 200, as hosted CAPTCHAs do. */
  readonly keepsStatus?: true
}

/** Each has its own quota of log lines, so a flood of one hides no other. `routine` is a broken client, logged at level debug. */
export type RefusalCategory =
  | 'limits'
  | 'sites'
  | 'bodies'
  | 'nonces'
  | 'tokens'
  | 'credentials'
  | 'outages'
  | 'routine'

/** @param onSiteverify what differs at /siteverify, whose code is `bad-request` unless given */
function row(
  status: Outcome['status'],
  code: string,
  category: RefusalCategory,
  message: string,
  onSiteverify: Partial<Outcome> = {},
): Outcome {
  return { status, code, category, message, siteverifyCode: 'bad-request', ...onSiteverify }
}

const wrongBody = (message: string, onSiteverify?: Partial<Outcome>) =>
  row(400, 'invalid-body', 'routine', message, onSiteverify)
const refusedToken = (code: string, siteverifyCode: string, message: string, siteverifyMessage?: string) =>
  row(400, code, 'tokens', message, { siteverifyCode, ...(siteverifyMessage && { siteverifyMessage }) })

// Reasons that clients must not tell apart share an answer.

const INVALID_NONCE = row(400, 'invalid-nonce', 'nonces', 'The nonce was not issued for this site.')
const EXPIRED_NONCE = row(400, 'expired-nonce', 'nonces', 'The nonce has expired. Request a new challenge.')
const INVALID_API_KEY = row(
  401,
  'invalid-credentials',
  'credentials',
  'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.',
  {
    siteverifyCode: 'invalid-input-secret',
    siteverifyMessage: 'secret is not a valid API key of this service.',
  },
)
const INVALID_TOKEN = refusedToken('invalid-token', 'invalid-input-response', 'The token is not valid.')
// The contract has the texts that end without a full stop.
const TOKEN_USED = refusedToken('token-used', 'timeout-or-duplicate', 'Token already used')
const UNAVAILABLE = row(
  503,
  'unavailable',
  'outages',
  'The service is temporarily unavailable. Try again shortly.',
  { siteverifyCode: 'internal-error' },
)

const TABLE = {
  'site-key-missing': row(400, 'site-key-missing', 'routine', 'The X-Site-Key header is missing.'),
  'site-key-malformed': row(
    400,
    'site-key-malformed',
    'routine',
    'The X-Site-Key header is not a site key (site_ and 22 letters or digits).',
  ),
  'site-unknown': row(403, 'site-unknown', 'sites', 'The site key is not known.'),
  'site-inactive': row(403, 'site-inactive', 'sites', 'The site is not active.'),
  'origin-refused': row(403, 'origin-not-allowed', 'sites', 'The origin is not allowed for this site.'),

  'content-type': row(400, 'content-type', 'routine', 'The Content-Type header must be application/json.', {
    siteverifyMessage:
      'The Content-Type header must be application/x-www-form-urlencoded, application/json or multipart/form-data.',
  }),
  'body-empty': wrongBody('The body is empty; a JSON object is expected.'),
  'body-not-utf8': wrongBody('The body is not UTF-8.'),
  'body-not-json': wrongBody('The body is not JSON.'),
  'body-not-form': wrongBody('The body is not a well-formed form.'),
  'body-shape': wrongBody('A field of the body is missing or wrong.'),
  'body-too-large': row(413, 'body-too-large', 'bodies', 'The body is too large.'),

  'nonce-forged': INVALID_NONCE,
  'nonce-forgotten': INVALID_NONCE,
  'nonce-from-future': INVALID_NONCE,
  'nonce-expired': EXPIRED_NONCE,
  'nonce-underpriced': EXPIRED_NONCE,
  'nonce-used': row(400, 'nonce-used', 'nonces', 'The nonce was already used. Request a new challenge.'),
  'nonce-other-address': row(
    403,
    'ip-mismatch',
    'nonces',
    'The challenge was requested from another IP address.',
  ),

  'sent-by-page': row(
    400,
    'sent-by-page',
    'credentials',
    'A page in a browser sent this (Origin or Sec-Fetch-Site says so); only backends redeem tokens.',
    { keepsStatus: true },
  ),
  'credentials-missing': row(
    401,
    'missing-credentials',
    'credentials',
    'The Authorization header is missing; Bearer and an API key are expected.',
    {
      siteverifyCode: 'missing-input-secret',
      siteverifyMessage: 'secret is missing; an API key is expected.',
    },
  ),
  'credentials-malformed': INVALID_API_KEY,
  'api-key-unknown': INVALID_API_KEY,
  'api-key-wrong-secret': INVALID_API_KEY,
  'api-key-revoked': INVALID_API_KEY,
  'api-key-expired': INVALID_API_KEY,
  'api-key-site-inactive': INVALID_API_KEY,

  'token-missing': wrongBody('The token is missing.', {
    siteverifyCode: 'missing-input-response',
    siteverifyMessage: 'response is missing; the token is expected.',
  }),
  'expected-ip-malformed': wrongBody('expectedIp is not an IPv4 or IPv6 address.', {
    siteverifyCode: 'invalid-remoteip',
    siteverifyMessage: 'remoteip is not an IPv4 or IPv6 address.',
  }),
  'site-key-other-site': row(
    400,
    'site-mismatch',
    'credentials',
    'The site key is not that of the API key.',
    { siteverifyCode: 'sitekey-secret-mismatch', siteverifyMessage: 'sitekey is not that of the secret.' },
  ),
  'token-malformed': INVALID_TOKEN,
  'token-forged': INVALID_TOKEN,
  'token-from-future': INVALID_TOKEN,
  'token-forgotten': refusedToken(
    'token-forgotten',
    'timeout-or-duplicate',
    'The service has lost its record of this token. Ask the visitor to verify again.',
  ),
  'token-expired': refusedToken('token-expired', 'timeout-or-duplicate', 'Token expired'),
  'token-other-site': refusedToken(
    'site-mismatch',
    'sitekey-secret-mismatch',
    'Token site mismatch: the API key is of another site than the token',
  ),
  'token-other-address': refusedToken(
    'ip-mismatch',
    'remoteip-mismatch',
    'The token was issued to another IP address than expectedIp.',
    'The token was issued to another IP address than remoteip.',
  ),
  'token-used': TOKEN_USED,
  'score-too-low': refusedToken(
    'score-too-low',
    'score-too-low',
    'The score of the token is below the lowest that the site accepts.',
  ),
  'test-key-fails': { ...INVALID_TOKEN, category: 'routine' },
  'test-key-used': { ...TOKEN_USED, category: 'routine' },

  'rate-limited': row(429, 'rate-limited', 'limits', 'Too many requests. Wait, then try again.', {
    siteverifyCode: 'rate-limited',
  }),
  'store-unavailable': UNAVAILABLE,
  internal: UNAVAILABLE,
  overloaded: row(503, 'overloaded', 'outages', 'The service is overloaded. Try again shortly.', {
    siteverifyCode: 'internal-error',
  }),

  'not-found': row(404, 'not-found', 'routine', 'There is no such path.'),
  'length-ambiguous': row(
    400,
    'ambiguous-length',
    'routine',
    'Where the body ends is not clear: one Content-Length, or Transfer-Encoding: chunked, is expected.',
    { keepsStatus: true },
  ),
  'method-not-allowed': row(
    405,
    'method-not-allowed',
    'routine',
    'The path does not take this method; see the Allow header.',
  ),
} satisfies Readonly<Record<string, Outcome>>

export type Reason = keyof typeof TABLE

export const OUTCOMES: Readonly<Record<Reason, Outcome>> = TABLE

export interface Refusal {
  readonly reason: Reason
  /** The limit that refused, with `rate-limited`. */
  readonly policy?: Policy
  /** True if that limit is the one of junk. */
  readonly isJunk?: boolean
  /** Replaces the table's message. */
  readonly detail?: string | undefined
  /** The field of the body that is wrong. */
  readonly field?: string
  /** Only the log shows it. */
  readonly mismatch?: { readonly expected: Address; readonly visitor: Address }
}
