/** Sums of the workers' counters, through restarts and between versions. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Buckets, LATENCY_BOUNDS_SECONDS } from '../../src/metrics/counters.ts'
import { SITES_MAX, type SiteStats, type StatsSnapshot } from '../../src/metrics/snapshot.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { EMPTY_SITE, EMPTY_STATS } from '../harness/metrics.ts'

const SITE: SiteStats = { ...EMPTY_SITE, scores: [] }

function snapshot(fields: Partial<StatsSnapshot> = {}): StatsSnapshot {
  return { ...EMPTY_STATS, ...fields }
}

function answers(count: number): StatsSnapshot {
  return snapshot({ answers: { 'challenge 200 ok': count } })
}

const answered = (totals: Totals) => totals.current().answers['challenge 200 ok'] ?? 0

test('adds up everything that workers count', () => {
  const totals = new Totals()
  const latency = new Buckets(LATENCY_BOUNDS_SECONDS)
  latency.add(0.0004)
  latency.add(7)
  const batch = { ...EMPTY_STATS.storeBatch, counts: [1, 2, 0, 0, 0, 0, 0, 0, 3], sum: 900 }
  const one = snapshot({
    answers: { 'challenge 200 ok': 3, 'verify 400 nonce-used': 1 },
    latencies: { challenge: latency.snapshot() },
    aborted: { verify: 2 },
    faults: { content: 1 },
    storeLatency: latency.snapshot(),
    storeBatch: batch,
    storeOutages: 1,
    connectionsRefused: 5,
    difficulties: { 18: 3 },
    scores: [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2],
    scoreSum: 2.4,
    reasons: { webdriver: 1 },
    limited: { 'challenge address': 5 },
    sites: { site_a: { ...SITE, challenges: 3, passed: 2, refused: { 'nonce-used': 1 }, scores: [1] } },
  })
  totals.take('1', one, 0)
  const sites = { site_b: { ...SITE, redeemed: 1 }, site_a: { ...SITE, challenges: 1, scores: [0, 4] } }
  totals.take('2', { ...one, answers: { 'challenge 200 ok': 4 }, sites }, 1)
  const sum = totals.current()
  assert.deepEqual(sum.answers, { 'challenge 200 ok': 7, 'verify 400 nonce-used': 1 })
  const counts = latency.snapshot().counts.map(count => 2 * count)
  assert.deepEqual(sum.latencies, { challenge: { bounds: LATENCY_BOUNDS_SECONDS, counts, sum: 14.0008 } })
  assert.deepEqual(sum.aborted, { verify: 4 })
  assert.deepEqual(sum.faults, { content: 2 })
  assert.deepEqual([sum.storeLatency.sum, sum.storeBatch.sum, sum.storeOutages], [14.0008, 1800, 2])
  assert.equal(sum.connectionsRefused, 10)
  assert.deepEqual(sum.storeBatch.counts, [2, 4, 0, 0, 0, 0, 0, 0, 6])
  assert.deepEqual([sum.difficulties, sum.scoreSum, sum.scores[4], sum.scores[10]], [{ 18: 6 }, 4.8, 2, 4])
  assert.deepEqual([sum.reasons, sum.limited], [{ webdriver: 2 }, { 'challenge address': 10 }])
  const scores = [1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  assert.deepEqual(sum.sites.site_a, {
    ...SITE,
    ...{ challenges: 4, passed: 2 },
    refused: { 'nonce-used': 1 },
    scores,
  })
  assert.equal(sum.sites.site_b!.redeemed, 1)
})

test('a snapshot replaces the one before it; who is gone goes on counting, and its gauges do not', () => {
  const totals = new Totals()
  totals.take('1', answers(5), 0)
  totals.take('1', answers(8), 0)
  totals.take('2', answers(1), 1)
  assert.equal(answered(totals), 9)
  const { residentBytes } = totals.current().gauges
  totals.gone('1')
  assert.equal(answered(totals), 9)
  assert.deepEqual([totals.workers().length, totals.workers()[0]!.worker], [1, '2'])
  assert.ok(totals.current().gauges.residentBytes < residentBytes)
  totals.gone('2')
  totals.gone('2')
  assert.equal(answered(totals), 9)
  assert.deepEqual(totals.current().gauges.storeUp, 0)
})

test('last words that arrive after the end replace what was counted, and never count twice', () => {
  const totals = new Totals()
  totals.take('1', answers(5), 0)
  totals.gone('1')
  totals.take('1', answers(7), 0)
  assert.equal(answered(totals), 7)
  assert.deepEqual(totals.workers(), [])
  totals.gone('never heard of')
  totals.take('never heard of', answers(2), 0)
  assert.equal(answered(totals), 9)
  for (let worker = 10; worker < 1100; worker++) {
    totals.take(String(worker), answers(1), 0)
    totals.gone(String(worker))
  }
  assert.equal(answered(totals), 9 + 1090)
  totals.take('500', answers(1_000_000), 0) // too late: it is part of the sum
  assert.equal(answered(totals), 9 + 1090)
})

test('a worker is numbered by its slot; beside its successor it gets another number, and numbers stay few', () => {
  const totals = new Totals()
  const numbers = () => totals.workers().map(({ worker, number }) => `${worker}:${number}`)
  for (const [index, worker] of ['a', 'b', 'c'].entries()) totals.take(worker, EMPTY_STATS, index)
  assert.deepEqual(numbers(), ['a:0', 'b:1', 'c:2'])
  totals.gone('b')
  assert.deepEqual(numbers(), ['a:0', 'c:2'])
  totals.take('b2', EMPTY_STATS, 1)
  totals.take('a2', EMPTY_STATS, 0)
  totals.take('a', EMPTY_STATS, 0) // it drains
  totals.take('c2', EMPTY_STATS, 2)
  assert.deepEqual(numbers(), ['a2:0', 'b2:1', 'c2:2', 'a:3', 'c:4'])
  totals.gone('a')
  totals.gone('c')
  for (let round = 3; round < 200; round++) {
    totals.take(`a${round}`, EMPTY_STATS, 0)
    assert.deepEqual(numbers(), [`a${round}:0`, 'b2:1', 'c2:2', `a${round - 1}:3`])
    totals.gone(`a${round - 1}`)
  }
})

test('the store is up if every worker reaches it; of lags the worst counts', () => {
  const totals = new Totals()
  const withGauges = (storeUp: 0 | 1, lag: number) =>
    snapshot({
      gauges: {
        storeUp,
        underWay: 2,
        connections: 7,
        connectionsMax: 20,
        residentBytes: 10,
        heapBytes: 3,
        eventLoopLagSeconds: { mean: lag, p99: lag * 2, max: lag * 3 },
      },
    })
  totals.take('1', withGauges(1, 0.25), 0)
  totals.take('2', withGauges(1, 0.75), 1)
  assert.deepEqual(totals.current().gauges, {
    storeUp: 1,
    underWay: 4,
    connections: 14,
    connectionsMax: 40,
    residentBytes: 20,
    heapBytes: 6,
    eventLoopLagSeconds: { mean: 0.5, p99: 1.5, max: 2.25 },
  })
  totals.take('2', withGauges(0, 0), 1)
  assert.equal(totals.current().gauges.storeUp, 0)
})

test('snapshots of another version: what is missing, unknown or malformed harms nothing', () => {
  const totals = new Totals()
  totals.take('1', answers(2), 0)
  const others: unknown[] = [
    {},
    { answers: { 'challenge 200 ok': 1, 'new-endpoint 200 ok': 4 }, aNewField: { of: ['anything'] } },
    { answers: { 'challenge 200 ok': 'many', x: Number.NaN }, scoreSum: null, storeOutages: -3 },
    { latencies: { 'new-endpoint': { bounds: [0.01, 30], counts: [3, 2, 1], sum: 60 }, challenge: {} } },
    { gauges: { residentBytes: 5 }, sites: { site_a: {}, site_b: { challenges: 1, bounces: 4 } } },
    { scores: new Array(20).fill(1), storeBatch: { counts: [1] } },
  ]
  others.forEach((other, index) => {
    totals.take(`other ${index}`, JSON.parse(JSON.stringify(other)) as StatsSnapshot, index + 1)
  })
  const sum = totals.current()
  assert.equal(sum.answers['challenge 200 ok'], 3)
  assert.equal(sum.answers['new-endpoint 200 ok'], 4)
  const { bounds, counts, sum: seconds } = sum.latencies['new-endpoint']!
  assert.equal(bounds, LATENCY_BOUNDS_SECONDS)
  assert.equal(counts[bounds.indexOf(0.01)], 3)
  assert.deepEqual([counts.at(-1), seconds], [3, 60])
  assert.deepEqual([sum.sites.site_a!.challenges, sum.sites.site_b!.challenges], [0, 1])
  assert.deepEqual([sum.scores.length, sum.scores[0], sum.scores[10], sum.storeOutages], [11, 1, 10, 0])
  assert.equal('aNewField' in sum, false)
  const lags = totals.workers().map(({ snapshot }) => snapshot.gauges.eventLoopLagSeconds.max)
  assert.deepEqual(lags.slice(1), [0, 0, 0, 0, 0, 0])
  for (const worker of totals.workers()) totals.gone(worker.worker)
  assert.deepEqual({ ...totals.current(), gauges: null }, { ...sum, gauges: null })
})

test(`at most ${SITES_MAX} sites are counted apart, the first that came; the rest goes under ''`, () => {
  const totals = new Totals()
  const sitesFrom = (start: number, count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`site ${start + index}`, { ...SITE, challenges: 1 }]),
    )
  totals.take('1', snapshot({ sites: sitesFrom(0, SITES_MAX - 1) }), 0)
  const more = { ...sitesFrom(SITES_MAX - 2, 500), '': { ...SITE, challenges: 7 } }
  totals.take('2', snapshot({ sites: more }), 1)
  for (const end of [() => {}, () => totals.gone('1'), () => totals.gone('2')]) {
    end()
    const { sites } = totals.current()
    assert.equal(Object.keys(sites).length, SITES_MAX + 1)
    assert.equal(sites[`site ${SITES_MAX - 2}`]!.challenges, 2)
    assert.equal(sites[`site ${SITES_MAX - 1}`]!.challenges, 1)
    assert.equal(sites['']!.challenges, 498 + 7)
  }
})

/** A worker that counts more and more, is heard of now and then, and ends. */
const event = fc.record({
  worker: fc.integer({ min: 0, max: 40 }),
  what: fc.constantFrom('take' as const, 'take' as const, 'take' as const, 'gone' as const),
  more: fc.integer({ min: 0, max: 100 }),
  seconds: fc.double({ min: 0, max: 1, noNaN: true }),
})

test('property: nothing that is counted ever goes down, not by a rounding error', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), events => {
      const totals = new Totals()
      const workers = new Map<number, { count: number; seconds: number; isGone: boolean }>()
      let before = [0, 0, 0]
      for (const { worker, what, more, seconds } of events) {
        const state = workers.get(worker) ?? { count: 0, seconds: 0, isGone: false }
        workers.set(worker, state)
        if (what === 'gone') {
          totals.gone(String(worker))
          state.isGone = true
        } else if (!state.isGone) {
          state.count += more
          state.seconds += seconds
          const storeLatency = { ...EMPTY_STATS.storeLatency, sum: state.seconds }
          const scoreSum = Math.round(state.seconds * 100) / 100
          totals.take(String(worker), { ...answers(state.count), storeLatency, scoreSum }, worker % 4)
        }
        const now = totals.current()
        const after = [answered(totals), now.storeLatency.sum, now.scoreSum]
        after.forEach((value, index) => {
          assert.ok(value >= before[index]!, `${value} after ${before[index]}`)
        })
        before = after
      }
      const counted = [...workers.values()].reduce((sum, { count }) => sum + count, 0)
      assert.equal(before[0], counted)
    }),
    { numRuns: 200 },
  )
})
