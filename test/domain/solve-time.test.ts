/** Difficulty from a wanted time: the formula, fractions of a bit, and the draw that asking again does not change. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitKey, parseAddress } from '../../src/domain/address.ts'
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
