/**
 * What every reason means, and what an operator can do about it: shown by `powgate explain` and by the dashboard's page,
 * so this file runs in browsers too.
 */

import { ENDPOINT_NAMES, ENDPOINTS } from './endpoint.ts'
import { LIMIT_SETTINGS } from './limits.ts'
import type { Reason } from './outcome.ts'
import type { JudgementReason } from './score.ts'

/** What a reason means; then what else it can be, or what helps. */
export type ReasonWords = readonly [meaning: string, advice?: string]

const CLIENT = 'The client that sends this is broken, outdated, or not the widget.'
const BACKEND = 'The backend that sends this has to be mended.'
const PAGE = 'A page has a mistake, or somebody probes.'
const CLOCKS = 'The clocks of the hosts differ by more than 5 s: check NTP.'
const ENABLE = 'To enable the site: powgate site enable SITE_KEY.'
const IP_RULES = 'To see the list: powgate site show SITE_KEY.'
const TEST_KEY = 'A backend in production with a test key has to be given its own.'
const MASTER_SECRETS =
  'If it happens to many: do all hosts have the same POWGATE_SECRETS, and was a secret removed that had signed?'

/** Why a request was refused. */
export const REFUSAL_WORDS: Readonly<Record<Reason, ReasonWords>> = {
  'site-key-missing': ['The request has no X-Site-Key header.', PAGE],
  'site-key-malformed': ['The X-Site-Key header is not a site key.', PAGE],
  'site-unknown': [
    'No site has this key.',
    'Compare the page with powgate site list: a key of another installation, or a deleted store?',
  ],
  'site-inactive': ['The site is disabled.', ENABLE],
  'origin-refused': [
    'The site does not allow the origin of the page, or requires an origin and got none.',
    'If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with all that shall be allowed.',
  ],
  'content-type': ['The Content-Type header names no type that the path takes.', CLIENT],
  'body-empty': ['The body is empty.', CLIENT],
  'body-not-utf8': ['The body is not UTF-8.', CLIENT],
  'body-not-json': ['The body is not JSON.', CLIENT],
  'body-not-form': ['The body is not a well-formed form.', BACKEND],
  'body-shape': ['A field of the body is missing or wrong; the answer named it.', CLIENT],
  'body-too-large': ['The body is longer than POWGATE_BODY_MAX_BYTES.', 'Honest bodies are below 1 KiB.'],
  'nonce-forged': [
    'The nonce was never issued for this site, or before the store lost its memory, or under other lifetimes than those set now.',
    `Around a restart or a failover of the store this is normal: the widget asks for a new challenge. ${MASTER_SECRETS}`,
  ],
  'nonce-from-future': ['The challenge was issued in the future.', CLOCKS],
  'nonce-expired': [
    'The solution came after the challenge had expired.',
    'A slow device, or a laptop that slept. If it happens to many: raise POWGATE_CHALLENGE_SECONDS.',
  ],
  'nonce-used': [
    'The solution was submitted before: a retry of the client, or a replay.',
    'The widget asks for a new challenge by itself.',
  ],
  'nonce-other-address': [
    'The challenge was requested from another address than the solution came from.',
    'A phone that changed networks, or a solver farm. If it happens to many: does POWGATE_TRUSTED_PROXIES name every proxy?',
  ],
  'sent-by-page': [
    'A page in a browser tried to redeem a token, which only a backend may.',
    'The API key must not be in a page. If a backend sends Origin, leave it out.',
  ],
  'credentials-missing': [
    'The backend sent no API key.',
    'It must send the header Authorization: Bearer with the key (to /siteverify, the field secret).',
  ],
  'credentials-malformed': [
    'What the backend sent as its API key does not look like one.',
    'Often a missing "Bearer", quotes, or a key cut short.',
  ],
  'api-key-unknown': [
    'No API key has this id.',
    'Compare with powgate key list: a key of another installation?',
  ],
  'api-key-wrong-secret': [
    'The id of the API key is right, its secret is not.',
    'A key that was cut or changed, or somebody who guesses.',
  ],
  'api-key-expired': [
    'The API key has expired.',
    'powgate key create SITE_KEY makes another; powgate key update moves the end of this one.',
  ],
  'api-key-revoked': [
    'The API key was revoked.',
    'Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  ],
  'api-key-site-inactive': ['The site of the API key is disabled.', ENABLE],
  'token-missing': ['The call to /siteverify has no field response: the form had no token.', BACKEND],
  'expected-ip-malformed': ['The field remoteip is not an address.', BACKEND],
  'site-key-other-site': ['The field sitekey names another site than the API key belongs to.', BACKEND],
  'test-key-fails': ['The API key is the published one that always fails.', TEST_KEY],
  'test-key-used': ['The API key is the published one for which every token is used.', TEST_KEY],
  'token-malformed': [
    'What the backend sent as a token is none: a field filled in by a bot, or changed on its way.',
    'Is the whole field passed on, with its | characters, decoded once?',
  ],
  'token-forged': [
    'The token was not signed with a master secret of this service, or was changed.',
    MASTER_SECRETS,
  ],
  'token-from-future': ['The token was issued in the future.', CLOCKS],
  'token-forgotten': [
    'The store lost its memory after the token was issued, so its use cannot be ruled out.',
    'Normal around a restart, a failover or a clock that was set: the visitor verifies again.',
  ],
  'token-expired': [
    'The token was redeemed too late: the form was open for long.',
    'The widget renews tokens; redeem when the form arrives, not later.',
  ],
  'token-other-site': [
    'The token is for another site than the API key.',
    'The backend uses the API key of another of its sites.',
  ],
  'token-other-address': [
    'The address that the backend expects is not the one that solved the challenge.',
    "Does a backend behind a proxy send its visitor's address, not its proxy's? Both IPv4 or IPv6?",
  ],
  'token-used': [
    'The token was redeemed before.',
    'A form sent twice, or a replay. A backend that retries sends an idempotencyKey.',
  ],
  'rate-limited': ['More requests came within a minute than the limit allows.'],
  'store-unavailable': [
    'The store did not answer in time, or did not know what the answer depends on.',
    'Look for "the store does not answer" in the log around this time, and at the store itself.',
  ],
  overloaded: [
    'More requests came than the worker could answer.',
    'Are there too few workers or hosts, or is it a flood? The log has "more requests than can be answered".',
  ],
  internal: [
    'An exception in powgate.',
    'Look for the event "fault" with this request id in the log, and report it.',
  ],
  'not-found': ['There is no such path.', 'A scanner, or a wrong address in a page.'],
  'length-ambiguous': [
    "The body's end can be read in two ways: two lengths, or a transfer coding that is not chunked.",
    'No honest client sends that; the proxy in front should refuse it before powgate has to.',
  ],
  'method-not-allowed': ['The path does not take this method.', CLIENT],
}

/** Why a verification failed, or lost score. */
export const JUDGEMENT_WORDS: Readonly<Record<JudgementReason, ReasonWords>> = {
  webdriver: ['The browser says that a program drives it (navigator.webdriver).'],
  chromeAbsent: [
    'The browser says it is Chrome but lacks what every page in Chrome has.',
    'Web views of some apps lack it too.',
  ],
  swiftShader: ['Graphics are drawn in software, as on a server.', 'So do machines without a usable GPU.'],
  noPlugins: ['The desktop browser has no plug-in, not even the PDF viewer.', 'Headless browsers have none.'],
  notificationDenied: [
    'Notifications are denied.',
    'Headless browsers deny them unasked; some people set their browser so.',
  ],
  zeroScreen: ['The screen has no width or no height.'],
  noLanguages: ['The browser has no preferred language.'],
  environmentMissing: [
    'The client sent no signals of a browser.',
    'A script, a home-made client, or an old widget.',
  ],
  solveTimeImpossible: ['The client claims that solving took longer than has passed since the challenge.'],
  fingerprintReused: ['The same fingerprint came from 32 addresses or more within minutes.'],
  fingerprintSpread: [
    'The same fingerprint came from 256 addresses or more within minutes.',
    'A botnet, or a pool of proxies.',
  ],
  recentFailure: ['The address had failed within the last minute.'],
  'ip-blocked': ['The block list of the site has the address.', IP_RULES],
  'ip-not-allowed': ['The allow list of the site lacks the address.', IP_RULES],
  'test-key': [
    'The site key is the published one that always fails.',
    'A page in production has to be given its own.',
  ],
  'proof-wrong': ['The counter does not solve the challenge.', 'A client with a wrong solver, or a guess.'],
}

const OF_VISITORS =
  'One visitor does not reach it: a bot, or many people behind one address, for whom it can be raised.'
const OF_BACKENDS =
  'A backend with more visitors than that needs a higher one: powgate site update SITE_KEY --limit-redeem N.'

/** What a limit of an endpoint counts; undefined if there is no such limit. */
export function limitWords(endpoint: string, policy: string): ReasonWords | undefined {
  const name = ENDPOINT_NAMES.find(name => name === endpoint)
  const found = name && ENDPOINTS[name].limits.find(limit => limit.policy === policy)
  if (found === undefined) return undefined
  const setting = LIMIT_SETTINGS[found.limit]
  const isOfBackends = found.ofSite === 'redeem'
  const orOwn = found.ofSite === undefined ? '' : ", or the site's own"
  const addresses = isOfBackends ? 'address of a backend' : 'address, all sites together'
  const counted = { address: addresses, 'address-site': 'address and site', 'api-key': 'API key' }
  return [
    `The limit is per ${counted[found.policy]} (${setting}${orOwn}).`,
    isOfBackends ? OF_BACKENDS : OF_VISITORS,
  ]
}
