/** Tells from the error of a store what is wrong: the cause, the setting to blame, and whether waiting can help. */

import { describeTarget, type RedisTarget } from '../../config/redis.ts'
import type { StoreCause } from '../../words/reasons.ts'
import { storeErrorText } from '../../words/system-error.ts'
import type { StoreTrouble } from '../store.ts'

/** Errors of a script whose user may not run one of its commands. */
export const NOT_ALLOWED = /can't run this command|no permissions to run/

/** Answers that end the waiting for a store, because it would say the same again. Case counts, because errors name hosts, too. */
const REFUSALS = new RegExp(`WRONGPASS|NOAUTH|NOPERM|invalid password|${NOT_ALLOWED.source}`)
/** Said by ExplainingConnector (ioredis.ts) in the process whose `troubleOf` compares it, so both are always of one version. */
export const OTHER_LAYOUT =
  'its process is of another version: restart the service, this change cannot be rolled out'

/** The variables that are probably wrong, by the error's text; the first match counts. */
const BLAMED: readonly (readonly [about: RegExp, variables: (target: RedisTarget) => readonly string[]])[] = [
  [new RegExp(`to sentinel .*(${REFUSALS.source})`), ({ from }) => [from.sentinel]],
  [/NOAUTH/, ({ from }) => [from.password]],
  [/WRONGPASS|invalid password/, ({ username, from }) => [...(username ? [from.user] : []), from.password]],
  [/NOPERM.* keys?\b/, () => ['POWGATE_REDIS_PREFIX']],
  [REFUSALS, ({ from }) => [from.user]],
  [/altnames/, () => ['POWGATE_REDIS_TLS_NAME']],
  [/certificate required|alert (bad cert|unknown ca|handshake)/, () => ['POWGATE_REDIS_TLS_CERT']],
  [/self-signed|unable to (get|verify)/, () => ['POWGATE_REDIS_TLS_CA']],
]

const CAUSES: readonly (readonly [about: RegExp, cause: StoreCause])[] = [
  [REFUSALS, 'auth'],
  [/ENOTFOUND|EAI_AGAIN/, 'name'],
  [/ECONNREFUSED/, 'refused'],
  [/certificate|self-signed|altnames|\b(SSL|TLS|alert|unable to (get|verify))\b/i, 'tls'],
  [/READONLY|NOREPLICAS|MASTERDOWN/, 'read-only'],
  [/LOADING/, 'loading'],
  [/OOM/, 'memory'],
  [/max number of clients/, 'clients'],
  [/MISCONF/, 'disk'],
  [/no answer|timed? ?out/i, 'timeout'],
]

export function troubleOf(target: RedisTarget, why: string): StoreTrouble {
  const [, variables] = BLAMED.find(([about]) => about.test(why)) ?? []
  const usual = target.kind === 'socket' ? 'POWGATE_DATA_DIR' : 'REDIS_URL'
  const names = [...new Set(variables?.(target) ?? [usual])].join(', ')
  const isOfCluster = target.kind !== 'cluster' && why.startsWith('MOVED ')
  const scheme = target.tls === undefined ? 'redis+cluster' : 'rediss+cluster'
  const words = isOfCluster ? `it is a node of a Cluster, so write ${scheme}://` : storeErrorText(why)
  const line = `${names}: cannot use ${describeTarget(target)}: ${words}`
  // epoch.lua says what a server lacks.
  const isLasting =
    isOfCluster || REFUSALS.test(why) || why === OTHER_LAYOUT || why.includes('this server lacks')
  return { cause: causeOf(why), line, isLasting }
}

/** Leaves out the node that `causeAt` puts at the end, ` (host:port)`: the words may stand in a host's name, too. */
export function causeOf(why: string): StoreCause {
  return CAUSES.find(([about]) => about.test(why.replace(/ \(\S+\)$/, '')))?.[1] ?? 'other'
}

/** What ioredis says of a call that it did not send. */
const UNSENT = /^(Stream|Cluster) isn't /

/** Rethrows a change's error. If no answer came, the change may have been done, so the new error says so. */
export function rethrowChangeError(error: Error): never {
  if (error.name === 'ReplyError' || UNSENT.test(error.message)) throw error
  throw new Error(
    `${storeErrorText(error.message)}, so it is not known whether this was done: see powgate audit`,
  )
}
