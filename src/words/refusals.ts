/**
 * What each refusal means, and what else it can be or what helps, for operators: in `powgate explain` and on the dashboard,
 * whose page runs in browsers.
 */

import type { Reason } from '../domain/outcome.ts'

const CLIENT = 'The client that sends this is broken, outdated, or not the widget.'
const SENDER = 'At /verify the client is broken, outdated, or not the widget; elsewhere fix the backend.'
const BACKEND = 'Fix the backend that sends this.'
const PAGE = 'A page has a mistake, or somebody probes.'
const CLOCKS = 'The clocks of the hosts differ by more than 5 s: check NTP.'
const ENABLE = 'To enable the site: powgate site enable SITE_KEY.'
const TEST_KEY = 'Give a backend in production an API key of its own.'
const MASTER_SECRETS =
  'If it happens to many: do all hosts have the same POWGATE_SECRETS, and was a secret removed that had signed?'

export const REFUSAL_WORDS: Readonly<Record<Reason, string>> = {
  'site-key-missing': `The request has no X-Site-Key header. ${PAGE}`,
  'site-key-malformed': `The X-Site-Key header is not a site key. ${PAGE}`,
  'site-unknown':
    'No site has this key. Compare the page with powgate site list: a key of another installation, or a deleted store?',
  'site-inactive': `The site is disabled. ${ENABLE}`,
  'origin-refused':
    'The site does not allow the origin of the page, or requires an origin and got none. If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with every origin that you want to allow.',

  'content-type': `The Content-Type header names no type that the path takes. ${SENDER}`,
  'body-empty': `The body is empty. ${SENDER}`,
  'body-not-utf8': `The body is not UTF-8. ${SENDER}`,
  'body-not-json': `The body is not JSON. ${SENDER}`,
  'body-not-form': `The body is not a well-formed form. ${BACKEND}`,
  'body-shape': `A field of the body is missing or wrong; the answer named it. ${SENDER}`,
  'body-too-large': 'The body is longer than POWGATE_BODY_MAX_BYTES. Honest bodies are below 1 KiB.',

  'nonce-forged': `The nonce was never issued for this site, or under other lifetimes than those set now, or by a version of powgate with another form of nonces; or the worker was started after the store lost its memory. ${MASTER_SECRETS}`,
  'nonce-forgotten':
    'The store lost its memory after the challenge was issued, so its use cannot be ruled out. Normal around a restart or a failover of the store: the widget asks for a new challenge.',
  'nonce-from-future': `The challenge was issued in the future. ${CLOCKS}`,
  'nonce-expired':
    'The solution came after the challenge had expired. A slow device, or a laptop that slept. If it happens to many: raise POWGATE_CHALLENGE_SECONDS.',
  'nonce-underpriced':
    'The challenge was issued before an attack or a raise made challenges of its network or site over 1 bit harder. The widget asks for a new challenge by itself. Many of these mean that somebody collected challenges for an attack.',
  'nonce-used':
    'The solution was submitted before: a retry of the client, or a replay. The widget asks for a new challenge by itself.',
  'nonce-other-address':
    'The challenge was requested from another address than the solution came from. A phone that changed networks, or a solver farm. If it happens to many: does POWGATE_TRUSTED_PROXIES name every proxy?',

  'sent-by-page':
    'A page in a browser tried to redeem a token, which only a backend may. The API key must not be in a page. If a backend sends Origin, leave it out.',
  'credentials-missing':
    'The backend sent no API key. It must send the header Authorization: Bearer with the key (to /siteverify, the field secret).',
  'credentials-malformed':
    'What the backend sent as its API key does not look like one. Often a missing "Bearer", quotes, or a key cut short.',
  'api-key-unknown': 'No API key has this id. Compare with powgate key list: a key of another installation?',
  'api-key-wrong-secret':
    'The id of the API key is right, its secret is not. The key was cut or changed, or somebody guesses.',
  'api-key-revoked':
    'The API key was revoked. Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  'api-key-expired':
    'The API key has expired. Create another: powgate key create SITE_KEY. Or let this one live longer: powgate key update KEY_ID --expires 90d.',
  'api-key-site-inactive': `The site of the API key is disabled. ${ENABLE}`,

  'token-missing': `The call to /siteverify has no field response: the form had no token. ${BACKEND}`,
  'expected-ip-malformed': `The field expectedIp or remoteip is not an address. ${BACKEND}`,
  'site-key-other-site': `The field sitekey names another site than the API key belongs to. ${BACKEND}`,
  'token-malformed':
    'What the backend sent is no token: a bot filled the field in, or the text was changed on its way. Is the whole field passed on, with its | characters, decoded once?',
  'token-forged': `The token was not signed with a master secret of this service, or was changed. ${MASTER_SECRETS}`,
  'token-from-future': `The token was issued in the future. ${CLOCKS}`,
  'token-forgotten':
    'The store lost its memory after the token was issued, so its use cannot be ruled out. Normal around a restart, a failover or a clock that was set: show the form again, with what was typed.',
  'token-expired':
    'The token was redeemed too late: the form was open for long. The widget renews tokens; redeem when the form arrives, not later.',
  'token-other-site':
    'The token is for another site than the API key. The backend uses the API key of another of its sites.',
  'token-other-address':
    "The address that the backend expects is not the one that solved the challenge. Does a backend behind a proxy send its visitor's address, not its proxy's? Both IPv4 or IPv6?",
  'token-used':
    'The token was redeemed before. A form sent twice, or a replay. A backend that retries sends an idempotencyKey.',
  'score-too-low':
    'The token was right, but its score is below the min-score of the site. The token is used up. A bot, or a browser like one: its verification, before this, tells the signals and the score.',
  'test-key-fails': `The API key is the published one that always fails. ${TEST_KEY}`,
  'test-key-used': `The API key is the published one for which every token is used. ${TEST_KEY}`,

  'rate-limited': 'More requests came within a minute than the limit allows.',
  'store-unavailable':
    'The store did not answer in time, or did not know what the answer depends on. Look for "the store does not answer" in the log around this time, and at the store itself.',
  overloaded:
    'More requests came than the worker could answer. Are there too few workers or hosts, or is it a flood? The log has "shedding load".',
  internal:
    'An exception in powgate. Look for the event "fault" with this request id in the log, and report it.',

  'not-found': 'There is no such path. A scanner, or a wrong address in a page.',
  'length-ambiguous':
    "The body's end can be read in two ways: two lengths, or a transfer coding that is not chunked. No honest client sends that; the proxy in front should refuse it before powgate has to.",
  'method-not-allowed': `The path does not take this method. ${CLIENT}`,
}
