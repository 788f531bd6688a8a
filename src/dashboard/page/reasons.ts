/** Explains every reason of a refusal or a failure in plain words, for a person on call. */

import type { Policy } from '../../domain/limits.ts'
import type { Reason } from '../../domain/outcome.ts'
import type { ScoreReason } from '../../domain/score.ts'
import type { Endpoint } from '../../observe/history-view.ts'

export interface Explanation {
  readonly title: string
  readonly text: string
}

const REFUSALS: Record<Reason, string> = {
  'site-key-missing':
    'No X-Site-Key header: the page embeds the widget without a site key, or somebody probes.',
  'site-key-malformed': 'The X-Site-Key header is no site key: a typing error in a page, or somebody probes.',
  'site-unknown': 'A well-formed site key that nobody created: an old page, or the wrong service.',
  'site-inactive': 'The site is disabled.',
  'origin-refused': 'The page is on an origin that the site does not list.',
  'content-type': 'The request does not say that its body is JSON.',
  'body-empty': 'A request without a body.',
  'body-not-utf8': 'A body that is not UTF-8: no client of ours sends that.',
  'body-not-json': 'A body that is not JSON: no client of ours sends that.',
  'body-not-form': 'The body of a call to /siteverify is no form that can be read.',
  'body-shape': 'JSON with a missing or wrong field: an outdated or home-made client.',
  'body-too-large': 'A body beyond the cap.',
  'nonce-forged':
    'The challenge was not issued by this service for this site. After a change of secrets: check that the old one is still listed.',
  'nonce-from-future': 'A challenge from ahead of this host’s clock: check the clocks of the hosts.',
  'nonce-expired': 'Solved too late: slow devices, or a page that was left open.',
  'nonce-used': 'A solution sent twice: a retry, or a replay.',
  'nonce-other-address':
    'Asked for from one address, solved from another: changing networks, a proxy that is not trusted, or a solver farm.',
  'sent-by-page': 'A page in a browser tries to redeem a token, which only a backend may.',
  'credentials-missing': 'A backend calls without an API key.',
  'credentials-malformed': 'An Authorization header that is no API key.',
  'api-key-unknown': 'An API key that nobody created.',
  'api-key-wrong-secret': 'A known API key with a wrong secret: truncated, or guessed.',
  'api-key-expired': 'A backend uses an API key that has expired.',
  'api-key-revoked': 'An API key that was revoked is still in use.',
  'api-key-site-inactive': 'An API key of a disabled site.',
  'token-malformed': 'What the form sent is no token: a bot that fills in anything, or a truncated field.',
  'token-forged':
    'The token was not issued by this service. After a change of secrets: check that the old one is still listed.',
  'token-from-future': 'A token from ahead of this host’s clock: check the clocks of the hosts.',
  'token-forgotten': 'The token is older than the store remembers.',
  'token-expired': 'The form was sent too long after it was solved.',
  'token-other-site': 'The token belongs to another site than the API key.',
  'token-other-address': 'The form came from another address than the solution.',
  'token-used': 'A token sent twice: a form sent again, a retry without idempotencyKey, or a replay.',
  'token-missing': 'A call to /siteverify without the field response: the form had no token.',
  'expected-ip-malformed': 'The backend gave an address that is none.',
  'site-key-other-site': 'The backend names another site than its API key belongs to.',
  'test-key-fails': 'A published test key that always fails.',
  'test-key-used': 'A published test key for which every token is used.',
  'rate-limited': 'More requests a minute than allowed; see the limits that were hit.',
  'store-unavailable': 'The store did not answer in time.',
  overloaded: 'More requests than a worker could answer: refused at once, challenges first.',
  internal: 'A fault of ours: the log has it as an error.',
  'not-found': 'A path that does not exist: scanners, or a wrong address in a page.',
  'length-ambiguous':
    'A body whose end can be read in two ways: somebody tries to smuggle a request past a proxy that lets it.',
  'method-not-allowed': 'A method that the path does not take.',
}

const JUDGEMENTS: Record<ScoreReason | 'ip-blocked' | 'ip-not-allowed' | 'proof-wrong' | 'test-key', string> =
  {
    webdriver: 'The browser says that it is driven by a program.',
    chromeAbsent: 'It calls itself Chrome and lacks what Chrome has.',
    swiftShader: 'Graphics are drawn in software: a headless browser or a virtual machine.',
    noPlugins: 'A browser without any plug-in, as headless ones are.',
    notificationDenied: 'Notifications are denied without anybody having been asked.',
    zeroScreen: 'A screen without size.',
    noLanguages: 'A browser without languages.',
    environmentMissing: 'The client said nothing of its environment: a script, or a home-made client.',
    solveTimeImpossible: 'It claims to have computed longer than it had the challenge.',
    hashRateImplausible: 'Solved faster than any browser could: native code or rented hardware.',
    fingerprintReused: 'The same fingerprint from dozens of addresses.',
    fingerprintSpread: 'The same fingerprint from hundreds of addresses: a botnet or a proxy pool.',
    recentFailure: 'The address failed before within the last minute.',
    'ip-blocked': 'The address is on the site’s block list.',
    'ip-not-allowed': 'The address is not on the site’s allow list.',
    'test-key': 'The published test key that always fails.',
    'proof-wrong': 'The counter does not solve the challenge: a broken client, or guessing.',
  }

type LimitWords = Partial<Record<Policy, [setting: string, text: string]>>

const REDEMPTION: LimitWords = {
  address: ['POWGATE_LIMIT_REDEEM_ADDRESS', 'One backend’s address.'],
  'api-key': ['POWGATE_LIMIT_REDEEM_API_KEY', 'One API key.'],
}

const LIMITS: Record<Endpoint, LimitWords> & { readonly siteverify: LimitWords } = {
  challenge: {
    address: ['POWGATE_LIMIT_CHALLENGE_ADDRESS', 'One address, over all sites.'],
    'address-site': ['POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE', 'One address at one site.'],
  },
  verify: {
    address: ['POWGATE_LIMIT_VERIFY_ADDRESS', 'One address, over all sites.'],
    'address-site': ['POWGATE_LIMIT_VERIFY_ADDRESS_SITE', 'One address at one site.'],
  },
  'verify-token': REDEMPTION,
  siteverify: REDEMPTION,
}

/** Reasons may be unknown here: a worker may run newer code than this page. */
export function explainRefusal(name: string): Explanation {
  return { title: name, text: REFUSALS[name as Reason] ?? '' }
}

export function explainJudgement(name: string): Explanation {
  return { title: name, text: JUDGEMENTS[name as keyof typeof JUDGEMENTS] ?? '' }
}

/** @param name `<endpoint> <policy>` */
export function explainLimit(name: string): Explanation {
  const [endpoint = '', policy = ''] = name.split(' ')
  const known = LIMITS[endpoint as Endpoint]?.[policy as Policy]
  const title = `/${endpoint} per ${policy.replace('address-site', 'address and site').replace('api-key', 'API key')}`
  if (known === undefined) return { title, text: '' }
  // A site can have its own limits, except for those of an address over all sites.
  return {
    title,
    text: `${known[1]} Set by ${known[0]}${policy === 'address' ? '' : ', or the site’s own'}.`,
  }
}
