/**
 * The speed of visitors' devices, learned from votes: seeded draws of log-normal devices at the service's own rules. Some
 * visitors lie, and all liars say the same.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Learned, learn, voteOf } from '../../src/domain/calibrator.ts'
import { SPEED_ASSUMED } from '../../src/domain/solve-time.ts'
import { rangeStart } from '../../src/protocol/proof.ts'

const DAY_MS = 86_400_000
const SIGMA = 0.8
const BITS = 20

/** Draws of shares; equal seeds draw equally. (Linear congruential, of 48 bits: Knuth.) */
function shares(seed: number): () => number {
  let state = BigInt(seed)
  return () => {
    state = (state * 25214903917n + 11n) & 0xffffffffffffn
    return Number(state >> 16n) / 2 ** 32
  }
}

interface Visits {
  /** How much faster than assumed the median device is, bits. */
  readonly lead: number
  /** Share of visitors that claim to be fast or slow devices. */
  readonly liars?: number
  readonly claims?: 'fast' | 'slow'
  readonly msBetween?: number
  readonly seed?: number
}

/** The estimate after each exchange of two workers, with at most ten votes each, until so many have voted. */
function* estimates(votes: number, { lead, liars = 0, claims = 'fast', msBetween = 1000, seed = 1 }: Visits) {
  const share = shares(seed)
  const median = SPEED_ASSUMED * 2 ** lead
  let learned: Learned | undefined
  let nowMs = 1.8e12
  const sums = [0, 0]
  for (let voted = 0; voted < votes; ) {
    const tries = -Math.log(1 - share()) * 2 ** BITS
    const normal = Math.sqrt(-2 * Math.log(1 - share())) * Math.cos(2 * Math.PI * share())
    const threads = 1 + Math.floor(share() * 8)
    const counter = rangeStart(Math.floor(share() * threads), threads) + Math.floor(tries / threads)
    const truthMs = Math.ceil((tries / (median * Math.exp(SIGMA * normal))) * 1000)
    const isLie = share() < liars
    const solveTimeMs = isLie ? (claims === 'fast' ? 1 : truthMs + 90_000) : truthMs
    const signals = { difficulty: BITS, elapsedMs: Math.max(truthMs, solveTimeMs) + 160 }
    const vote = voteOf({ counter, solveTimeMs }, signals, learned?.lead ?? 0)
    if (vote === 0) continue
    voted++
    sums[voted % 2]! += vote
    if (voted % 10 !== 0) continue
    nowMs += msBetween
    for (const sum of sums) learned = learn(learned, nowMs, sum)
    sums.fill(0)
    yield { lead: learned!.lead, nowMs, voted }
  }
}

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value) / values.length

test('from four times wrong to within a quarter of a bit, after 10,000 votes', () => {
  for (const lead of [-2, 2]) {
    for (const seed of [1, 2, 3]) {
      const after = [...estimates(10_000, { lead, seed })].at(-1)!
      assert.ok(Math.abs(after.lead - lead) <= 0.25, `${lead}, seed ${seed}: ${after.lead}`)
    }
  }
})

test('it rests at the median; a fifth of liars moves it by 0.4 bit at most, two fifths by 1.2', () => {
  for (const [liars, most] of Object.entries({ 0: 0.03, 0.2: 0.4, 0.4: 1.2 })) {
    for (const claims of ['fast', 'slow'] as const) {
      const all = [...estimates(80_000, { lead: 0.5, liars: Number(liars), claims })]
      const moved = meanOf(all.slice(4000).map(({ lead }) => lead)) - 0.5
      assert.ok(Math.abs(moved) <= most, `${liars}, ${claims}: ${moved}`)
      assert.ok(liars === '0' || moved > 0 === (claims === 'fast'))
    }
  }
})

test('whoever votes: three bits on the first day, then one a day', () => {
  const days: number[] = []
  for (const { lead, nowMs } of estimates(200_000, { lead: 0, liars: 1, claims: 'slow', msBetween: 20_000 }))
    days[Math.floor((nowMs - 1.8e12 - 20_000) / DAY_MS)] = lead
  assert.equal(days.length, 5)
  for (const [day, lead] of days.entries()) assert.ok(lead >= -3 - day, `day ${day}: ${lead}`)
  assert.deepEqual(days.slice(0, 2), [-3, -4], 'and so much it does move')
  const slow = learn({ lead: 0.25, leadOfDay: 0.25, dayAtMs: 0 }, DAY_MS - 1, -1e6)
  assert.equal(slow.lead, -0.75)
  assert.equal(learn(slow, DAY_MS - 1, 1e6).lead, 1.25)
  assert.deepEqual(learn(slow, DAY_MS, 1e6), { lead: 0.25, leadOfDay: -0.75, dayAtMs: DAY_MS })
  assert.equal(learn(slow, -1000, -1e6).leadOfDay, 0.25, 'a clock that goes back gives no second day')
})

test('who votes: likely tries, enough of them, in a time that can be', () => {
  const signals = { difficulty: 20, elapsedMs: 1000 }
  const vote = (tries: number, solveTimeMs: number, lead = 0) =>
    voteOf({ counter: rangeStart(0, 1) + tries - 1, solveTimeMs }, signals, lead)
  assert.deepEqual([vote(2 ** 20 - 1, 100), vote(2 ** 20, 100)], [0, -1])
  assert.deepEqual([vote(2 ** 24, 1000), vote(2 ** 24 + 1, 1000)], [1, 0])
  assert.deepEqual([vote(12e6, 1000), vote(12e6, 1001), vote(12e6, 999)], [-1, 0, 1])
  assert.deepEqual([vote(12e6, 0), vote(12e6, -5)], [0, 0])
  assert.deepEqual([vote(12e6, 999, 0.1), vote(12e6, 900, 0.1)], [-1, 1])
  assert.equal(voteOf({ counter: 12e6, solveTimeMs: 500 }, signals, 0), 0, 'of no widget')
  assert.equal(voteOf({ counter: rangeStart(0, 1) + 12e6 }, signals, 0), 0, 'without a claim')
})
