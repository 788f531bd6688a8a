/** Sums of the workers' counters, through restarts and between versions. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newCounts, valuesOf } from '../../src/metrics/counters.ts'
import type { Snapshot } from '../../src/metrics/stats.ts'
import { SITES_MAX, type Values } from '../../src/metrics/table.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { seeded } from '../harness/arbitraries.ts'
import { numbers } from '../harness/values.ts'

const snapshot = (values: Values, sites: Snapshot['sites'] = {}): Snapshot => ({ values, sites })

const build = { version: '1.2.3', node: 'v22.0.0' }
const processes: Record<string, { pid: undefined; build: typeof build }> = {}
/** The process of this name, one for each name. */
const worker = (name: string) => (processes[name] ??= { pid: undefined, build })

const ANSWERED = 'requests challenge 200 ok'

const answers = (count: number): Snapshot => snapshot({ [ANSWERED]: count, residentBytes: 7 })

const answered = (totals: Totals) => totals.values()[ANSWERED] ?? 0

test("a worker's snapshot replaces its last one; after its end its counters stay, and its gauges go", () => {
  const totals = new Totals()
  totals.take(worker('1'), answers(5), 0)
  totals.take(worker('1'), answers(8), 0)
  totals.take(worker('2'), answers(1), 1)
  assert.deepEqual([answered(totals), totals.values()['residentBytes worker-0']], [9, 7])
  totals.gone(worker('1'))
  assert.equal(answered(totals), 9)
  assert.deepEqual([totals.workers().length, totals.workers()[0]!.worker], [1, worker('2')])
  assert.equal('residentBytes worker-0' in totals.values(), false)
  totals.gone(worker('2'))
  assert.deepEqual([answered(totals), totals.values().storeUp], [9, undefined], 'nobody tells of the store')
  totals.gauges = { storeUp: 0 }
  assert.equal(totals.values().storeUp, 0, 'a start waits for the store')
})

test('the store is up if every worker reaches it; other gauges are added up, or there for each worker', () => {
  const totals = new Totals()
  const withGauges = (storeUp: 0 | 1, lag: number) =>
    snapshot({ storeUp, inFlight: 2, connections: 7, 'lag p99': lag, 'lag mean': lag / 3, heapBytes: 3 })
  totals.take(worker('1'), withGauges(1, 0.25), 0)
  totals.take(worker('2'), withGauges(1, 0.75), 1)
  const summed = 'storeUp: 1, inFlight: 4, workers: 2, connections 0: 7, connections 1: 7'
  const ofEach =
    'lag 0 p99: 0.25, lag 1 p99: 0.75, lag 1 mean: 0.25, heapBytes worker-0: 3, heapBytes worker-1: 3'
  const [values, expected] = [totals.values(), numbers(summed, ofEach)]
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map(name => [name, values[name]])), expected)
  totals.take(worker('2'), withGauges(0, 0), 1)
  assert.equal(totals.values().storeUp, 0)
  totals.take(worker('2'), withGauges(1, 0), 1)
  assert.equal(totals.values().storeUp, 1)
  totals.take(worker('2'), snapshot({}), 1)
  assert.equal(totals.values().storeUp, 0, 'a worker that does not say counts as one that lost the store')
})

test('snapshots of another version: what is missing, unknown or malformed harms nothing', () => {
  const totals = new Totals()
  totals.take(worker('1'), answers(2), 0)
  const others: Readonly<Record<string, object>> = {
    nothing: {},
    newer: { values: { [ANSWERED]: 1, 'requests new-endpoint 200 ok': 4, aNewMetric: 5 }, of: ['anything'] },
    malformed: { values: { [ANSWERED]: 'many', storeOutages: -3, 'scores sum': null, limited: { a: 1 } } },
    'other buckets': {
      values: numbers(
        'requestSeconds new 0.01: 3, requestSeconds new 0.011: 2, requestSeconds new 30: 1',
        'requestSeconds new sum: 60, requestSeconds new what: 1',
      ),
    },
    'other counts of sites': {
      sites: { site_a: {}, site_b: { challenges: 1, bounces: 4, refused: { 'nonce-used': 1 } } },
    },
    'another form': { answers: { 'challenge 200 ok': 2 }, gauges: { storeUp: 1 } },
  }
  for (const [index, [name, sent]] of Object.entries(others).entries())
    totals.take(worker(name), sent, index + 1)
  const sum = totals.values()
  assert.deepEqual([sum[ANSWERED], sum['requests new-endpoint 200 ok']], [3, 4])
  const buckets = ['0.01', '0.015', 'Infinity', 'sum'].map(end => sum[`requestSeconds new ${end}`])
  assert.deepEqual(buckets, [3, 2, 2, 60], 'what has no bucket here counts in the next one')
  assert.deepEqual([sum.storeOutages, sum['scores sum'], sum.storeUp], [0, 0, 0])
  assert.ok(Object.values(sum).every(Number.isFinite))
  const { site_a, site_b } = totals.sites()
  assert.deepEqual([site_a, site_b!.challenges], [{}, 1])
  for (const { worker } of totals.workers()) totals.gone(worker)
  const { storeUp: _, 'residentBytes worker-0': __, ...kept } = sum // gauges go with the workers, counters stay
  assert.deepEqual(totals.values(), { ...kept, workers: 0 })
})

test(`at most ${SITES_MAX} sites are counted apart, the first that come; the others are added up under ''`, () => {
  const totals = new Totals()
  const siteAt = (index: number) => [`site ${index}`, { challenges: 1 }] as const
  const sitesFrom = (start: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => siteAt(start + index)))
  totals.take(worker('1'), snapshot({}, sitesFrom(0, SITES_MAX - 1)), 0)
  totals.take(worker('2'), snapshot({}, { ...sitesFrom(SITES_MAX - 2, 500), '': { challenges: 7 } }), 1)
  for (const end of [() => {}, () => totals.gone(worker('1')), () => totals.gone(worker('2'))]) {
    end()
    const sites = totals.sites()
    assert.equal(Object.keys(sites).length, SITES_MAX + 1)
    assert.equal(sites[`site ${SITES_MAX - 2}`]!.challenges, 2)
    assert.equal(sites[`site ${SITES_MAX - 1}`]!.challenges, 1)
    assert.equal(sites['']!.challenges, 498 + 7) // two of the 500 sites are counted apart
  }
})

/** A worker counts more and more, is heard of now and then, and ends; then one of its name begins at 0, which Totals takes for another. */
const event = fc.record({
  name: fc.nat(40).map(String),
  isEnd: fc.nat(3).map(dice => dice === 0),
  more: fc.nat(100),
  seconds: fc.double({ min: 0, max: 1, noNaN: true }),
})

test('property: nothing that is counted ever goes down, not by a rounding error', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), events => {
      const totals = new Totals()
      const workers: Record<string, ReturnType<typeof newCounts>> = {}
      let before: Values = {}
      let counted = 0
      for (const { name, isEnd, more, seconds } of events) {
        const counts = (workers[name] ??= newCounts())
        if (isEnd) {
          totals.gone(worker(name))
          delete workers[name]
        } else {
          counted += more
          counts.requests.at('challenge').at(200).at('ok').add(more)
          counts.storeSeconds.add(seconds)
          counts.scores.add(Math.round(seconds * 100) / 100)
          totals.take(worker(name), snapshot(valuesOf(counts)), 0)
        }
        const { workers: _, ...after } = totals.values()
        for (const name in before) assert.ok(after[name]! >= before[name]!, `${name} after ${before[name]}`)
        before = after
      }
      assert.equal(answered(totals), counted)
    }),
    seeded(200),
  )
})
