/** Tells someone on call what is wrong, worst first. */

import { CLOCK_WARNING_SECONDS } from '../../domain/clock.ts'
import { limitWords, STORE_CAUSES } from '../../words/reasons.ts'
import { sum } from '../data.ts'
import type { DashboardData } from '../history.ts'
import type { ServiceState } from '../service-state.ts'
import { clockSeconds, duration, exact, milliseconds } from './format.ts'

export type Level = 'good' | 'warn' | 'bad'

export interface Problem {
  readonly level: Exclude<Level, 'good'>
  readonly text: string
}

const LAG_MS_MAX = 100
const STORE_P99_MS_MAX = 50
/** With fewer requests, chance could look like a wrong setting. */
const SUSPECT_REQUESTS_MIN = 20
const UNREDEEMED_TOLD_MAX = 3

const PROXY_UNTRUSTED =
  'Nearly all visitors come from one private or loopback address, so they share its limits: if it is a proxy of yours, name it in POWGATE_TRUSTED_PROXIES, and see that it sends X-Forwarded-For.'

export function problemsOf(data: DashboardData): Problem[] {
  const found: Problem[] = []
  const report = {
    bad: (text: string) => found.push({ level: 'bad', text }),
    warn: (text: string) => found.push({ level: 'warn', text }),
  }
  reportService(data, report)
  reportProxy(data, report)
  reportHistory(data, report)
  return [...found.filter(({ level }) => level === 'bad'), ...found.filter(({ level }) => level === 'warn')]
}

type Report = Readonly<Record<Problem['level'], (text: string) => void>>

function reportService({ service }: DashboardData, { bad, warn }: Report): void {
  const { isReady, workers, workersRunning, workersWithStore, sitesLost, differences } = service
  const { clockApartSeconds, evictedKeys, isReloadDone } = service
  const why = service.storeCauses.map(cause => STORE_CAUSES[cause]).join('; ')
  const because = why === '' ? '' : `: ${why}`
  // `isReady` is that /readyz answers 200, `isHealthy` that /healthz does: all workers run and answer.
  const doesRun = workersRunning > 0
  const doAllRun = workersRunning >= workers
  if (!doesRun)
    bad(`${why ? `The start waits for the store${because}` : 'No worker runs'}. Nothing is answered.`)
  else if (!doAllRun) warn(`${workersRunning} of ${workers} workers run; the others are being replaced.`)
  if (workersWithStore < workersRunning) bad(storeAwayText(service, because))
  else if (doesRun && !isReady) bad('Not ready: a load balancer that asks /readyz sends nothing here.')
  else if (doAllRun && !service.isHealthy) warn('A worker is starting, or does not answer.')
  if (sitesLost > 0)
    bad(
      `The store has lost ${exact(sitesLost)} sites or API keys, served from memory: restart nothing, see the log.`,
    )
  if (differences.length > 0) {
    const more = differences.length > 1 ? ` (and ${differences.length - 1} more)` : ''
    bad(
      `Hosts of this store refuse each other's challenges and tokens. ${differences[0]}${more}: set the same on all.`,
    )
  }
  for (const { text, isOverLimit } of service.backends) (isOverLimit ? bad : warn)(`${text}.`)
  if (clockApartSeconds > CLOCK_WARNING_SECONDS)
    warn(
      `The clock is ${duration(clockApartSeconds)} off that of Redis, and from 5 s on hosts refuse each other: see timedatectl on both.`,
    )
  if (evictedKeys > 0)
    warn(
      `Redis has evicted ${exact(evictedKeys)} keys since it started, and refused what was issued before: see its maxmemory and maxmemory-policy.`,
    )
  if (!isReloadDone)
    warn('The last SIGHUP has not renewed all workers, so those serve with the old settings: see the log.')
}

function storeAwayText(service: ServiceState, because: string): string {
  const { isReady, workersRunning, workersWithStore, isStoreEmbedded } = service
  const isAll = workersWithStore === 0
  const who = isAll ? 'any worker' : `${workersRunning - workersWithStore} of ${workersRunning} workers`
  const answers = `does not answer ${who}${because}.`
  if (isStoreEmbedded)
    return `The store ${answers} Until it does, challenges, verifications and tokens are refused.`
  const rest = 'cannot be redeemed; challenges and verifications go on only if POWGATE_FAIL_OPEN says so.'
  // A worker is ready if half of a Cluster answers.
  return isAll && isReady
    ? `A part of the Redis Cluster ${answers} For sites that lie there, tokens ${rest}`
    : `The store ${answers} Tokens ${rest}`
}

/** Behind an untrusted proxy all visitors have the proxy's address: they share its limits, and their tokens name it. */
function reportProxy(data: DashboardData, { bad, warn }: Report): void {
  const { limits, nowMs, service, site, times, traffic } = data
  const countsOf = (tallies: DashboardData['limits'], name: string) =>
    tallies.find(tally => tally.name === name)?.counts ?? []
  const ofLast = (minutes: number, counts: readonly number[]) =>
    sum(counts.filter((_, step) => times[step]! > nowMs - minutes * 60_000))
  const areMost = (refused: readonly number[], good: readonly number[]) =>
    ofLast(30, refused) >= SUSPECT_REQUESTS_MIN &&
    [30, 10].every(minutes => ofLast(minutes, refused) > ofLast(minutes, good)) // by the last 10, this ends soon after a fault is mended
  if (areMost(countsOf(traffic.refusals, 'token-other-address'), traffic.redeemed))
    bad(
      'Most tokens are refused because another address solved them: name your proxy in POWGATE_TRUSTED_PROXIES, or see which address your backend sends. If as many as usual are redeemed, somebody posts tokens that were solved elsewhere.',
    )
  else if (areMost(countsOf(traffic.refusals, 'nonce-other-address'), traffic.passed))
    bad(
      "Most solutions are refused because another address asked for the challenge: name every proxy, and a CDN's networks, in POWGATE_TRUSTED_PROXIES. If as many as usual pass, these are bots that change addresses.",
    )
  else if (service.isProxyUntrusted) warn(PROXY_UNTRUSTED)
  else if (site === null && areMost(countsOf(limits, 'challenge address'), traffic.challenges))
    warn(
      'Most challenges are refused by the limit of an address: before you raise it, see that POWGATE_TRUSTED_PROXIES names your proxy.',
    )
}

/** Explains a limit that was reached, the likeliest cause first; empty if unknown. */
export function limitText(endpoint: string, policy: string, { isProxyUntrusted }: ServiceState): string {
  const isOfVisitors = endpoint === 'challenge' || endpoint === 'verify'
  const cause = isProxyUntrusted && isOfVisitors ? `${PROXY_UNTRUSTED} ` : ''
  return cause + limitWords(endpoint, policy)
}

function reportHistory(data: DashboardData, { bad, warn }: Report): void {
  const { service, site, isAmongOthers, isUnknown, lastMinute, unredeemed, workers, store, times } = data
  if (isUnknown) warn(`There is no site ${site}.`)
  else if (isAmongOthers) warn('This site is counted among Other sites.')
  if (lastMinute.faults > 0) {
    const count = lastMinute.faults === 1 ? '1 request' : `${exact(lastMinute.faults)} requests`
    bad(`${count} ran into a fault within the last minute: see the log.`)
  }
  // A backend may redeem at another host what has passed here.
  for (const { name, passed } of service.hosts.length > 1 ? [] : unredeemed.slice(0, UNREDEEMED_TOLD_MAX))
    bad(
      `${exact(passed)} visitors of ${name} have passed since one of its tokens was last redeemed: its backend does not reach powgate, has a wrong API key, or does not ask. Run powgate try where it runs. If nobody sends forms now, a bot solves challenges.`,
    )
  const crashed = occurrences(workers.crashes, times)
  if (crashed !== '') warn(`A worker or the store process ended or hung and was replaced${crashed}.`)
  const away = occurrences(store.outages, times)
  if (away !== '') warn(`Workers lost the store${away}.`)
  const lost = occurrences(workers.linesLost, times)
  if (lost !== '') warn(`Lines of the log were lost${lost}: a full disk or a stopped reader.`)
  const lagMs = workers.lagMs.at(-1) ?? 0
  if (lagMs > LAG_MS_MAX)
    warn(`Workers are late by ${milliseconds(lagMs)}: they have more work than they can do.`)
  const { storeP99Ms } = lastMinute
  if (storeP99Ms !== null && storeP99Ms > STORE_P99_MS_MAX)
    warn(`The store is slow: 99 % of its calls took up to ${milliseconds(storeP99Ms)}.`)
}

/** ", 3 times, last before 14:05:10", or nothing if nothing was counted. */
function occurrences(counts: readonly number[], times: readonly number[]): string {
  const total = sum(counts)
  if (total === 0) return ''
  const last = counts.findLastIndex(count => count > 0)
  return `${total === 1 ? '' : `, ${exact(total)} times`}, last before ${clockSeconds(times[last]!)}`
}
