/** What must hold of a history whatever happened to Redis meanwhile, and what it cost. */

import assert from 'node:assert/strict'
import type { Issued, Load, Sample } from './load.ts'

/** Something that happened to Redis. */
export interface Disturbance {
  readonly name: string
  readonly fromMs: number
  /** When requests went through again, on every site. */
  readonly wellMs: number
  /**
   * From when on every worker knows of it. On a Cluster one whose requests need only the other servers may issue
   * challenges and tokens by the epoch that was, until it looks.
   */
  readonly knownMs: number
}

const ALLOWED: Record<Sample['endpoint'], readonly (number | undefined)[]> = {
  challenge: [200, 503],
  verify: [200, 400, 503],
  'verify-token': [200, 400, 503],
}

/** Answers that a busy machine's own delay is part of. */
const REFUSAL_MS_MAX = 4000

/** Fails if one does not hold; returns lines for a report. What is excused: tokens that were issued before a disturbance was known, which a new epoch of the store refuses. */
export function judge(load: Load, disturbances: readonly Disturbance[]): string[] {
  for (const sample of load.samples) {
    const { endpoint, status, code } = sample
    assert.ok(ALLOWED[endpoint].includes(status), `${endpoint} answered ${status} ${code}`)
    if (endpoint === 'verify' && status === 400) {
      assert.ok(code === 'nonce-used' || code === 'invalid-nonce', code)
      const isExcused = disturbances.some(disturbance => overlaps(sample, disturbance))
      assert.ok(isExcused, `a challenge was lost (${code}) though nothing happened to Redis`)
    }
  }
  const strangers = load.samples.filter(
    ({ endpoint, token }) => endpoint === 'verify-token' && token === undefined,
  )
  assert.ok(strangers.every(({ status }) => status !== 200))
  assert.ok(load.issued.length > 0)
  let forgotten = 0
  for (const issued of load.issued) if (judgeToken(issued, disturbances)) forgotten++
  const refusals = load.samples.filter(({ status }) => status === 503)
  const p99 = percentile(refusals, 0.99)
  assert.ok(p99 < REFUSAL_MS_MAX, `p99 of refusals is ${p99} ms`)
  return [
    `${load.samples.length} requests, ${load.issued.length} tokens: none redeemed twice, ${forgotten} forgotten`,
    ...disturbances.map(disturbance => costOf(load, disturbance)),
  ]
}

function overlaps({ startedMs, tookMs }: Sample, { fromMs, knownMs }: Disturbance): boolean {
  return startedMs < knownMs && startedMs + tookMs > fromMs
}

/** Returns whether the token was refused because the store's memory may have lost marks. */
function judgeToken({ token, issuedMs, attempts }: Issued, disturbances: readonly Disturbance[]): boolean {
  const redeemed = attempts.filter(({ status }) => status === 200)
  assert.ok(redeemed.length <= 1, `${token} was redeemed ${redeemed.length} times`)
  const known = attempts.filter(({ status }) => status === 400)
  const isForgotten = known.some(({ code }) => code === 'invalid-token')
  // Of an attempt that got 503 nobody knows whether it redeemed.
  const isUnknown = attempts.some(({ status }) => status === 503)
  if (known.some(({ code }) => code === 'token-used') && redeemed.length === 0)
    assert.ok(isUnknown || isForgotten, `${token} was used before it was redeemed`)
  for (const { code, startedMs, tookMs } of known) {
    assert.ok(code === 'token-used' || code === 'invalid-token', `${token}: ${code}`)
    if (code !== 'invalid-token') continue
    const isExcused = disturbances.some(
      ({ fromMs, knownMs }) => issuedMs < knownMs && startedMs + tookMs > fromMs,
    )
    const whenOf = ({ name, wellMs }: Disturbance) =>
      `issued ${Math.round(issuedMs - wellMs)}, refused ${Math.round(startedMs + tookMs - wellMs)} ms after the end of ${name}`
    assert.ok(isExcused, `${token} was forgotten: ${disturbances.map(whenOf).join('; ')}`)
  }
  return isForgotten
}

function costOf(load: Load, { name, fromMs, wellMs }: Disturbance): string {
  const during = load.samples.filter(({ startedMs }) => startedMs >= fromMs && startedMs < wellMs)
  const refusals = during.filter(({ status }) => status === 503)
  const [first, last] = [refusals[0], refusals.at(-1)]
  const degradedMs = first === undefined ? 0 : last!.startedMs + last!.tookMs - first.startedMs
  const byEndpoint = (endpoint: Sample['endpoint']) =>
    refusals.filter(sample => sample.endpoint === endpoint).length
  const used = during.filter(({ endpoint, status }) => endpoint === 'verify' && status === 400).length
  return [
    `${name}: ${refusals.length} of ${during.length} requests got 503 (challenge ${byEndpoint('challenge')},`,
    `verify ${byEndpoint('verify')}, verify-token ${byEndpoint('verify-token')}), ${used} challenges were lost;`,
    `degraded for ${Math.round(degradedMs)} ms; p99 of refusals ${Math.round(percentile(refusals, 0.99))} ms,`,
    `of all ${Math.round(percentile(during, 0.99))} ms`,
  ].join(' ')
}

function percentile(samples: readonly Sample[], share: number): number {
  const sorted = samples.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
