/**
 * All expected refusals: for each private reason (logs and metrics), the public answer, words for the operator, and how it is
 * logged. Unexpected faults are exceptions, answered as `internal`. Also runs in browsers, in the dashboard's page.
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
    readonly kind: RefusalKind
  }
  readonly message: string
  /** If `message` names the header or fields of /verify-token. */
  readonly siteverifyMessage?: string
  /** /siteverify keeps this status, not 200: it is no verdict on a token. */
  readonly keepsStatus?: true
  /** For the operator. */
  readonly meaning: string
  readonly advice: string | undefined
}

/** Each has its own log quota, so a flood of one hides no other. `routine` is a broken client, no attack: level debug. */
export type RefusalKind =
  | 'limits'
  | 'sites'
  | 'bodies'
  | 'nonces'
  | 'tokens'
  | 'credentials'
  | 'outages'
  | 'routine'

/** Shared by reasons that clients must not tell apart. */
const INVALID_NONCE = 'The nonce was not issued for this site.'
const INVALID_API_KEY =
  'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.'
const INVALID_SECRET = 'secret is not a valid API key of this service.'
const INVALID_TOKEN = 'The token is not valid.'
const TOKEN_USED = 'Token already used'
const UNAVAILABLE = 'The service is temporarily unavailable. Try again shortly.'

const CLIENT = 'The client that sends this is broken, outdated, or not the widget.'
const BACKEND = 'Fix the backend that sends this.'
const PAGE = 'A page has a mistake, or somebody probes.'
const CLOCKS = 'The clocks of the hosts differ by more than 5 s: check NTP.'
const ENABLE = 'To enable the site: powgate site enable SITE_KEY.'
const TEST_KEY = 'Give a backend in production an API key of its own.'
const MASTER_SECRETS =
  'If it happens to many: do all hosts have the same POWGATE_SECRETS, and was a secret removed that had signed?'

const TABLE = {
  'site-key-missing': {
    as: { status: 400, code: 'site-key-missing', siteverify: 'bad-request', kind: 'routine' },
    message: 'The X-Site-Key header is missing.',
    meaning: 'The request has no X-Site-Key header.',
    advice: PAGE,
  },
  'site-key-malformed': {
    as: { status: 400, code: 'site-key-malformed', siteverify: 'bad-request', kind: 'routine' },
    message: 'The X-Site-Key header is not a site key (site_ and 22 letters or digits).',
    meaning: 'The X-Site-Key header is not a site key.',
    advice: PAGE,
  },
  'site-unknown': {
    as: { status: 403, code: 'site-unknown', siteverify: 'bad-request', kind: 'sites' },
    message: 'The site key is not known.',
    meaning: 'No site has this key.',
    advice: 'Compare the page with powgate site list: a key of another installation, or a deleted store?',
  },
  'site-inactive': {
    as: { status: 403, code: 'site-inactive', siteverify: 'bad-request', kind: 'sites' },
    message: 'The site is not active.',
    meaning: 'The site is disabled.',
    advice: ENABLE,
  },
  'origin-refused': {
    as: { status: 403, code: 'origin-not-allowed', siteverify: 'bad-request', kind: 'sites' },
    message: 'The origin is not allowed for this site.',
    meaning: 'The site does not allow the origin of the page, or requires an origin and got none.',
    advice:
      'If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with every origin that you want to allow.',
  },

  'content-type': {
    as: { status: 400, code: 'content-type', siteverify: 'bad-request', kind: 'routine' },
    message: 'The Content-Type header must be application/json.',
    siteverifyMessage:
      'The Content-Type header must be application/x-www-form-urlencoded, application/json or multipart/form-data.',
    meaning: 'The Content-Type header names no type that the path takes.',
    advice: CLIENT,
  },
  'body-empty': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', kind: 'routine' },
    message: 'The body is empty; a JSON object is expected.',
    meaning: 'The body is empty.',
    advice: CLIENT,
  },
  'body-not-utf8': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', kind: 'routine' },
    message: 'The body is not UTF-8.',
    meaning: 'The body is not UTF-8.',
    advice: CLIENT,
  },
  'body-not-json': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', kind: 'routine' },
    message: 'The body is not JSON.',
    meaning: 'The body is not JSON.',
    advice: CLIENT,
  },
  'body-not-form': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', kind: 'routine' },
    message: 'The body is not a well-formed form.',
    meaning: 'The body is not a well-formed form.',
    advice: BACKEND,
  },
  'body-shape': {
    as: { status: 400, code: 'invalid-body', siteverify: 'bad-request', kind: 'routine' },
    message: 'A field of the body is missing or wrong.',
    meaning: 'A field of the body is missing or wrong; the answer named it.',
    advice: CLIENT,
  },
  'body-too-large': {
    as: { status: 413, code: 'body-too-large', siteverify: 'bad-request', kind: 'bodies' },
    message: 'The body is too large.',
    meaning: 'The body is longer than POWGATE_BODY_MAX_BYTES.',
    advice: 'Honest bodies are below 1 KiB.',
  },

  'nonce-forged': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', kind: 'nonces' },
    message: INVALID_NONCE,
    meaning:
      'The nonce was never issued for this site, or under other lifetimes than those set now, or by a version of powgate with another form of nonces; or the worker was started after the store lost its memory.',
    advice: MASTER_SECRETS,
  },
  'nonce-forgotten': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', kind: 'nonces' },
    message: INVALID_NONCE,
    meaning: 'The store lost its memory after the challenge was issued, so its use cannot be ruled out.',
    advice: 'Normal around a restart or a failover of the store: the widget asks for a new challenge.',
  },
  'nonce-from-future': {
    as: { status: 400, code: 'invalid-nonce', siteverify: 'bad-request', kind: 'nonces' },
    message: INVALID_NONCE,
    meaning: 'The challenge was issued in the future.',
    advice: CLOCKS,
  },
  'nonce-expired': {
    as: { status: 400, code: 'expired-nonce', siteverify: 'bad-request', kind: 'nonces' },
    message: 'The nonce has expired. Request a new challenge.',
    meaning: 'The solution came after the challenge had expired.',
    advice: 'A slow device, or a laptop that slept. If it happens to many: raise POWGATE_CHALLENGE_SECONDS.',
  },
  'nonce-underpriced': {
    as: { status: 400, code: 'expired-nonce', siteverify: 'bad-request', kind: 'nonces' },
    message: 'The nonce has expired. Request a new challenge.',
    meaning:
      'The challenge was issued before an attack or a raise made challenges of its network over 3 bits harder, or of its site over 1.',
    advice:
      'The widget asks for a new challenge by itself. Many of these mean that somebody collected challenges for an attack.',
  },
  'nonce-used': {
    as: { status: 400, code: 'nonce-used', siteverify: 'bad-request', kind: 'nonces' },
    message: 'The nonce was already used. Request a new challenge.',
    meaning: 'The solution was submitted before: a retry of the client, or a replay.',
    advice: 'The widget asks for a new challenge by itself.',
  },
  'nonce-other-address': {
    as: { status: 403, code: 'ip-mismatch', siteverify: 'bad-request', kind: 'nonces' },
    message: 'The challenge was requested from another IP address.',
    meaning: 'The challenge was requested from another address than the solution came from.',
    advice:
      'A phone that changed networks, or a solver farm. If it happens to many: does POWGATE_TRUSTED_PROXIES name every proxy?',
  },

  'sent-by-page': {
    as: { status: 400, code: 'sent-by-page', siteverify: 'bad-request', kind: 'credentials' },
    message: 'A page in a browser sent this (Origin or Sec-Fetch-Site says so); only backends redeem tokens.',
    keepsStatus: true,
    meaning: 'A page in a browser tried to redeem a token, which only a backend may.',
    advice: 'The API key must not be in a page. If a backend sends Origin, leave it out.',
  },
  'credentials-missing': {
    as: { status: 401, code: 'missing-credentials', siteverify: 'missing-input-secret', kind: 'credentials' },
    message: 'The Authorization header is missing; Bearer and an API key are expected.',
    siteverifyMessage: 'secret is missing; an API key is expected.',
    meaning: 'The backend sent no API key.',
    advice: 'It must send the header Authorization: Bearer with the key (to /siteverify, the field secret).',
  },
  'credentials-malformed': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'What the backend sent as its API key does not look like one.',
    advice: 'Often a missing "Bearer", quotes, or a key cut short.',
  },
  'api-key-unknown': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'No API key has this id.',
    advice: 'Compare with powgate key list: a key of another installation?',
  },
  'api-key-wrong-secret': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'The id of the API key is right, its secret is not.',
    advice: 'The key was cut or changed, or somebody guesses.',
  },
  'api-key-revoked': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'The API key was revoked.',
    advice: 'Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  },
  'api-key-expired': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'The API key has expired.',
    advice:
      'Create another: powgate key create SITE_KEY. Or let this one live longer: powgate key update KEY_ID --expires 90d.',
  },
  'api-key-site-inactive': {
    as: { status: 401, code: 'invalid-credentials', siteverify: 'invalid-input-secret', kind: 'credentials' },
    message: INVALID_API_KEY,
    siteverifyMessage: INVALID_SECRET,
    meaning: 'The site of the API key is disabled.',
    advice: ENABLE,
  },

  'token-missing': {
    as: { status: 400, code: 'invalid-body', siteverify: 'missing-input-response', kind: 'routine' },
    message: 'The token is missing.',
    siteverifyMessage: 'response is missing; the token is expected.',
    meaning: 'The call to /siteverify has no field response: the form had no token.',
    advice: BACKEND,
  },
  'expected-ip-malformed': {
    as: { status: 400, code: 'invalid-body', siteverify: 'invalid-remoteip', kind: 'routine' },
    message: 'The expected address is not an IPv4 or IPv6 address.',
    siteverifyMessage: 'remoteip is not an IPv4 or IPv6 address.',
    meaning: 'The field remoteip is not an address.',
    advice: BACKEND,
  },
  'site-key-other-site': {
    as: { status: 400, code: 'site-mismatch', siteverify: 'sitekey-secret-mismatch', kind: 'credentials' },
    message: 'The site key is not that of the API key.',
    siteverifyMessage: 'sitekey is not that of the secret.',
    meaning: 'The field sitekey names another site than the API key belongs to.',
    advice: BACKEND,
  },
  'token-malformed': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', kind: 'tokens' },
    message: INVALID_TOKEN,
    meaning:
      'What the backend sent is no token: a bot filled the field in, or the text was changed on its way.',
    advice: 'Is the whole field passed on, with its | characters, decoded once?',
  },
  'token-forged': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', kind: 'tokens' },
    message: INVALID_TOKEN,
    meaning: 'The token was not signed with a master secret of this service, or was changed.',
    advice: MASTER_SECRETS,
  },
  'token-from-future': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', kind: 'tokens' },
    message: INVALID_TOKEN,
    meaning: 'The token was issued in the future.',
    advice: CLOCKS,
  },
  'token-forgotten': {
    as: { status: 400, code: 'token-forgotten', siteverify: 'timeout-or-duplicate', kind: 'tokens' },
    message: 'The service has lost its record of this token. Ask the visitor to verify again.',
    meaning: 'The store lost its memory after the token was issued, so its use cannot be ruled out.',
    advice:
      'Normal around a restart, a failover or a clock that was set: show the form again, with what was typed.',
  },
  'token-expired': {
    as: { status: 400, code: 'token-expired', siteverify: 'timeout-or-duplicate', kind: 'tokens' },
    message: 'Token expired',
    meaning: 'The token was redeemed too late: the form was open for long.',
    advice: 'The widget renews tokens; redeem when the form arrives, not later.',
  },
  'token-other-site': {
    as: { status: 400, code: 'site-mismatch', siteverify: 'sitekey-secret-mismatch', kind: 'tokens' },
    message: 'Token site mismatch: the API key is of another site than the token',
    meaning: 'The token is for another site than the API key.',
    advice: 'The backend uses the API key of another of its sites.',
  },
  'token-other-address': {
    as: { status: 400, code: 'ip-mismatch', siteverify: 'remoteip-mismatch', kind: 'tokens' },
    message: 'The token was issued to another IP address than expectedIp.',
    siteverifyMessage: 'The token was issued to another IP address than remoteip.',
    meaning: 'The address that the backend expects is not the one that solved the challenge.',
    advice: "Does a backend behind a proxy send its visitor's address, not its proxy's? Both IPv4 or IPv6?",
  },
  'token-used': {
    as: { status: 400, code: 'token-used', siteverify: 'timeout-or-duplicate', kind: 'tokens' },
    message: TOKEN_USED,
    meaning: 'The token was redeemed before.',
    advice: 'A form sent twice, or a replay. A backend that retries sends an idempotencyKey.',
  },
  'score-too-low': {
    as: { status: 400, code: 'score-too-low', siteverify: 'score-too-low', kind: 'tokens' },
    message: 'The score of the token is below the lowest that the site accepts.',
    meaning: 'The token was right, but its score is below the min-score of the site. The token is used up.',
    advice: 'A bot, or a browser like one: its verification, before this, tells the signals and the score.',
  },
  'test-key-fails': {
    as: { status: 400, code: 'invalid-token', siteverify: 'invalid-input-response', kind: 'routine' },
    message: INVALID_TOKEN,
    meaning: 'The API key is the published one that always fails.',
    advice: TEST_KEY,
  },
  'test-key-used': {
    as: { status: 400, code: 'token-used', siteverify: 'timeout-or-duplicate', kind: 'routine' },
    message: TOKEN_USED,
    meaning: 'The API key is the published one for which every token is used.',
    advice: TEST_KEY,
  },

  'rate-limited': {
    as: { status: 429, code: 'rate-limited', siteverify: 'rate-limited', kind: 'limits' },
    message: 'Too many requests. Wait, then try again.',
    meaning: 'More requests came within a minute than the limit allows.',
    advice: undefined,
  },
  'store-unavailable': {
    as: { status: 503, code: 'unavailable', siteverify: 'internal-error', kind: 'outages' },
    message: UNAVAILABLE,
    meaning: 'The store did not answer in time, or did not know what the answer depends on.',
    advice: 'Look for "the store does not answer" in the log around this time, and at the store itself.',
  },
  overloaded: {
    as: { status: 503, code: 'overloaded', siteverify: 'internal-error', kind: 'outages' },
    message: 'The service is overloaded. Try again shortly.',
    meaning: 'More requests came than the worker could answer.',
    advice: 'Are there too few workers or hosts, or is it a flood? The log has "shedding load".',
  },
  internal: {
    as: { status: 503, code: 'unavailable', siteverify: 'internal-error', kind: 'outages' },
    message: UNAVAILABLE,
    meaning: 'An exception in powgate.',
    advice: 'Look for the event "fault" with this request id in the log, and report it.',
  },

  'not-found': {
    as: { status: 404, code: 'not-found', siteverify: 'bad-request', kind: 'routine' },
    message: 'There is no such path.',
    meaning: 'There is no such path.',
    advice: 'A scanner, or a wrong address in a page.',
  },
  'length-ambiguous': {
    as: { status: 400, code: 'ambiguous-length', siteverify: 'bad-request', kind: 'routine' },
    message:
      'Where the body ends is not clear: one Content-Length, or Transfer-Encoding: chunked, is expected.',
    keepsStatus: true,
    meaning: "The body's end can be read in two ways: two lengths, or a transfer coding that is not chunked.",
    advice: 'No honest client sends that; the proxy in front should refuse it before powgate has to.',
  },
  'method-not-allowed': {
    as: { status: 405, code: 'method-not-allowed', siteverify: 'bad-request', kind: 'routine' },
    message: 'The path does not take this method; see the Allow header.',
    meaning: 'The path does not take this method.',
    advice: CLIENT,
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
  /** For the log. */
  readonly mismatch?: { readonly expected: Address; readonly visitor: Address }
}
