/** The counters of a busy service over a day: large and small sites, an attack, an outage, a crash. */

import { ADD_MS, History } from '../../src/metrics/history.ts'
import type { Values } from '../../src/metrics/table.ts'
import { seededRandom, words } from '../harness/values.ts'

const DAY_MS = 86_400_000
const SITES = 60
const FINE_MS = 40 * 60_000

export function siteKeyOf(index: number): string {
  return `site_${String(index).padStart(22, 'A')}`
}

const NAMES = ['shop.example', 'forum.example', 'tickets.example', 'a-rather-long-name-of-a-site.example']
const REASONS = words(
  'webdriver swiftShader proof-wrong solveTimeImpossible recentFailure noLanguages ip-blocked',
)
const REFUSALS = words(
  'nonce-expired nonce-other-address nonce-used origin-refused token-used token-expired rate-limited',
)

/** @param endMs Unix milliseconds of the last step */
export function sampleDay(endMs: number): History {
  const history = new History(endMs - DAY_MS, siteKey => NAMES[Number(siteKey.slice(-2).replaceAll('A', ''))])
  const integer = seededRandom(7)
  const random = () => integer() / 2 ** 32
  const sites: Record<string, Values> = {}
  const service: Values = {}
  // Only the last part is looked at in steps as short as they are in truth.
  const stepOf = (at: number) => (endMs - at > FINE_MS ? 12 * ADD_MS : ADD_MS)
  for (let at = endMs - DAY_MS + ADD_MS; at <= endMs; at += stepOf(at)) {
    const minutesLeft = (endMs - at) / 60_000
    const isAttacked = minutesLeft < 14 && minutesLeft > 6
    const isAway = minutesLeft < 20 && minutesLeft > 18
    const visits = (stepOf(at) / ADD_MS) * 400 * (1.1 + Math.sin((2 * Math.PI * at) / DAY_MS))
    for (let index = 0; index < SITES; index++) {
      const flood = isAttacked && index === 1 ? 6 : 1
      const site = (sites[siteKeyOf(index)] ??= {})
      addTraffic(
        site,
        Math.round((visits * flood * (0.7 + 0.6 * random())) / (index + 1)),
        isAttacked,
        random,
      )
    }
    for (const endpoint of ['challenge', 'verify', 'verify-token', 'siteverify'])
      for (const [bound, share] of [
        [0.0005, 0.7],
        [0.001, 0.25],
        [0.005, 0.05],
      ] as const)
        add(service, `requestSeconds ${endpoint} ${bound}`, Math.round(visits * share * random()))
    for (const name of ['storeSeconds 0.0005', 'storeBatch 4', 'limited challenge address'])
      add(service, name, Math.round(20 * random()))
    add(service, 'storeBatch sum', 40)
    if (Math.abs(minutesLeft - 19) < 0.1) add(service, 'restarts crash', 1)
    const gauges = {
      workers: 2,
      storeUp: isAway ? 0 : 1,
      'residentBytes worker-0': 2e8,
      'lag 0 p99': 0.004 * random(),
    }
    history.add(at, {
      values: { ...sumOf([service, ...Object.values(sites)]), ...gauges },
      sites: structuredClone(sites),
    })
  }
  return history
}

function addTraffic(site: Values, challenges: number, isAttacked: boolean, random: () => number): void {
  const failed = Math.round(challenges * (isAttacked ? 0.3 : 0.02) * random())
  const passed = Math.round(challenges * 0.93) - failed
  const bits = 18 + (isAttacked ? Math.floor(4 * random()) : 0)
  const counts: Values = {
    'requests challenge 200 ok': challenges,
    'requests verify 200 ok': passed,
    'requests verify 200 failed': failed,
    'requests verify-token 200 ok': Math.round(passed * 0.97),
    [`difficulty sha256 ${bits}`]: challenges,
    'difficulty sha256 sum': bits * challenges,
    'scores 0.29': failed,
    'scores 0.79': Math.round(passed * 0.2),
    'scores Infinity': Math.round(passed * 0.8),
  }
  for (const [rank, reason] of REASONS.entries())
    counts[`reasons ${reason}`] = Math.round(failed / (rank + 1))
  for (const [rank, reason] of REFUSALS.entries())
    counts[`requests verify 400 ${reason}`] = Math.round(
      (challenges * (isAttacked ? 0.2 : 0.01)) / (rank + 1),
    )
  for (const name in counts) add(site, name, counts[name]!)
}

function add(values: Values, name: string, count: number): void {
  values[name] = (values[name] ?? 0) + count
}

function sumOf(all: readonly Values[]): Values {
  const sums: Values = {}
  for (const values of all) for (const name in values) add(sums, name, values[name]!)
  return sums
}
