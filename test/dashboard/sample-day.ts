/** Generates the counters of a busy service over a day: large and small sites, an attack, an outage, a crash. */

import {
  type Counts,
  newCounts,
  newSiteCounts,
  type Series,
  type SiteCounts,
  valuesOf,
} from '../../src/metrics/counters.ts'
import { ADD_MS, History } from '../../src/metrics/history.ts'
import type { Values } from '../../src/metrics/table.ts'
import { words } from '../harness/values.ts'

const DAY_MS = 86_400_000
const SITES = 60
const FINE_MS = 40 * 60_000

/** The same numbers at each run. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

export function siteKeyOf(index: number): string {
  return `site_${String(index).padStart(22, 'A')}`
}

const NAMES = ['shop.example', 'forum.example', 'tickets.example', 'a-rather-long-name-of-a-site.example']

export function sampleSiteName(siteKey: string): string | undefined {
  return NAMES[Number(siteKey.slice(-2).replaceAll('A', '')) % 10]
}

const FAILURES = words(
  'webdriver swiftShader environmentMissing proof-wrong fingerprintSpread',
  'hashRateImplausible recentFailure noLanguages ip-blocked',
)
const REFUSALS = words(
  'nonce-expired nonce-other-address nonce-used origin-refused token-used token-expired',
  'rate-limited body-shape site-unknown not-found',
)

/** @param endMs Unix milliseconds of the last step */
export function sampleDay(endMs: number, lengthMs = DAY_MS): History {
  const history = new History(endMs - lengthMs, sampleSiteName)
  const random = randomNumbers(7)
  const totals = newCounts()
  const sites = Array.from({ length: SITES }, newSiteCounts)
  // Only the last part is looked at in steps as short as they are in truth.
  const stepOf = (at: number) => (endMs - at > FINE_MS ? 12 * ADD_MS : ADD_MS)
  for (let at = endMs - lengthMs + ADD_MS; at <= endMs; at += stepOf(at)) {
    const stepMs = stepOf(at)
    const beforeEndMs = endMs - at
    const isAttacked = beforeEndMs < 14 * 60_000 && beforeEndMs > 6 * 60_000
    const isAway = beforeEndMs < 20 * 60_000 && beforeEndMs > 18 * 60_000
    const daily = 1.1 + Math.sin((2 * Math.PI * at) / DAY_MS)
    for (const [index, site] of sites.entries()) {
      const usual = (((daily * 400 * stepMs) / ADD_MS) * (0.7 + 0.6 * random())) / (index + 1)
      const challenges = Math.round(usual * (isAttacked && index === 1 ? 6 : 1))
      addTraffic(totals, site, challenges, isAttacked, random)
    }
    if (isAway && beforeEndMs >= 20 * 60_000 - ADD_MS) totals.storeOutages.add(2)
    if (beforeEndMs === 19 * 60_000) totals.restarts.at('crash').add()
    addStore(totals, random)
    const ofSites = sites.map(valuesOf)
    history.add(at, {
      values: {
        ...sumOf([valuesOf(totals), ...ofSites]),
        workers: 2,
        storeUp: isAway ? 0 : 1,
        'residentBytes worker-0': 2 ** 20 * (180 + 20 * random()),
        'lag 0 p99': 0.001 + 0.004 * random() * daily,
      },
      sites: Object.fromEntries(ofSites.map((values, index) => [siteKeyOf(index), values])),
    })
  }
  return history
}

function sumOf(all: readonly Values[]): Values {
  const sums: Values = {}
  for (const values of all) for (const name in values) sums[name] = (sums[name] ?? 0) + values[name]!
  return sums
}

function addTraffic(
  totals: Counts,
  site: SiteCounts,
  challenges: number,
  isAttacked: boolean,
  random: () => number,
): void {
  const verified = Math.round(challenges * 0.93)
  const failed = Math.round(verified * (isAttacked ? 0.3 : 0.02) * random())
  const passed = verified - failed
  const redeemed = Math.round(passed * 0.97)
  const answered = (endpoint: string, status: number, outcome: string, times: number) =>
    site.requests.at(endpoint).at(status).at(outcome).add(times)
  answered('challenge', 200, 'ok', challenges)
  answered('verify', 200, 'ok', passed)
  answered('verify', 200, 'failed', failed)
  answered('verify-token', 200, 'ok', redeemed)
  const bits = 18 + (isAttacked ? Math.floor(4 * random()) : random() < 0.05 ? 1 : 0)
  add(site.difficulty, bits, challenges)
  add(site.scores, 1, Math.round(passed * 0.8))
  add(site.scores, 0.75, Math.round(passed * 0.15))
  add(site.scores, 0.55, Math.round(passed * 0.05))
  add(site.scores, 0.25, Math.round(failed * 0.5))
  add(site.scores, 0.05, Math.round(failed * 0.5))
  for (const [rank, reason] of FAILURES.entries()) {
    site.reasons.at(reason).add(Math.round((failed * random()) / (rank + 1)))
  }
  for (const [rank, reason] of REFUSALS.entries()) {
    const times = Math.round((challenges * random() * (isAttacked ? 0.2 : 0.01)) / (rank + 1))
    answered('verify', 400, reason, times)
    if (reason !== 'rate-limited') continue
    if (random() < 0.6) totals.limited.at('challenge').at('address').add(times)
    else totals.limited.at('verify').at('address-site').add(times)
  }
  for (const [part, base] of [
    ['challenge', 0.0003],
    ['verify', 0.0008],
    ['verify-token', 0.0006],
    ['siteverify', 0.0007],
  ] as const) {
    for (let sample = 0; sample < 3; sample++)
      totals.requestSeconds.at(part).add(base * (0.5 + 3 * random() ** 3) * (isAttacked ? 2 : 1))
  }
}

function addStore({ storeSeconds, storeBatch }: Counts, random: () => number): void {
  for (let call = 0; call < 20; call++) {
    storeSeconds.add(0.0003 * (0.5 + 4 * random() ** 4))
    storeBatch.add(1 + Math.floor(6 * random() ** 2))
  }
}

function add(histogram: Series, value: number, times: number): void {
  for (let time = 0; time < times; time++) histogram.add(value)
}
