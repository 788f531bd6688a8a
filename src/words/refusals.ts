/** Explains each refusal to operators, in `powgate explain` and on the dashboard, whose page runs in browsers. */

import type { Reason } from '../domain/outcome.ts'
import type { ReasonWords } from './reasons.ts'

const CLIENT = 'The client that sends this is broken, outdated, or not the widget.'
const BACKEND = 'Fix the backend that sends this.'
const PAGE = 'A page has a mistake, or somebody probes.'
const CLOCKS = 'The clocks of the hosts differ by more than 5 s: check NTP.'
const ENABLE = 'To enable the site: powgate site enable SITE_KEY.'
const TEST_KEY = 'Give a backend in production an API key of its own.'
const MASTER_SECRETS =
  'If it happens to many: do all hosts have the same POWGATE_SECRETS, and was a secret removed that had signed?'

export const REFUSAL_WORDS: Readonly<Record<Reason, ReasonWords>> = {
  'site-key-missing': {
    meaning: 'The request has no X-Site-Key header.',
    advice: PAGE,
  },
  'site-key-malformed': {
    meaning: 'The X-Site-Key header is not a site key.',
    advice: PAGE,
  },
  'site-unknown': {
    meaning: 'No site has this key.',
    advice: 'Compare the page with powgate site list: a key of another installation, or a deleted store?',
  },
  'site-inactive': {
    meaning: 'The site is disabled.',
    advice: ENABLE,
  },
  'origin-refused': {
    meaning: 'The site does not allow the origin of the page, or requires an origin and got none.',
    advice:
      'If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with every origin that you want to allow.',
  },

  'content-type': {
    meaning: 'The Content-Type header names no type that the path takes.',
    advice: CLIENT,
  },
  'body-empty': {
    meaning: 'The body is empty.',
    advice: CLIENT,
  },
  'body-not-utf8': {
    meaning: 'The body is not UTF-8.',
    advice: CLIENT,
  },
  'body-not-json': {
    meaning: 'The body is not JSON.',
    advice: CLIENT,
  },
  'body-not-form': {
    meaning: 'The body is not a well-formed form.',
    advice: BACKEND,
  },
  'body-shape': {
    meaning: 'A field of the body is missing or wrong; the answer named it.',
    advice: CLIENT,
  },
  'body-too-large': {
    meaning: 'The body is longer than POWGATE_BODY_MAX_BYTES.',
    advice: 'Honest bodies are below 1 KiB.',
  },

  'nonce-forged': {
    meaning:
      'The nonce was never issued for this site, or under other lifetimes than those set now, or by a version of powgate with another form of nonces; or the worker was started after the store lost its memory.',
    advice: MASTER_SECRETS,
  },
  'nonce-forgotten': {
    meaning: 'The store lost its memory after the challenge was issued, so its use cannot be ruled out.',
    advice: 'Normal around a restart or a failover of the store: the widget asks for a new challenge.',
  },
  'nonce-from-future': {
    meaning: 'The challenge was issued in the future.',
    advice: CLOCKS,
  },
  'nonce-expired': {
    meaning: 'The solution came after the challenge had expired.',
    advice: 'A slow device, or a laptop that slept. If it happens to many: raise POWGATE_CHALLENGE_SECONDS.',
  },
  'nonce-underpriced': {
    meaning:
      'The challenge was issued before an attack or a raise made challenges of its network over 3 bits harder, or of its site over 1.',
    advice:
      'The widget asks for a new challenge by itself. Many of these mean that somebody collected challenges for an attack.',
  },
  'nonce-used': {
    meaning: 'The solution was submitted before: a retry of the client, or a replay.',
    advice: 'The widget asks for a new challenge by itself.',
  },
  'nonce-other-address': {
    meaning: 'The challenge was requested from another address than the solution came from.',
    advice:
      'A phone that changed networks, or a solver farm. If it happens to many: does POWGATE_TRUSTED_PROXIES name every proxy?',
  },

  'sent-by-page': {
    meaning: 'A page in a browser tried to redeem a token, which only a backend may.',
    advice: 'The API key must not be in a page. If a backend sends Origin, leave it out.',
  },
  'credentials-missing': {
    meaning: 'The backend sent no API key.',
    advice: 'It must send the header Authorization: Bearer with the key (to /siteverify, the field secret).',
  },
  'credentials-malformed': {
    meaning: 'What the backend sent as its API key does not look like one.',
    advice: 'Often a missing "Bearer", quotes, or a key cut short.',
  },
  'api-key-unknown': {
    meaning: 'No API key has this id.',
    advice: 'Compare with powgate key list: a key of another installation?',
  },
  'api-key-wrong-secret': {
    meaning: 'The id of the API key is right, its secret is not.',
    advice: 'The key was cut or changed, or somebody guesses.',
  },
  'api-key-revoked': {
    meaning: 'The API key was revoked.',
    advice: 'Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  },
  'api-key-expired': {
    meaning: 'The API key has expired.',
    advice:
      'Create another: powgate key create SITE_KEY. Or let this one live longer: powgate key update KEY_ID --expires 90d.',
  },
  'api-key-site-inactive': {
    meaning: 'The site of the API key is disabled.',
    advice: ENABLE,
  },

  'token-missing': {
    meaning: 'The call to /siteverify has no field response: the form had no token.',
    advice: BACKEND,
  },
  'expected-ip-malformed': {
    meaning: 'The field remoteip is not an address.',
    advice: BACKEND,
  },
  'site-key-other-site': {
    meaning: 'The field sitekey names another site than the API key belongs to.',
    advice: BACKEND,
  },
  'token-malformed': {
    meaning:
      'What the backend sent is no token: a bot filled the field in, or the text was changed on its way.',
    advice: 'Is the whole field passed on, with its | characters, decoded once?',
  },
  'token-forged': {
    meaning: 'The token was not signed with a master secret of this service, or was changed.',
    advice: MASTER_SECRETS,
  },
  'token-from-future': {
    meaning: 'The token was issued in the future.',
    advice: CLOCKS,
  },
  'token-forgotten': {
    meaning: 'The store lost its memory after the token was issued, so its use cannot be ruled out.',
    advice:
      'Normal around a restart, a failover or a clock that was set: show the form again, with what was typed.',
  },
  'token-expired': {
    meaning: 'The token was redeemed too late: the form was open for long.',
    advice: 'The widget renews tokens; redeem when the form arrives, not later.',
  },
  'token-other-site': {
    meaning: 'The token is for another site than the API key.',
    advice: 'The backend uses the API key of another of its sites.',
  },
  'token-other-address': {
    meaning: 'The address that the backend expects is not the one that solved the challenge.',
    advice: "Does a backend behind a proxy send its visitor's address, not its proxy's? Both IPv4 or IPv6?",
  },
  'token-used': {
    meaning: 'The token was redeemed before.',
    advice: 'A form sent twice, or a replay. A backend that retries sends an idempotencyKey.',
  },
  'score-too-low': {
    meaning: 'The token was right, but its score is below the min-score of the site. The token is used up.',
    advice: 'A bot, or a browser like one: its verification, before this, tells the signals and the score.',
  },
  'test-key-fails': {
    meaning: 'The API key is the published one that always fails.',
    advice: TEST_KEY,
  },
  'test-key-used': {
    meaning: 'The API key is the published one for which every token is used.',
    advice: TEST_KEY,
  },

  'rate-limited': {
    meaning: 'More requests came within a minute than the limit allows.',
  },
  'store-unavailable': {
    meaning: 'The store did not answer in time, or did not know what the answer depends on.',
    advice: 'Look for "the store does not answer" in the log around this time, and at the store itself.',
  },
  overloaded: {
    meaning: 'More requests came than the worker could answer.',
    advice: 'Are there too few workers or hosts, or is it a flood? The log has "shedding load".',
  },
  internal: {
    meaning: 'An exception in powgate.',
    advice: 'Look for the event "fault" with this request id in the log, and report it.',
  },

  'not-found': {
    meaning: 'There is no such path.',
    advice: 'A scanner, or a wrong address in a page.',
  },
  'length-ambiguous': {
    meaning: "The body's end can be read in two ways: two lengths, or a transfer coding that is not chunked.",
    advice: 'No honest client sends that; the proxy in front should refuse it before powgate has to.',
  },
  'method-not-allowed': {
    meaning: 'The path does not take this method.',
    advice: CLIENT,
  },
}
