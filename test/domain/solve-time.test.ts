/**
 * Difficulty from a requested solving time: the formula, fractions of a bit, and a draw that a repeated request does not change.
 * The speed of devices is learned from votes of simulated visitors: seeded log-normal speeds under the service's rules. Some
 * visitors lie, and all liars claim the same.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitKey, parseAddress } from '../../src/domain/address.ts'
import { isAtBound, type Learned, learn, mayVote, voteOf } from '../../src/domain/calibrator.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { baseAssumed, drawOf, SPEED_ASSUMED, timingFor, wholeBits } from '../../src/domain/solve-time.ts'
import { BLOCK_SIZE, COUNTER_MAX, FIRST_COUNTER, rangeStart, triesOf } from '../../src/protocol/proof.ts'

const SECRET = 'a test secret of more than thirty-two characters'
const OTHER_SECRET = 'another test secret of more than thirty-two characters'
const SITE_KEY = 'site_0123456789ABCDEFabcdef'
const MINUTE_MS = 60_000
const BOUNDS = { solveMs: 300, min: 16, max: 28 }

const macOf = (...secrets: string[]) => new Keyring(secrets).signing.drawMac

/** Share of visits that are not done after `seconds`, where speeds are log-normal around the median. */
function unfinished(work: number, median: number, sigma: number, seconds: number): number {
  let [sum, weights] = [0, 0]
  for (let z = -6; z <= 6; z += 0.001) {
    const weight = Math.exp((-z * z) / 2)
    sum += weight * Math.exp((-seconds * median * Math.exp(sigma * z)) / work)
    weights += weight
  }
  return sum / weights
}

test('95 of 100 visitors are done in time, whatever the time and the median device', () => {
  for (const solveMs of [100, 300, 2000]) {
    for (const lead of [-1.5, 0, 2]) {
      const { exactBase, medianSpeed } = timingFor({ ...BOUNDS, solveMs }, lead)
      assert.equal(medianSpeed, SPEED_ASSUMED * 2 ** lead)
      if (exactBase === 16) continue
      const late = unfinished(2 ** exactBase, medianSpeed, 1.2, solveMs / 1000)
      assert.ok(Math.abs(late - 0.05) < 0.001, `${solveMs} ms, ${lead}: ${late}`)
    }
  }
})

test('the base keeps to the bounds of the site, in steps of 1/256 bit', () => {
  assert.equal(timingFor(BOUNDS, 0).exactBase, Math.round(Math.log2(0.1224 * 12e6 * 0.3) * 256) / 256)
  assert.equal(timingFor(BOUNDS, -9).exactBase, 16)
  assert.equal(timingFor({ ...BOUNDS, max: 18 }, 0).exactBase, 18)
  assert.equal(baseAssumed(BOUNDS), 19)
  assert.equal(baseAssumed({ ...BOUNDS, min: 22 }), 22)
})

test('the mean work is that of the base within 1 % over a million draws', () => {
  const mac = macOf(SECRET)
  const bases = [18, 18.25, 19.4375, 20.99609375]
  const works = bases.map(() => 0)
  const draws = 1_000_000
  for (let visitor = 0; visitor < draws; visitor++) {
    const draw = drawOf(mac, SITE_KEY, visitor.toString(16).padStart(8, '0'), 0)
    for (const [index, base] of bases.entries()) works[index]! += 2 ** (wholeBits(base, draw) - base)
  }
  for (const [index, work] of works.entries())
    assert.ok(Math.abs(work / draws - 1) < 0.01, `${bases[index]}: ${work / draws}`)
})

test('whoever asks again within a minute, at any worker, gains nothing', () => {
  const workers = [macOf(SECRET), macOf(SECRET), macOf(SECRET, OTHER_SECRET)]
  const base = 19.5
  let [first, best] = [0, 0]
  for (let visitor = 0; visitor < 20_000; visitor++) {
    const key = limitKey(parseAddress(`10.${visitor >> 8}.${visitor & 0xff}.7`)!, 64)
    const asked = Array.from({ length: 30 }, (_, time) =>
      wholeBits(base, drawOf(workers[time % 3]!, SITE_KEY, key, MINUTE_MS + time * 1999)),
    )
    first += 2 ** asked[0]!
    best += 2 ** Math.min(...asked)
  }
  assert.ok(best / first > 0.99, String(best / first))
})

test('another minute, address, site or secret draws anew', () => {
  const draws = [SECRET, OTHER_SECRET].flatMap(secret =>
    [SITE_KEY, `${SITE_KEY.slice(0, -1)}g`].flatMap(siteKey =>
      ['0a000001', 'f'.repeat(32)].flatMap(key => [
        drawOf(macOf(secret), siteKey, key, 0),
        drawOf(macOf(secret), siteKey, key, 2 ** 45),
      ]),
    ),
  )
  assert.equal(new Set(draws).size, 16)
})

test('a counter tells the tries of all threads together, whatever their number', () => {
  for (let threads = 1; threads <= 12; threads++) {
    for (let index = 0; index < threads; index++) {
      const start = rangeStart(index, threads)
      assert.equal(start % BLOCK_SIZE, 0)
      for (const own of [1, 77_777, 2 ** 36]) assert.equal(triesOf(start + own - 1), own * threads)
    }
  }
  for (const counter of [0, FIRST_COUNTER - 1, COUNTER_MAX]) assert.equal(triesOf(counter), undefined)
})

const DAY_MS = 86_400_000
const SIGMA = 0.8
const BITS = 18

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
  /** Share of visitors that claim to be fast or slow devices, and enough tries to vote. */
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
    const isLie = share() < liars
    const told = isLie ? Math.max(tries, 2 ** 20) : tries
    const counter = rangeStart(Math.floor(share() * threads), threads) + Math.floor(told / threads)
    const truthMs = Math.ceil((tries / (median * Math.exp(SIGMA * normal))) * 1000)
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
    yield { ...learned!, nowMs, voted }
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

test('it rests at the median; of all visitors, one liar in 43 moves it by 0.12 bit at most, a fifth by 0.7', () => {
  for (const [liars, most] of Object.entries({ 0: 0.05, [1 / 43]: 0.12, 0.2: 0.7 })) {
    for (const claims of ['fast', 'slow'] as const) {
      const all = [...estimates(80_000, { lead: 0.5, liars: Number(liars), claims })]
      const moved = meanOf(all.slice(4000).map(({ lead }) => lead)) - 0.5
      assert.ok(Math.abs(moved) <= most, `${liars}, ${claims}: ${moved}`)
      assert.ok(liars === '0' || moved > 0 === (claims === 'fast'))
    }
  }
})

test('whoever votes: three bits on the first day, then half a bit a day, and that is told', () => {
  const days: Learned[] = []
  for (const learned of estimates(200_000, { lead: 0, liars: 1, claims: 'slow', msBetween: 20_000 }))
    days[Math.floor((learned.nowMs - 1.8e12 - 20_000) / DAY_MS)] = learned
  assert.equal(days.length, 5)
  for (const [day, { lead }] of days.entries()) assert.ok(lead >= -3 - day / 2, `day ${day}: ${lead}`)
  assert.deepEqual(
    days.slice(0, 2).map(({ lead }) => lead),
    [-3, -3.5],
    'and so much it does move',
  )
  assert.ok(days.every(isAtBound))
  const honest = [...estimates(20_000, { lead: 0.3 })].at(-1)!
  assert.equal(isAtBound(honest), false)
  const slow = learn({ lead: 0.25, leadOfDay: 0.25, dayAtMs: 0 }, DAY_MS - 1, -1e6)
  assert.equal(slow.lead, -0.25)
  assert.equal(learn(slow, DAY_MS - 1, 1e6).lead, 0.75)
  assert.deepEqual(learn(slow, DAY_MS, 1e6), { lead: 0.25, leadOfDay: -0.25, dayAtMs: DAY_MS })
  assert.equal(learn(slow, -1000, -1e6).leadOfDay, 0.25, 'a clock that goes back gives no second day')
})

test('who votes: likely tries, enough of them, in a time that can be', () => {
  const signals = { difficulty: 20, elapsedMs: 1000 }
  const vote = (tries: number, solveTimeMs: number, lead = 0) =>
    voteOf({ counter: rangeStart(0, 1) + tries - 1, solveTimeMs }, signals, lead)
  assert.deepEqual([vote(2 ** 17 - 1, 100), vote(2 ** 17, 100)], [0, -1])
  assert.deepEqual([0, 0.2499, 0.25, 0.9].map(mayVote), [true, true, false, false])
  assert.deepEqual([vote(2 ** 24, 1000), vote(2 ** 24 + 1, 1000)], [1, 0])
  assert.deepEqual([vote(12e6, 1000), vote(12e6, 1001), vote(12e6, 999)], [-1, 0, 1])
  assert.deepEqual([vote(12e6, 0), vote(12e6, -5)], [0, 0])
  assert.deepEqual([vote(12e6, 999, 0.1), vote(12e6, 900, 0.1)], [-1, 1])
  assert.equal(voteOf({ counter: 12e6, solveTimeMs: 500 }, signals, 0), 0, 'of no widget')
  assert.equal(voteOf({ counter: rangeStart(0, 1) + 12e6 }, signals, 0), 0, 'without a claim')
})
