/** Words for operators, in `powgate explain` and on the dashboard; those of refusals are in refusals.ts. */

import { ENDPOINT_NAMES, ENDPOINTS, LIMITS } from '../domain/endpoint.ts'
import type { JudgementReason } from '../domain/score.ts'

/** `advice`: what else it can be, or what helps. */
export interface ReasonWords {
  readonly meaning: string
  readonly advice?: string | undefined
}

export function textOf({ meaning, advice }: ReasonWords): string {
  return advice === undefined ? meaning : `${meaning} ${advice}`
}

/** Why a store is away: a metric's label `cause`, and the dashboard's words. */
export const STORE_CAUSES = {
  auth: 'it refuses the user or the password',
  name: 'its name is not found',
  refused: 'nothing listens at its address',
  timeout: 'it does not answer in time',
  tls: 'TLS or a certificate fails',
  'read-only': 'it is a replica, or takes no writes',
  loading: 'it still loads its data',
  memory: 'its memory is full',
  disk: 'its disk is full or fails',
  other: 'the log says why',
} as const

export type StoreCause = keyof typeof STORE_CAUSES

const IP_RULES = 'To see the list: powgate site show SITE_KEY.'

export const JUDGEMENT_WORDS: Readonly<Record<JudgementReason, ReasonWords>> = {
  webdriver: { meaning: 'The browser says that a program drives it (navigator.webdriver).' },
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
  zeroScreen: { meaning: 'The screen has no width or no height.' },
  noLanguages: { meaning: 'The browser has no preferred language.' },
  environmentMissing: {
    meaning: 'The client sent no signals of a browser.',
    advice: 'A script, a home-made client, or an old widget.',
  },
  solveTimeImpossible: {
    meaning: 'The client claims that solving took longer than has passed since the challenge.',
  },
  recentFailure: { meaning: 'The address had failed within the last minute.' },
  'ip-blocked': { meaning: 'The block list of the site has the address.', advice: IP_RULES },
  'ip-not-allowed': { meaning: 'The allow list of the site lacks the address.', advice: IP_RULES },
  'test-key': {
    meaning: 'The site key is the published one that always fails.',
    advice: 'A page in production needs a site key of its own.',
  },
  'proof-wrong': {
    meaning: 'The counter does not solve the challenge.',
    advice: 'A client with a wrong solver, or a guess.',
  },
}

const OF_VISITORS =
  'A single visitor does not reach it: a bot does, or many people behind one address, for whom you can raise it.'
const OF_BACKENDS =
  'A backend with more visitors than that needs a higher one: powgate site update SITE_KEY --limit-redeem N.'

export function limitWords(endpoint: string, policy: string): ReasonWords | undefined {
  const name = ENDPOINT_NAMES.find(name => name === endpoint)
  const found = name && ENDPOINTS[name].limits.find(limit => limit.policy === policy)
  if (found === undefined) return undefined
  const { setting } = LIMITS[found.limit]
  const countsBackends = found.ofSite === 'redeem'
  const orOwn = found.ofSite === undefined ? '' : ", or the site's own"
  const addresses = countsBackends ? 'address of a backend' : 'address, all sites together'
  const hasKnownLimit = found.policy === 'address' && !countsBackends
  const ofKnown = hasKnownLimit
    ? ' In a known network of the site, it is the --known-limit, for this site alone.'
    : ''
  const counted = { address: addresses, 'address-site': 'address and site', 'api-key': 'API key' }
  return {
    meaning: `The limit is per ${counted[found.policy]} (${setting}${orOwn}).${ofKnown}`,
    advice: countsBackends ? OF_BACKENDS : OF_VISITORS,
  }
}
