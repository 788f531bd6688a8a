/** Generates the counters of a busy service over a day: large and small sites, an attack, an outage, a crash. */

import { ADD_MS, type Fleet, History } from '../../src/metrics/history.ts'
import type { Histogram, SiteStats, StatsSnapshot } from '../../src/metrics/snapshot.ts'
import { EMPTY_SITE, EMPTY_STATS } from '../harness/metrics.ts'
import { words } from '../harness/values.ts'

const DAY_MS = 86_400_000
const SITES = 60
const FINE_MS = 40 * 60_000

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends object ? Mutable<T[K]> : T[K] }

/** To be counted on. */
export function emptySnapshot(): Mutable<StatsSnapshot> {
  return structuredClone(EMPTY_STATS) as Mutable<StatsSnapshot>
}

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
  const totals = emptySnapshot()
  for (let index = 0; index < SITES; index++)
    totals.sites[siteKeyOf(index)] = structuredClone(EMPTY_SITE) as Mutable<SiteStats>
  let crashes = 0
  // Only the last part is looked at in steps as short as they are in truth.
  const stepOf = (at: number) => (endMs - at > FINE_MS ? 12 * ADD_MS : ADD_MS)
  for (let at = endMs - lengthMs + ADD_MS; at <= endMs; at += stepOf(at)) {
    const stepMs = stepOf(at)
    const beforeEndMs = endMs - at
    const isAttacked = beforeEndMs < 14 * 60_000 && beforeEndMs > 6 * 60_000
    const isAway = beforeEndMs < 20 * 60_000 && beforeEndMs > 18 * 60_000
    const daily = 1.1 + Math.sin((2 * Math.PI * at) / DAY_MS)
    for (let index = 0; index < SITES; index++) {
      const usual = (((daily * 400 * stepMs) / ADD_MS) * (0.7 + 0.6 * random())) / (index + 1)
      addTraffic(
        totals,
        siteKeyOf(index),
        Math.round(usual * (isAttacked && index === 1 ? 6 : 1)),
        isAttacked,
        random,
      )
    }
    if (isAway && beforeEndMs >= 20 * 60_000 - ADD_MS) totals.storeOutages += 2
    if (beforeEndMs === 19 * 60_000) crashes++
    addStore(totals, random)
    const gauges = totals.gauges
    gauges.storeUp = isAway ? 0 : 1
    gauges.residentBytes = 2 ** 20 * (180 + 20 * random())
    gauges.eventLoopLagSeconds.p99 = 0.001 + 0.004 * random() * daily
    const fleet: Fleet = { running: 2, restarts: { crash: crashes, hang: 0, roll: 0 } }
    history.add(at, structuredClone(totals), fleet)
  }
  return history
}

function addTraffic(
  totals: Mutable<StatsSnapshot>,
  siteKey: string,
  challenges: number,
  isAttacked: boolean,
  random: () => number,
): void {
  const site = totals.sites[siteKey]!
  const verified = Math.round(challenges * 0.93)
  const failed = Math.round(verified * (isAttacked ? 0.3 : 0.02) * random())
  const passed = verified - failed
  const redeemed = Math.round(passed * 0.97)
  site.challenges += challenges
  site.passed += passed
  site.failed += failed
  site.redeemed += redeemed
  count(totals.answers, 'challenge 200 ok', challenges)
  count(totals.answers, 'verify 200 ok', passed)
  count(totals.answers, 'verify 200 failed', failed)
  count(totals.answers, 'verify-token 200 ok', redeemed)
  const bits = String(18 + (isAttacked ? Math.floor(4 * random()) : random() < 0.05 ? 1 : 0))
  for (const counts of [totals.difficulties, site.difficulties]) count(counts, bits, challenges)
  for (const scores of [totals.scores, site.scores]) {
    scores[10]! += Math.round(passed * 0.8)
    scores[7]! += Math.round(passed * 0.15)
    scores[5]! += Math.round(passed * 0.05)
    scores[2]! += Math.round(failed * 0.5)
    scores[0]! += Math.round(failed * 0.5)
  }
  for (const [rank, reason] of FAILURES.entries()) {
    const times = Math.round((failed * random()) / (rank + 1))
    for (const counts of [totals.reasons, site.reasons]) count(counts, reason, times)
  }
  for (const [rank, reason] of REFUSALS.entries()) {
    const times = Math.round((challenges * random() * (isAttacked ? 0.2 : 0.01)) / (rank + 1))
    count(site.refused, reason, times)
    count(totals.answers, `verify 400 ${reason}`, times)
    if (reason === 'rate-limited')
      count(totals.limited, random() < 0.6 ? 'challenge address' : 'verify address-site', times)
  }
  for (const [part, base] of [
    ['challenge', 0.0003],
    ['verify', 0.0008],
    ['verify-token', 0.0006],
  ] as const) {
    for (let sample = 0; sample < 3; sample++)
      observe(totals.latencies[part]!, base * (0.5 + 3 * random() ** 3) * (isAttacked ? 2 : 1))
  }
}

function addStore(totals: Mutable<StatsSnapshot>, random: () => number): void {
  for (let call = 0; call < 20; call++) {
    observe(totals.storeLatency, 0.0003 * (0.5 + 4 * random() ** 4))
    const operations = 1 + Math.floor(6 * random() ** 2)
    observe(totals.storeBatch, operations)
  }
}

function observe(into: Mutable<Histogram>, value: number): void {
  const bucket = into.bounds.findIndex(bound => value <= bound)
  into.counts[bucket < 0 ? into.bounds.length : bucket]! += 1
  into.sum += value
}

function count(into: Record<string, number>, key: string, times: number): void {
  if (times > 0) into[key] = (into[key] ?? 0) + times
}
