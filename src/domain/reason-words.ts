/**
 * What every reason means, and what an operator can do about it: shown by `powgate explain` and by the dashboard's page,
 * so this file runs in browsers too.
 */

import type { Policy } from './limits.ts'
import type { Reason } from './outcome.ts'
import type { JudgementReason } from './score.ts'

export interface ReasonWords {
  readonly meaning: string
  /** What else it can be, or what helps; empty if there is nothing to add. */
  readonly advice: string
}

/** Both as one text. */
export function textOf({ meaning, advice }: ReasonWords): string {
  return advice === '' ? meaning : `${meaning} ${advice}`
}

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
  'site-key-missing': { meaning: 'The request has no X-Site-Key header.', advice: PAGE },
  'site-key-malformed': { meaning: 'The X-Site-Key header is not a site key.', advice: PAGE },
  'site-unknown': {
    meaning: 'No site has this key.',
    advice: 'Compare the page with powgate site list: a key of another installation, or a deleted store?',
  },
  'site-inactive': { meaning: 'The site is disabled.', advice: ENABLE },
  'origin-refused': {
    meaning: 'The site does not allow the origin of the page, or requires an origin and got none.',
    advice:
      'If the page is yours: powgate site update SITE_KEY --origin ORIGIN, with all that shall be allowed.',
  },
  'content-type': { meaning: 'The Content-Type header names no type that the path takes.', advice: CLIENT },
  'body-empty': { meaning: 'The body is empty.', advice: CLIENT },
  'body-not-utf8': { meaning: 'The body is not UTF-8.', advice: CLIENT },
  'body-not-json': { meaning: 'The body is not JSON.', advice: CLIENT },
  'body-not-form': { meaning: 'The body is not a well-formed form.', advice: BACKEND },
  'body-shape': { meaning: 'A field of the body is missing or wrong; the answer named it.', advice: CLIENT },
  'body-too-large': {
    meaning: 'The body is longer than POWGATE_BODY_MAX_BYTES.',
    advice: 'Honest bodies are below 1 KiB.',
  },
  'nonce-forged': {
    meaning:
      'The nonce was never issued for this site, or before the store lost its memory, or under other lifetimes than those set now.',
    advice: `Around a restart or a failover of the store this is normal: the widget asks for a new challenge. ${MASTER_SECRETS}`,
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
    advice: 'A key that was cut or changed, or somebody who guesses.',
  },
  'api-key-expired': {
    meaning: 'The API key has expired.',
    advice: 'powgate key create SITE_KEY makes another; powgate key update moves the end of this one.',
  },
  'api-key-revoked': {
    meaning: 'The API key was revoked.',
    advice: 'Whoever still uses it needs a new one: powgate key create SITE_KEY.',
  },
  'api-key-site-inactive': { meaning: 'The site of the API key is disabled.', advice: ENABLE },
  'token-missing': {
    meaning: 'The call to /siteverify has no field response: the form had no token.',
    advice: BACKEND,
  },
  'expected-ip-malformed': { meaning: 'The field remoteip is not an address.', advice: BACKEND },
  'site-key-other-site': {
    meaning: 'The field sitekey names another site than the API key belongs to.',
    advice: BACKEND,
  },
  'test-key-fails': { meaning: 'The API key is the published one that always fails.', advice: TEST_KEY },
  'test-key-used': {
    meaning: 'The API key is the published one for which every token is used.',
    advice: TEST_KEY,
  },
  'token-malformed': {
    meaning: 'What the backend sent as a token is none: a field filled in by a bot, or changed on its way.',
    advice: 'Is the whole field passed on, with its | characters, decoded once?',
  },
  'token-forged': {
    meaning: 'The token was not signed with a master secret of this service, or was changed.',
    advice: MASTER_SECRETS,
  },
  'token-from-future': { meaning: 'The token was issued in the future.', advice: CLOCKS },
  'token-forgotten': {
    meaning: 'The store lost its memory after the token was issued, so its use cannot be ruled out.',
    advice: 'Normal around a restart, a failover or a clock that was set: the visitor verifies again.',
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
  'rate-limited': { meaning: 'More requests came within a minute than the limit allows.', advice: '' },
  'store-unavailable': {
    meaning: 'The store did not answer in time, or did not know what the answer depends on.',
    advice: 'Look for "the store does not answer" in the log around this time, and at the store itself.',
  },
  overloaded: {
    meaning: 'More requests came than the worker could answer.',
    advice:
      'Are there too few workers or hosts, or is it a flood? The log has "more requests than can be answered".',
  },
  internal: {
    meaning: 'An exception in powgate.',
    advice: 'Look for the event "fault" with this request id in the log, and report it.',
  },
  'not-found': { meaning: 'There is no such path.', advice: 'A scanner, or a wrong address in a page.' },
  'length-ambiguous': {
    meaning: "The body's end can be read in two ways: two lengths, or a transfer coding that is not chunked.",
    advice: 'No honest client sends that; the proxy in front should refuse it before powgate has to.',
  },
  'method-not-allowed': { meaning: 'The path does not take this method.', advice: CLIENT },
}

/** Why a verification failed, or lost score. */
export const JUDGEMENT_WORDS: Readonly<Record<JudgementReason, ReasonWords>> = {
  webdriver: { meaning: 'The browser says that a program drives it (navigator.webdriver).', advice: '' },
  chromeAbsent: {
    meaning: 'The browser says it is Chrome but lacks what every page in Chrome has.',
    advice: 'Web views of some apps lack it too.',
  },
  swiftShader: {
    meaning: 'Graphics are drawn in software, as on a server.',
    advice: 'So do machines without a usable GPU.',
  },
  noPlugins: {
    meaning: 'The desktop browser has no plug-in, not even the PDF viewer.',
    advice: 'Headless browsers have none.',
  },
  notificationDenied: {
    meaning: 'Notifications are denied.',
    advice: 'Headless browsers deny them unasked; some people set their browser so.',
  },
  zeroScreen: { meaning: 'The screen has no width or no height.', advice: '' },
  noLanguages: { meaning: 'The browser has no preferred language.', advice: '' },
  environmentMissing: {
    meaning: 'The client sent no signals of a browser.',
    advice: 'A script, a home-made client, or an old widget.',
  },
  solveTimeImpossible: {
    meaning: 'The client claims that solving took longer than has passed since the challenge.',
    advice: '',
  },
  fingerprintReused: {
    meaning: 'The same fingerprint came from 32 addresses or more within minutes.',
    advice: '',
  },
  fingerprintSpread: {
    meaning: 'The same fingerprint came from 256 addresses or more within minutes.',
    advice: 'A botnet, or a pool of proxies.',
  },
  recentFailure: { meaning: 'The address had failed within the last minute.', advice: '' },
  'ip-blocked': { meaning: 'The block list of the site has the address.', advice: IP_RULES },
  'ip-not-allowed': { meaning: 'The allow list of the site lacks the address.', advice: IP_RULES },
  'test-key': {
    meaning: 'The site key is the published one that always fails.',
    advice: 'A page in production has to be given its own.',
  },
  'proof-wrong': {
    meaning: 'The counter does not solve the challenge.',
    advice: 'A client with a wrong solver, or a guess.',
  },
}

type LimitWords = Partial<Record<Policy, ReasonWords>>

/** What the limits count, by endpoint. */
export const LIMIT_WORDS: Readonly<Record<string, LimitWords>> = {
  challenge: visitorLimits('POWGATE_LIMIT_CHALLENGE_ADDRESS', 'POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE'),
  verify: visitorLimits('POWGATE_LIMIT_VERIFY_ADDRESS', 'POWGATE_LIMIT_VERIFY_ADDRESS_SITE'),
  'verify-token': redemptionLimits(),
  siteverify: redemptionLimits(),
}

function visitorLimits(addressSetting: string, siteSetting: string): LimitWords {
  const advice =
    'One visitor does not reach it: a bot, or many people behind one address, for whom it can be raised.'
  return {
    address: { meaning: `The limit is per address, all sites together (${addressSetting}).`, advice },
    'address-site': {
      meaning: `The limit is per address and site (${siteSetting}, or the site's own).`,
      advice,
    },
  }
}

function redemptionLimits(): LimitWords {
  const advice =
    'A backend with more visitors than that needs a higher one: powgate site update SITE_KEY --limit-redeem N.'
  return {
    address: {
      meaning: "The limit is per address of a backend (POWGATE_LIMIT_REDEEM_ADDRESS, or the site's own).",
      advice,
    },
    'api-key': {
      meaning: "The limit is per API key (POWGATE_LIMIT_REDEEM_API_KEY, or the site's own).",
      advice,
    },
  }
}
