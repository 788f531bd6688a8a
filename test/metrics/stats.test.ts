/** The counters of one worker. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ApiKeyRecord, compileSite, SITE_DEFAULTS, type Site } from '../../src/domain/site.ts'
import { NEW_SOURCE } from '../../src/domain/sources.ts'
import type { Judgement } from '../../src/endpoints/service.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { SITES_MAX } from '../../src/metrics/snapshot.ts'
import { EventLoopLag, Stats } from '../../src/metrics/stats.ts'
import { eventually } from '../harness/eventually.ts'

function siteOf(siteKey: string): Site {
  return compileSite({ ...SITE_DEFAULTS, siteKey, createdAt: 0, updatedAt: 0 })
}

/** What stats look at of an exchange is what `siteNamedBy` looks at. */
function exchangeOf(siteKey: string): Exchange {
  return { siteKey } as Exchange
}

const BOUNDS = { base: 18, min: 16, max: 28 }
const INPUTS = {
  addressChallenges: 0,
  addressLimit: 30,
  addressFailures: 0,
  source: NEW_SOURCE,
  siteRate: 0,
  siteRateUsual: 0,
}

function judgement(site: Site, passed: boolean, score: number | null, reasons: Judgement['reasons']) {
  return { site, nonce: '', passed, score, reasons, signals: undefined }
}

function newStats(): Stats {
  return new Stats({
    isStoreUp: () => true,
    underWay: () => 3,
    connections: () => ({ open: 4, max: 9, refused: 2 }),
    siteNamedBy: ({ siteKey }) => (siteKey.startsWith('site') ? siteKey : undefined),
  })
}

test('challenges, judgements, redemptions and refusals are counted for their site and for all', () => {
  const stats = newStats()
  const [a, b] = [siteOf('site_a'), siteOf('site_b')]
  const ofA = exchangeOf('site_a')
  for (const difficulty of [16, 16, 18])
    stats.issued(ofA, { site: a, nonce: '', difficulty, bounds: BOUNDS, inputs: INPUTS })
  stats.issued(exchangeOf('site_b'), { site: b, nonce: '', difficulty: 28, bounds: BOUNDS, inputs: INPUTS })
  stats.judged(ofA, judgement(a, true, 1, []))
  stats.judged(ofA, judgement(a, true, 0.9, ['noPlugins']))
  stats.judged(ofA, judgement(a, false, 0.29, ['webdriver', 'noPlugins']))
  stats.judged(ofA, judgement(a, false, 0, ['webdriver']))
  stats.judged(exchangeOf('site_b'), judgement(b, false, null, ['proof-wrong']))
  stats.redeemed(exchangeOf(''), { siteKey: 'site_b' } as ApiKeyRecord)
  stats.refused(ofA, 'challenge', 'rate-limited', 'address-site')
  stats.refused(ofA, 'verify', 'rate-limited', 'address-site')
  stats.refused(ofA, 'verify', 'nonce-used')
  stats.refused(exchangeOf('made up'), 'verify', 'site-unknown')
  const { sites, difficulties, scores, scoreSum, reasons, limited } = stats.snapshot()
  assert.deepEqual(sites, {
    site_a: {
      ...{ challenges: 3, passed: 2, failed: 2, redeemed: 0 },
      refused: { 'rate-limited': 2, 'nonce-used': 1 },
      reasons: { noPlugins: 2, webdriver: 2 },
      difficulties: { 16: 2, 18: 1 },
      scores: [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1],
    },
    site_b: {
      ...{ challenges: 1, passed: 0, failed: 1, redeemed: 1, refused: {}, reasons: { 'proof-wrong': 1 } },
      ...{ difficulties: { 28: 1 }, scores: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
    },
  })
  assert.deepEqual(difficulties, { 16: 2, 18: 1, 28: 1 })
  assert.deepEqual([scores, scoreSum], [[1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1], 2.19])
  assert.deepEqual(reasons, { noPlugins: 2, webdriver: 2, 'proof-wrong': 1 })
  assert.deepEqual(limited, { 'challenge address-site': 1, 'verify address-site': 1 })
})

test('every hundredth of a score falls into its tenth', () => {
  const site = siteOf('site_a')
  for (let hundredths = 0; hundredths <= 100; hundredths++) {
    const stats = newStats()
    stats.judged(exchangeOf('site_a'), judgement(site, true, hundredths / 100, []))
    const { scores } = stats.snapshot()
    assert.equal(scores[Math.floor(hundredths / 10)], 1, `${hundredths / 100} is in ${scores}`)
  }
})

test('answers are counted by part, status and outcome, with their time; aborts and faults by part', () => {
  const stats = newStats()
  for (let index = 0; index < 3; index++) stats.answered('challenge', 200, 'ok', performance.now() - 4)
  stats.answered('challenge', 204, 'ok', performance.now())
  stats.answered('challenge', 429, 'rate-limited', performance.now() - 60_000)
  stats.answered('verify', 200, 'failed', performance.now())
  stats.aborted('verify')
  stats.faulted('verify', new Error('a fault'))
  const { answers, latencies, aborted, faults } = stats.snapshot()
  assert.deepEqual(answers, {
    ...{ 'challenge 200 ok': 3, 'challenge 204 ok': 1, 'challenge 429 rate-limited': 1 },
    'verify 200 failed': 1,
  })
  const { bounds, counts, sum } = latencies.challenge!
  const over3ms = counts.slice(bounds.indexOf(0.003) + 1).reduce((total, count) => total + count)
  assert.equal(over3ms, 4)
  assert.equal(counts.at(-1), 1)
  assert.ok(sum > 60.011 && sum < 61, `${sum} s`)
  assert.deepEqual([aborted.verify, aborted.challenge, faults.verify, faults.other], [1, 0, 1, 0])
})

test(`however many sites there are, at most ${SITES_MAX} are counted apart, and none twice`, () => {
  const stats = newStats()
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < SITES_MAX + 50; index++) {
      const site = siteOf(`site_${index}`)
      stats.issued(exchangeOf(''), { site, nonce: '', difficulty: 18, bounds: BOUNDS, inputs: INPUTS })
    }
  }
  const { sites, difficulties } = stats.snapshot()
  assert.equal(Object.keys(sites).length, SITES_MAX + 1)
  assert.deepEqual([sites['']!.challenges, sites.site_0!.challenges], [100, 2])
  assert.equal(difficulties[18], 2 * (SITES_MAX + 50))
})

test('names that nobody was given leave nothing behind', () => {
  const stats = newStats()
  const before = Object.keys(stats.snapshot().sites).length
  for (let index = 0; index < 10_000; index++)
    stats.refused(exchangeOf(`made up ${index}`), 'challenge', 'site-unknown')
  assert.equal(Object.keys(stats.snapshot().sites).length, before)
})

test('an outage lasts from the first part of the store that goes until the last is back', () => {
  const stats = newStats()
  const outages = () => stats.snapshot().storeOutages
  assert.equal(stats.storeChanged(true), undefined, 'reached for the first time')
  assert.equal(outages(), 0)
  for (const up of [false, false, false, true, true]) assert.equal(stats.storeChanged(up), undefined)
  assert.equal(outages(), 1)
  assert.ok(stats.storeChanged(true)! >= 0, 'how long it lasted')
  stats.storeChanged(false)
  assert.equal(outages(), 2)
})

test('calls to the store: operations and time', () => {
  const stats = newStats()
  stats.storeCalled(1, 0.0001)
  stats.storeCalled(128, 0.002)
  stats.storeCalled(129, 5)
  const { storeBatch, storeLatency, gauges, connectionsRefused } = stats.snapshot()
  assert.deepEqual([storeBatch.sum, storeBatch.counts], [258, [1, 0, 0, 0, 0, 0, 0, 1, 1]])
  assert.equal(storeLatency.counts[0], 1, 'a bound belongs to the bucket below it')
  assert.equal(storeLatency.counts.at(-1), 1)
  assert.deepEqual([gauges.storeUp, gauges.underWay], [1, 3])
  assert.deepEqual([gauges.connections, gauges.connectionsMax, connectionsRefused], [4, 9, 2])
  assert.ok(gauges.residentBytes > gauges.heapBytes && gauges.heapBytes > 0)
})

test('a blocked event loop is seen as lag, an idle one as almost none', async () => {
  const lag = new EventLoopLag()
  await eventually(5000, 'a first sample', () => lag.get().mean > 0 || lag.get().max > 0)
  assert.ok(lag.get().max < 10)
  const end = performance.now() + 300
  while (performance.now() < end);
  const { max, mean, p99 } = await eventually(5000, 'the stall shows', () => {
    const now = lag.get()
    return now.max > 0.25 ? now : undefined
  })
  assert.ok(max >= p99 && p99 >= 0 && mean > 0 && mean < max, `${mean} ${p99} ${max}`)
})
