/** Words for operators, in `powgate explain` and on the dashboard; those of refusals are in refusals.ts. */

import { ENDPOINT_NAMES, ENDPOINTS, LIMITS } from '../domain/endpoint.ts'
import type { JudgementReason } from '../domain/score.ts'

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
  clients: 'it takes no more connections',
  disk: 'its disk is full or fails',
  other: 'the log says why',
} as const

export type StoreCause = keyof typeof STORE_CAUSES

const HOW_TO_SEE_IT = 'To see the list: powgate site show SITE_KEY.'

export const JUDGEMENT_WORDS: Readonly<Record<JudgementReason, string>> = {
  webdriver: 'The browser says that a program drives it (navigator.webdriver).',
  chromeAbsent:
    'The browser says it is Chrome but lacks what every page in Chrome has. Web views of some apps lack it too.',
  swiftShader: 'Graphics are drawn in software, as on a server. So do machines without a usable GPU.',
  noPlugins: 'The desktop browser has no plug-in, not even the PDF viewer. Headless browsers have none.',
  notificationDenied:
    'Notifications are denied. Headless browsers deny them unasked; some people set their browser so.',
  zeroScreen: 'The screen has no width or no height.',
  noLanguages: 'The browser has no preferred language.',
  environmentMissing:
    'The client sent no signals of a browser. A script, a home-made client, or an old widget.',
  solveTimeImpossible: 'The client claims that solving took longer than has passed since the challenge.',
  recentFailure: 'The address had failed within the last minute.',
  'ip-blocked': `The block list of the site has the address. ${HOW_TO_SEE_IT}`,
  'ip-not-allowed': `The allow list of the site lacks the address. ${HOW_TO_SEE_IT}`,
  'test-key':
    'The site key is the published one that always fails. A page in production needs a site key of its own.',
  'proof-wrong': 'The counter does not solve the challenge. A client with a wrong solver, or a guess.',
}

const OF_VISITORS =
  'A single visitor does not reach it: a bot does, or many people behind one address, for whom you can raise it.'
const ofBackends = (siteKey: unknown) =>
  `If the log tells of junk, raise nothing. A backend whose visitors exceed it needs a higher one: powgate site update ${siteKey ?? 'SITE_KEY'} --limit-redeem N.`

/** Says what the limit of a logged refusal counts, and which setting it is. Empty if no such endpoint has such a limit. */
export function limitWords(endpoint: unknown, policy: unknown, siteKey?: unknown): string {
  if (policy === 'junk') return 'What would be refused anyway has limits of its own: raise nothing.'
  const name = ENDPOINT_NAMES.find(name => name === endpoint)
  const found = name && ENDPOINTS[name].limits.find(limit => limit.policy === policy)
  if (found === undefined) return ''
  const isOfBackends = !ENDPOINTS[name!].isCrossOrigin
  const counted = {
    address: isOfBackends ? 'address of a backend' : 'address, all sites together',
    'address-site': 'address and site',
    'api-key': 'API key',
  }
  const orSite = found.siteSetting === undefined ? '' : ", or the site's own"
  const known =
    found.policy === 'address' && !isOfBackends
      ? ' In a known network of the site, it is the --known-limit, for this site alone.'
      : ''
  const rule = `The limit is per ${counted[found.policy]} (${LIMITS[found.limit].setting}${orSite}).`
  return `${rule}${known} ${isOfBackends ? ofBackends(siteKey) : OF_VISITORS}`
}
