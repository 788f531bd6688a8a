/** What reasons mean, for an operator who is asked why somebody was refused, and what can be done about it. */

import type { Policy } from '../domain/limits.ts'
import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../endpoints/service.ts'

/** Why a verification failed, or lost score. */
export const JUDGEMENT_WORDS: Readonly<Record<JudgementReason, string>> = {
  webdriver: 'the browser says that a program drives it (navigator.webdriver)',
  chromeAbsent: 'it says it is Chrome but lacks what every page in Chrome has; web views of some apps do too',
  swiftShader: 'its graphics are drawn in software, as on a server; also on machines without a usable GPU',
  noPlugins: 'a desktop browser without any plug-in, not even the PDF viewer',
  notificationDenied: 'notifications are denied; some people set their browser so',
  zeroScreen: 'a screen without width or height',
  noLanguages: 'a browser without any preferred language',
  environmentMissing: 'no browser signals were sent: a client that is not the widget, or an old one',
  solveTimeImpossible: 'the client claims that solving took longer than has passed since the challenge',
  hashRateImplausible: 'solved faster than a browser can: native code, or a farm',
  fingerprintReused: 'the same fingerprint came from 32 addresses or more within minutes',
  fingerprintSpread: 'the same fingerprint came from 256 addresses or more within minutes',
  recentFailure: 'the address had failed within the last minute',
  'ip-blocked': "the site's block list has the address: powgate site show",
  'ip-not-allowed': "the site's allow list lacks the address: powgate site show",
  'test-key': 'the published test key that always fails',
  'proof-wrong': 'the counter does not solve the challenge: a client with a wrong solver, or a guess',
}

export interface RefusalWords {
  readonly meaning: string
  /** What the operator can do; empty if there is nothing to be done. */
  readonly advice: string
}

const MASTER_SECRETS =
  'If it happens to many: do all hosts have the same POWGATE_SECRETS, and was a secret removed that had signed?'
const CLIENT = 'The client that sends this is not our widget, or is broken.'
const BACKEND = 'The backend that sends this has to be mended.'
const TEST_KEY = 'A backend in production with a test key has to be given its own.'
const CLOCKS = 'The clocks of the hosts differ by more than 5 s: check NTP.'

export const REFUSAL_WORDS: Readonly<Record<Reason, RefusalWords>> = {
  'site-key-missing': { meaning: 'The request named no site.', advice: CLIENT },
  'site-key-malformed': { meaning: 'What the page gives as its site key is none.', advice: CLIENT },
  'site-unknown': {
    meaning: 'No site has this key.',
    advice: 'Compare the page with powgate site list: a key of another installation, or a deleted store?',
  },
  'site-inactive': { meaning: 'The site is disabled.', advice: 'powgate site enable SITE_KEY.' },
  'origin-refused': {
    meaning: 'The page that asked is not among the allowed origins of the site (or sent none and must).',
    advice:
      'If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with all that shall be allowed.',
  },
  'content-type': { meaning: 'The body was not declared as JSON.', advice: CLIENT },
  'body-empty': { meaning: 'The body was empty.', advice: CLIENT },
  'body-not-utf8': { meaning: 'The body was not UTF-8.', advice: CLIENT },
  'body-not-json': { meaning: 'The body was not JSON.', advice: CLIENT },
  'body-not-form': { meaning: 'The body was not a well-formed form.', advice: CLIENT },
  'token-missing': { meaning: 'The call to /siteverify had no field response.', advice: BACKEND },
  'expected-ip-malformed': { meaning: 'The field remoteip is not an address.', advice: BACKEND },
  'site-key-other-site': {
    meaning: 'The field sitekey names another site than the API key belongs to.',
    advice: BACKEND,
  },
  'api-key-expired': {
    meaning: 'The API key has expired.',
    advice: 'powgate key create SITE_KEY makes another; powgate key update moves the end of this one.',
  },
  'test-key-fails': { meaning: 'The published API key that always fails.', advice: TEST_KEY },
  'test-key-used': { meaning: 'The published API key for which every token is used.', advice: TEST_KEY },
  'body-shape': { meaning: 'A field of the body was missing or wrong; the answer named it.', advice: CLIENT },
  'body-too-large': {
    meaning: 'The body was longer than POWGATE_BODY_MAX_BYTES.',
    advice: 'Honest bodies are below 1 KiB.',
  },
  'nonce-forged': {
    meaning:
      'The nonce was never issued for this site, or was before the store lost its memory (a restart, a failover, a clock that was set), or under other lifetimes than those that are set now.',
    advice: `Around a restart of Redis this is normal: the widget asks for a new challenge. ${MASTER_SECRETS}`,
  },
  'nonce-from-future': { meaning: 'The challenge was issued in the future.', advice: CLOCKS },
  'nonce-expired': {
    meaning: 'The solution came after the challenge had expired.',
    advice: 'A slow device, or a laptop that slept. If it happens to many: raise POWGATE_CHALLENGE_SECONDS.',
  },
  'nonce-used': {
    meaning: 'The solution was submitted before: a retry of the client, or a replay.',
    advice: 'The widget asks for a new challenge by itself.',
  },
  'nonce-other-address': {
    meaning: 'The challenge was requested from another address than the solution came from.',
    advice:
      'A phone that changed networks is normal. If it happens to many: does POWGATE_TRUSTED_PROXIES name every proxy?',
  },
  'sent-by-page': {
    meaning: 'A page in a browser asked to redeem a token.',
    advice:
      'Redeem on the backend: the API key must not be in a page. If a backend sends Origin, leave it out.',
  },
  'credentials-missing': {
    meaning: 'The backend sent no Authorization header.',
    advice: 'It must send "Authorization: Bearer" and the API key.',
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
    advice: 'A key that was cut or changed, or somebody who guesses.',
  },
  'api-key-revoked': {
    meaning: 'The API key was revoked.',
    advice: 'Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  },
  'api-key-site-inactive': {
    meaning: 'The site of the API key is disabled.',
    advice: 'powgate site enable SITE_KEY.',
  },
  'token-malformed': {
    meaning: 'What the backend sent as a token is none.',
    advice: 'Is the whole field passed on, with its | characters, decoded once?',
  },
  'token-forged': {
    meaning: 'The token was not signed with a master secret of this service, or was changed.',
    advice: MASTER_SECRETS,
  },
  'token-from-future': { meaning: 'The token was issued in the future.', advice: CLOCKS },
  'token-forgotten': {
    meaning:
      'The store lost its memory (a restart, a failover, a clock that was set) after the token was issued, so its use cannot be ruled out.',
    advice: 'Normal around a restart of Redis: the visitor verifies again.',
  },
  'token-expired': {
    meaning: 'The token was redeemed too late.',
    advice:
      'A form that was open for long. The widget renews tokens; redeem when the form arrives, not later.',
  },
  'token-other-site': {
    meaning: 'The token is for another site than the API key.',
    advice: 'The backend uses the API key of another of its sites.',
  },
  'token-other-address': {
    meaning: 'expectedIp is another address than the one that solved the challenge.',
    advice:
      'Does the backend behind a proxy send the address of its visitor, and not of its proxy? Both IPv4 or IPv6?',
  },
  'token-used': {
    meaning: 'The token was redeemed before.',
    advice: 'A form sent twice, or a replay. A backend that retries sends an idempotencyKey.',
  },
  'rate-limited': { meaning: 'Too many requests within a minute.', advice: '' },
  'store-unavailable': {
    meaning: 'The store did not answer in time, or knew not what the answer depends on.',
    advice: 'Look for "the store does not answer" around this time, and at the store itself.',
  },
  overloaded: {
    meaning: 'More requests came than the worker could answer.',
    advice:
      'Look for "more requests than can be answered" around this time. More workers or hosts, or a flood?',
  },
  internal: {
    meaning: 'An exception in powgate.',
    advice: 'Look for the event "fault" with this request id, and report it.',
  },
  'not-found': { meaning: 'There is no such path.', advice: CLIENT },
  'length-ambiguous': {
    meaning:
      'Where the body ends can be read in two ways: two lengths, or a transfer coding that is not chunked.',
    advice: 'No honest client sends that; the proxy in front should refuse it before powgate has to.',
  },
  'method-not-allowed': { meaning: 'The path does not take this method.', advice: CLIENT },
}

const REDEMPTION_VARIABLES = {
  address: 'POWGATE_LIMIT_REDEEM_ADDRESS',
  'api-key': 'POWGATE_LIMIT_REDEEM_API_KEY',
}

/** By endpoint. */
const LIMIT_VARIABLES: Readonly<Record<string, Partial<Record<Policy, string>>>> = {
  challenge: {
    address: 'POWGATE_LIMIT_CHALLENGE_ADDRESS',
    'address-site': 'POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE',
  },
  verify: { address: 'POWGATE_LIMIT_VERIFY_ADDRESS', 'address-site': 'POWGATE_LIMIT_VERIFY_ADDRESS_SITE' },
  'verify-token': REDEMPTION_VARIABLES,
  siteverify: REDEMPTION_VARIABLES,
}

const POLICY_WORDS: Readonly<Record<Policy, string>> = {
  address: 'address, all sites together',
  'address-site': 'address and site',
  'api-key': 'API key',
}

/** Which limit was hit, and what sets it. */
export function limitAdvice(endpoint: string, policy: string): string {
  const variable = LIMIT_VARIABLES[endpoint]?.[policy as Policy]
  const words = POLICY_WORDS[policy as Policy]
  if (words === undefined) return ''
  const setting = variable === undefined ? '' : ` (${variable})`
  if (policy === 'api-key')
    return `The limit is per ${words}${setting}: a backend with more visitors than that needs it raised, or a second key.`
  if (endpoint === 'verify-token' || endpoint === 'siteverify')
    return `The limit is per ${words}${setting}: a backend with more visitors than that needs powgate site update SITE_KEY --limit-redeem N.`
  return `The limit is per ${words}${setting}. One visitor does not reach it: a bot, or many people behind one address, for whom it can be raised.`
}
