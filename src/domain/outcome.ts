/**
 * The table of all expected refusals. It maps a reason (private, for logs and metrics) to a public stable code, a status,
 * and a message for a person. Unexpected faults are exceptions, and are answered as `internal`.
 */

interface Outcome {
  readonly status: 400 | 401 | 403 | 404 | 405 | 413 | 429 | 503
  readonly code: string
  readonly message: string
}

type Row = readonly [status: Outcome['status'], code: string, message: string]

const INVALID_NONCE: Row = [400, 'invalid-nonce', 'The nonce was not issued for this site.']
const INVALID_API_KEY: Row = [
  401,
  'invalid-credentials',
  'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.',
]
const INVALID_TOKEN: Row = [400, 'invalid-token', 'The token is not valid.']
const TOKEN_USED: Row = [400, 'token-used', 'Token already used']
const UNAVAILABLE: Row = [503, 'unavailable', 'The service is temporarily unavailable. Try again shortly.']

const TABLE = {
  'site-key-missing': [400, 'site-key-missing', 'The X-Site-Key header is missing.'],
  'site-key-malformed': [
    400,
    'site-key-malformed',
    'The X-Site-Key header is not a site key (site_ and 22 letters or digits).',
  ],
  'site-unknown': [403, 'site-unknown', 'The site key is not known.'],
  'site-inactive': [403, 'site-inactive', 'The site is not active.'],
  'origin-refused': [403, 'origin-not-allowed', 'The origin is not allowed for this site.'],

  'content-type': [400, 'content-type', 'The Content-Type header must be application/json.'],
  'body-empty': [400, 'invalid-body', 'The body is empty; a JSON object is expected.'],
  'body-not-utf8': [400, 'invalid-body', 'The body is not UTF-8.'],
  'body-not-json': [400, 'invalid-body', 'The body is not JSON.'],
  'body-not-form': [400, 'invalid-body', 'The body is not a well-formed form.'],
  'body-shape': [400, 'invalid-body', 'The body is not of the expected shape.'],
  'body-too-large': [413, 'body-too-large', 'The body is too large.'],

  'nonce-forged': INVALID_NONCE,
  'nonce-from-future': INVALID_NONCE,
  'nonce-expired': [400, 'expired-nonce', 'The nonce has expired. Request a new challenge.'],
  'nonce-used': [400, 'nonce-used', 'The nonce was already used. Request a new challenge.'],
  'nonce-other-address': [403, 'ip-mismatch', 'The challenge was requested from another IP address.'],

  'sent-by-page': [
    400,
    'sent-by-page',
    'A page in a browser sent this (Origin or Sec-Fetch-Site says so); only backends redeem tokens.',
  ],
  'credentials-missing': [
    401,
    'missing-credentials',
    'The Authorization header is missing; Bearer and an API key are expected.',
  ],
  'credentials-malformed': INVALID_API_KEY,
  'api-key-unknown': INVALID_API_KEY,
  'api-key-wrong-secret': INVALID_API_KEY,
  'api-key-revoked': INVALID_API_KEY,
  'api-key-expired': INVALID_API_KEY,
  'api-key-site-inactive': INVALID_API_KEY,

  'token-missing': [400, 'invalid-body', 'The token is missing.'],
  'expected-ip-malformed': [400, 'invalid-body', 'The expected address is not an IPv4 or IPv6 address.'],
  'site-key-other-site': [400, 'site-mismatch', 'The site key is not that of the API key.'],
  'token-malformed': INVALID_TOKEN,
  'token-forged': INVALID_TOKEN,
  'token-from-future': INVALID_TOKEN,
  'token-forgotten': INVALID_TOKEN,
  'token-expired': [400, 'token-expired', 'Token expired'],
  'token-other-site': [400, 'site-mismatch', 'Token site mismatch'],
  'token-other-address': [400, 'ip-mismatch', 'The token was issued to another IP address than expectedIp.'],
  'token-used': TOKEN_USED,
  'test-key-fails': INVALID_TOKEN,
  'test-key-used': TOKEN_USED,

  'rate-limited': [429, 'rate-limited', 'Too many requests. Wait, then try again.'],
  'store-unavailable': UNAVAILABLE,
  overloaded: [503, 'overloaded', 'The service has more requests than it can answer. Try again shortly.'],
  internal: UNAVAILABLE,

  'not-found': [404, 'not-found', 'There is no such path.'],
  'length-ambiguous': [
    400,
    'ambiguous-length',
    'Where the body ends is not clear: one Content-Length, or Transfer-Encoding: chunked, is expected.',
  ],
  'method-not-allowed': [
    405,
    'method-not-allowed',
    'The path does not take this method; see the Allow header.',
  ],
} satisfies Record<string, Row>

export type Reason = keyof typeof TABLE

export const OUTCOMES = Object.fromEntries(
  Object.entries<Row>(TABLE).map(([reason, [status, code, message]]) => [reason, { status, code, message }]),
) as Readonly<Record<Reason, Outcome>>

/** A refusal to be answered: the reason, and the wrong field of the body if there is one. */
export interface Refusal {
  readonly reason: Reason
  /** Describes the wrong field, for a person, in place of the table's message. */
  readonly detail?: string
  readonly field?: string
}
