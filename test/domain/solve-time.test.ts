/** Difficulty from a requested solving time: the formula, fractions of a bit, and a draw that a repeated request does not change. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keyring } from '../../src/domain/keyring.ts'
import { baseOf, boundsOf, DEVICE_CLASSES, drawOf, wholeBits } from '../../src/domain/solve-time.ts'
import {
  BLOCK_SIZE,
  COUNTER_MAX,
  FIRST_COUNTER,
  GPU_START,
  rangeStart,
  triesOf,
} from '../../src/protocol/proof.ts'

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

test('95 of 100 visitors with the devices of the table are done in time', () => {
  for (const [puzzle, solveMs] of [
    ['sha256', 150],
    ['sha256', 300],
    ['sha256', 2000],
    ['hashwx', 300],
    ['hashwx', 2000],
  ] as const) {
    const work = 2 ** baseOf({ ...BOUNDS, solveMs }, puzzle)
    let late = 0
    for (const { share, medianMhs, sigma } of DEVICE_CLASSES)
      late += share * unfinished(work, medianMhs[puzzle] * 1e6, sigma, solveMs / 1000)
    assert.ok(Math.abs(late - 0.05) < 0.001, `${puzzle}, ${solveMs} ms: ${late}`)
  }
})

test('the base keeps to the bounds of the site, in steps of 1/256 bit', () => {
  assert.equal(baseOf(BOUNDS), Math.round(Math.log2(1.835e6 * 0.3) * 256) / 256)
  assert.equal(baseOf({ ...BOUNDS, solveMs: 1 }), 16)
  assert.equal(baseOf({ ...BOUNDS, max: 18 }), 18)
})

test('a raise adds to the base, up to the maximum, whether the site names bits or a time', () => {
  const difficulty = { base: 18, min: 16, max: 28 }
  const boundsAt = (raised: number, some: { base: number; min: number; max: number; solveMs?: number }) =>
    boundsOf(macOf(SECRET), { siteKey: SITE_KEY, difficulty: some }, '0a000001', 0, raised)
  assert.deepEqual(boundsAt(0, difficulty), difficulty)
  assert.deepEqual(boundsAt(3, difficulty), { ...difficulty, base: 21, raise: 3 })
  assert.deepEqual(boundsAt(8, { ...difficulty, max: 22 }), { ...difficulty, max: 22, base: 22, raise: 4 })
  const timed = boundsAt(0, { ...difficulty, solveMs: 300 })
  assert.ok([18, 19].includes(timed.base) && timed.solveMs === 300, `${timed.base}`)
  assert.equal(boundsAt(2, { ...difficulty, solveMs: 300 }).base, timed.base + 2)
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

test('asking again within a minute, at any worker, draws the same difficulty', () => {
  const workers = [macOf(SECRET), macOf(SECRET), macOf(SECRET, OTHER_SECRET)]
  const base = 19.5
  let [first, best] = [0, 0]
  for (let visitor = 0; visitor < 20_000; visitor++) {
    const key = visitor.toString(16).padStart(10, '0')
    const asked = Array.from({ length: 30 }, (_, time) =>
      wholeBits(base, drawOf(workers[time % 3]!, SITE_KEY, key, MINUTE_MS + time * 1999)),
    )
    first += 2 ** asked[0]!
    best += 2 ** Math.min(...asked)
  }
  assert.ok(best / first > 0.99, String(best / first))
})

test('another minute, address, site or secret draws anew', () => {
  const draws = new Set<number>()
  for (const mac of [SECRET, OTHER_SECRET].map(secret => macOf(secret)))
    for (const siteKey of [SITE_KEY, `${SITE_KEY.slice(0, -1)}g`])
      for (const key of ['0a000001', 'f'.repeat(32)])
        for (const atMs of [0, 2 ** 45]) draws.add(drawOf(mac, siteKey, key, atMs))
  assert.equal(draws.size, 16)
})

test('a counter tells the tries of all threads together, whatever their number', () => {
  for (let threads = 1; threads <= 12; threads++) {
    for (let index = 0; index < threads; index++) {
      const start = rangeStart(index, threads)
      assert.equal(start % BLOCK_SIZE, 0)
      for (const own of [1, 77_777, 2 ** 36]) assert.equal(triesOf(start + own - 1), own * threads)
    }
  }
  // The GPU's own range, which no thread has.
  assert.ok(rangeStart(11, 12) + 1e14 <= GPU_START)
  for (const own of [1, 77_777, 2 ** 36]) assert.equal(triesOf(GPU_START + own - 1), own)
  for (const counter of [0, FIRST_COUNTER - 1, COUNTER_MAX]) assert.equal(triesOf(counter), undefined)
})
