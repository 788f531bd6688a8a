/** The counters of a busy service over a day, for a full dashboard: large and small sites, one of which is attacked, an outage, a crash. */

import { ADD_MS, History } from '../../src/dashboard/history.ts'
import type { Values } from '../../src/metrics/table.ts'
import { numbers, words } from '../harness/values.ts'

const DAY_MS = 86_400_000
const SITES = 60

export const siteKeyOf = (index: number): string => `site_${String(index).padStart(22, 'A')}`

const NAMES = ['shop.example', 'forum.example', 'tickets.example', 'a-rather-long-name-of-a-site.example']
const REASONS = words(
  'webdriver swiftShader proof-wrong solveTimeImpossible recentFailure noLanguages ip-blocked',
)
const REFUSALS = words('nonce-expired nonce-used origin-refused token-used token-expired rate-limited')

/** @param endMs Unix milliseconds of the last step. 14 to 6 minutes before it one site is attacked, and 20 to 18 before the store is away. */
export function sampleDay(endMs: number): History {
  const history = new History(endMs - DAY_MS, siteKey => NAMES[Number(siteKey.slice(-2).replaceAll('A', ''))])
  const sites: Record<string, Values> = {}
  const all: Values = {}
  let startMs = endMs - DAY_MS
  while (startMs < endMs) {
    // Counts change every 10 s in the last 40 minutes, which the page shows in such steps, and every 2 min before, to save time.
    const stepMs = endMs - startMs > 40 * 60_000 ? 12 * ADD_MS : ADD_MS
    const at = startMs + stepMs
    const minutesLeft = (endMs - at) / 60_000
    const isAttacked = minutesLeft < 14 && minutesLeft > 6
    // About 400 in 10 s at the largest site, in a wave that comes once a day.
    const visits = Math.round((stepMs / ADD_MS) * 400 * (1.1 + Math.sin((2 * Math.PI * at) / DAY_MS)))
    for (let index = 0; index < SITES; index++) {
      const isTarget = isAttacked && index === 1
      const counts = trafficOf(Math.round(((isTarget ? 6 : 1) * visits) / (index + 1)), isTarget)
      add((sites[siteKeyOf(index)] ??= {}), counts)
      add(all, counts)
    }
    // What follows only has to be there.
    for (const endpoint of words('challenge verify verify-token siteverify'))
      add(all, { [`requestSeconds ${endpoint} 0.0005`]: visits, [`requestSeconds ${endpoint} 0.005`]: 20 })
    add(all, { 'storeSeconds 0.0005': 9 })
    add(all, { 'limited challenge address': 5, 'restarts crash': minutesLeft === 19 ? 1 : 0 })
    const storeUp = minutesLeft < 20 && minutesLeft > 18 ? 0 : 1
    const gauges = { storeUp, 'lag 0 p99': 0.004 }
    const snapshot = { values: { ...all, ...gauges }, sites: structuredClone(sites) }
    // History wants a call each ADD_MS.
    for (let addMs = startMs + ADD_MS; addMs <= at; addMs += ADD_MS) history.add(addMs, snapshot)
    startMs = at
  }
  return history
}

/** Counters of one site for one step, by the names of metrics/table.ts: key of the metric, then its labels. */
function trafficOf(challenges: number, isAttacked: boolean): Values {
  const failed = Math.round(challenges * (isAttacked ? 0.2 : 0.01))
  const passed = challenges - 2 * failed // the others fail, are refused, or left
  const bits = isAttacked ? 21 : 18
  const ranked = (kind: string, names: readonly string[]): Values =>
    Object.fromEntries(names.map((name, rank) => [`${kind} ${name}`, Math.round(failed / (rank + 1))]))
  return {
    ...numbers(
      `requests challenge 200 ok: ${challenges}, requests verify 200 ok: ${passed}, requests verify 200 failed: ${failed}`,
      `requests verify-token 200 ok: ${passed - failed}, scores 0.29: ${failed}, scores Infinity: ${passed}`,
      `difficulty sha256 ${bits}: ${challenges}, difficulty sha256 sum: ${bits * challenges}`,
    ),
    ...ranked('reasons', REASONS),
    ...ranked('requests verify 400', REFUSALS),
  }
}

function add(values: Values, more: Values): void {
  for (const name in more) values[name] = (values[name] ?? 0) + more[name]!
}
