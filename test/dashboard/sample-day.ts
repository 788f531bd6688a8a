/** The counters of a busy service over a day: large and small sites, an attack, an outage, a crash. */

import { ADD_MS, History } from '../../src/metrics/history.ts'
import type { Values } from '../../src/metrics/table.ts'
import { seededRandom, words } from '../harness/values.ts'

const DAY_MS = 86_400_000
const SITES = 60

export const siteKeyOf = (index: number): string => `site_${String(index).padStart(22, 'A')}`

const NAMES = ['shop.example', 'forum.example', 'tickets.example', 'a-rather-long-name-of-a-site.example']
const REASONS = words(
  'webdriver swiftShader proof-wrong solveTimeImpossible recentFailure noLanguages ip-blocked',
)
const REFUSALS = words('nonce-expired nonce-used origin-refused token-used token-expired rate-limited')

/** @param endMs Unix milliseconds of the last step */
export function sampleDay(endMs: number): History {
  const history = new History(endMs - DAY_MS, siteKey => NAMES[Number(siteKey.slice(-2).replaceAll('A', ''))])
  const integer = seededRandom(7)
  const upTo = (count: number) => Math.round((count * integer()) / 2 ** 32)
  const sites: Record<string, Values> = {}
  const service: Values = {}
  // Only the last part is looked at in steps as short as they are in truth.
  const stepOf = (at: number) => (endMs - at > 40 * 60_000 ? 12 * ADD_MS : ADD_MS)
  for (let at = endMs - DAY_MS + ADD_MS; at <= endMs; at += stepOf(at)) {
    const minutesLeft = (endMs - at) / 60_000
    const isAttacked = minutesLeft < 14 && minutesLeft > 6
    const visits = (stepOf(at) / ADD_MS) * 400 * (1.1 + Math.sin((2 * Math.PI * at) / DAY_MS))
    for (let index = 0; index < SITES; index++) {
      const flood = isAttacked && index === 1 ? 6 : 1
      addTraffic((sites[siteKeyOf(index)] ??= {}), upTo((visits * flood) / (index + 1)), isAttacked, upTo)
    }
    const counts: Values = { 'storeSeconds 0.0005': 9, 'storeBatch 4': 10, 'storeBatch sum': 40 }
    for (const endpoint of words('challenge verify verify-token siteverify'))
      for (const bound of [0.0005, 0.001, 0.005])
        counts[`requestSeconds ${endpoint} ${bound}`] = upTo(visits * 0.0005 * (1 / bound))
    counts['limited challenge address'] = upTo(20)
    if (Math.abs(minutesLeft - 19) < 0.1) counts['restarts crash'] = 1
    add(service, counts)
    const values = { 'residentBytes worker-0': 2e8, 'lag 0 p99': upTo(4) / 1000, workers: 2 }
    for (const some of [service, ...Object.values(sites)]) add(values, some)
    const storeUp = minutesLeft < 20 && minutesLeft > 18 ? 0 : 1
    history.add(at, { values: { ...values, storeUp }, sites: structuredClone(sites) })
  }
  return history
}

function addTraffic(
  site: Values,
  challenges: number,
  isAttacked: boolean,
  upTo: (count: number) => number,
): void {
  const failed = upTo(challenges * (isAttacked ? 0.3 : 0.02))
  const passed = Math.round(challenges * 0.93) - failed
  const bits = 18 + (isAttacked ? upTo(3) : 0)
  const ranked = (kind: string, names: readonly string[], most: number): Values =>
    Object.fromEntries(names.map((name, rank) => [`${kind} ${name}`, Math.round(most / (rank + 1))]))
  add(site, {
    'requests challenge 200 ok': challenges,
    'requests verify 200 ok': passed,
    'requests verify 200 failed': failed,
    'requests verify-token 200 ok': Math.round(passed * 0.97),
    [`difficulty sha256 ${bits}`]: challenges,
    'difficulty sha256 sum': bits * challenges,
    'scores 0.29': failed,
    'scores Infinity': passed,
    ...ranked('reasons', REASONS, failed),
    ...ranked('requests verify 400', REFUSALS, challenges * (isAttacked ? 0.2 : 0.01)),
  })
}

function add(values: Values, more: Values): void {
  for (const name in more) values[name] = (values[name] ?? 0) + more[name]!
}
