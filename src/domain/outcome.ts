/**
 * The table of all expected refusals. It maps a reason (private, for logs and metrics) to a public stable code, a status,
 * and a message for a person. Unexpected faults are exceptions, and are answered as `internal`.
 */

interface Outcome {
  readonly status: 400 | 401 | 403 | 404 | 405 | 413 | 429 | 503
  readonly code: string
  readonly message: string
}

const INVALID_NONCE = {
  status: 400,
  code: 'invalid-nonce',
  message: 'The nonce was not issued for this site.',
} as const
const INVALID_API_KEY = {
  status: 401,
  code: 'invalid-credentials',
  message: 'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.',
} as const
const INVALID_TOKEN = { status: 400, code: 'invalid-token', message: 'The token is not valid.' } as const
const TOKEN_USED = { status: 400, code: 'token-used', message: 'Token already used' } as const
const UNAVAILABLE = {
  status: 503,
  code: 'unavailable',
  message: 'The service is temporarily unavailable. Try again shortly.',
} as const

export const OUTCOMES = {
  'site-key-missing': { status: 400, code: 'site-key-missing', message: 'The X-Site-Key header is missing.' },
  'site-key-malformed': {
    status: 400,
    code: 'site-key-malformed',
    message: 'The X-Site-Key header is not a site key (site_ and 22 letters or digits).',
  },
  'site-unknown': { status: 403, code: 'site-unknown', message: 'The site key is not known.' },
  'site-inactive': { status: 403, code: 'site-inactive', message: 'The site is not active.' },
  'origin-refused': {
    status: 403,
    code: 'origin-not-allowed',
    message: 'The origin is not allowed for this site.',
  },

  'content-type': {
    status: 400,
    code: 'content-type',
    message: 'The Content-Type header must be application/json.',
  },
  'body-empty': {
    status: 400,
    code: 'invalid-body',
    message: 'The body is empty; a JSON object is expected.',
  },
  'body-not-utf8': { status: 400, code: 'invalid-body', message: 'The body is not UTF-8.' },
  'body-not-json': { status: 400, code: 'invalid-body', message: 'The body is not JSON.' },
  'body-not-form': { status: 400, code: 'invalid-body', message: 'The body is not a well-formed form.' },
  'body-shape': { status: 400, code: 'invalid-body', message: 'The body is not of the expected shape.' },
  'body-too-large': { status: 413, code: 'body-too-large', message: 'The body is too large.' },

  'nonce-forged': INVALID_NONCE,
  'nonce-from-future': INVALID_NONCE,
  'nonce-expired': {
    status: 400,
    code: 'expired-nonce',
    message: 'The nonce has expired. Request a new challenge.',
  },
  'nonce-used': {
    status: 400,
    code: 'nonce-used',
    message: 'The nonce was already used. Request a new challenge.',
  },
  'nonce-other-address': {
    status: 403,
    code: 'ip-mismatch',
    message: 'The challenge was requested from another IP address.',
  },

  'sent-by-page': {
    status: 400,
    code: 'sent-by-page',
    message: 'A page in a browser sent this (Origin or Sec-Fetch-Site says so); only backends redeem tokens.',
  },
  'credentials-missing': {
    status: 401,
    code: 'missing-credentials',
    message: 'The Authorization header is missing; Bearer and an API key are expected.',
  },
  'credentials-malformed': INVALID_API_KEY,
  'api-key-unknown': INVALID_API_KEY,
  'api-key-wrong-secret': INVALID_API_KEY,
  'api-key-revoked': INVALID_API_KEY,
  'api-key-expired': INVALID_API_KEY,
  'api-key-site-inactive': INVALID_API_KEY,

  'token-missing': { status: 400, code: 'invalid-body', message: 'The token is missing.' },
  'expected-ip-malformed': {
    status: 400,
    code: 'invalid-body',
    message: 'The expected address is not an IPv4 or IPv6 address.',
  },
  'site-key-other-site': {
    status: 400,
    code: 'site-mismatch',
    message: 'The site key is not that of the API key.',
  },
  'token-malformed': INVALID_TOKEN,
  'token-forged': INVALID_TOKEN,
  'token-from-future': INVALID_TOKEN,
  'token-forgotten': INVALID_TOKEN,
  'token-expired': { status: 400, code: 'token-expired', message: 'Token expired' },
  'token-other-site': { status: 400, code: 'site-mismatch', message: 'Token site mismatch' },
  'token-other-address': {
    status: 400,
    code: 'ip-mismatch',
    message: 'The token was issued to another IP address than expectedIp.',
  },
  'token-used': TOKEN_USED,
  'test-key-fails': INVALID_TOKEN,
  'test-key-used': TOKEN_USED,

  'rate-limited': { status: 429, code: 'rate-limited', message: 'Too many requests. Wait, then try again.' },
  'store-unavailable': UNAVAILABLE,
  overloaded: {
    status: 503,
    code: 'overloaded',
    message: 'The service has more requests than it can answer. Try again shortly.',
  },
  internal: UNAVAILABLE,

  'not-found': { status: 404, code: 'not-found', message: 'There is no such path.' },
  'length-ambiguous': {
    status: 400,
    code: 'ambiguous-length',
    message:
      'Where the body ends is not clear: one Content-Length, or Transfer-Encoding: chunked, is expected.',
  },
  'method-not-allowed': {
    status: 405,
    code: 'method-not-allowed',
    message: 'The path does not take this method; see the Allow header.',
  },
} as const satisfies Record<string, Outcome>

export type Reason = keyof typeof OUTCOMES

/** A refusal to be answered: the reason, and the wrong field of the body if there is one. */
export interface Refusal {
  readonly reason: Reason
  /** Describes the wrong field, for a person, in place of the table's message. */
  readonly detail?: string
  readonly field?: string
}
