/** The counters of one worker. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { climbOf } from '../../src/domain/difficulty.ts'
import { NO_TRAFFIC } from '../../src/domain/meters.ts'
import { type ApiKeyRecord, compileSite, SITE_DEFAULTS, type Site } from '../../src/domain/site.ts'
import type { Judgement } from '../../src/endpoints/service.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { EventLoopLag, Stats } from '../../src/metrics/stats.ts'
import { SITES_MAX, type Values } from '../../src/metrics/table.ts'
import { eventually } from '../harness/eventually.ts'

function siteOf(siteKey: string): Site {
  return compileSite({ ...SITE_DEFAULTS, siteKey, createdAt: 0, updatedAt: 0 })
}

/** What stats look at of an exchange is what `siteNamedBy` looks at. */
function exchangeOf(siteKey: string): Exchange {
  return { siteKey } as Exchange
}

const BOUNDS = { base: 18, min: 16, max: 28 }
const COUNTS = { challenges: 0, limit: 30, failures: 0, accepted: 0 }
const ABOUT = {
  nonce: '',
  bounds: BOUNDS,
  counts: COUNTS,
  traffic: NO_TRAFFIC,
  climb: climbOf(COUNTS, NO_TRAFFIC),
}

function judgement(site: Site, passed: boolean, score: number | null, reasons: Judgement['reasons']) {
  return { site, nonce: '', passed, score, reasons, signals: undefined }
}

function newStats(): Stats {
  return new Stats({
    logLinesLost: () => 0,
    storeTrouble: () => undefined,
    underWay: () => 3,
    clockAheadSeconds: () => 0,
    evictedKeys: () => 0,
    connections: () => ({ open: 4, max: 9, refused: 2 }),
    siteNamedBy: ({ siteKey }) => (siteKey.startsWith('site') ? siteKey : undefined),
  })
}

/** The numbers of these metrics or series. */
function of(values: Values, ...series: readonly string[]): Values {
  const isMeant = (name: string) => series.some(each => `${name} `.startsWith(`${each} `))
  return Object.fromEntries(Object.entries(values).filter(([name]) => isMeant(name)))
}

test('challenges, judgements, redemptions and refusals are counted for their site and for all', () => {
  const stats = newStats()
  const [a, b] = [siteOf('site_a'), siteOf('site_b')]
  const ofA = exchangeOf('site_a')
  for (const difficulty of [16, 16, 18]) stats.issued(ofA, { ...ABOUT, site: a, difficulty })
  const bounds = { ...BOUNDS, raise: 3 }
  stats.issued(exchangeOf('site_b'), { ...ABOUT, site: b, difficulty: 28, bounds })
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
  const { sites, values } = stats.snapshot()
  assert.deepEqual(sites, {
    site_a: {
      ...{ challenges: 3, passed: 2, failed: 2, 'refused rate-limited': 2, 'refused nonce-used': 1 },
      ...{ 'difficulty 16': 2, 'difficulty 18': 1, 'difficulty sum': 50 },
      ...{ 'scores 0.09': 1, 'scores 0.29': 1, 'scores 0.99': 1, 'scores Infinity': 1, 'scores sum': 219 },
      ...{ 'reasons noPlugins': 2, 'reasons webdriver': 2 },
    },
    site_b: {
      ...{ challenges: 1, failed: 1, redeemed: 1, 'difficulty 28': 1, 'difficulty sum': 28 },
      'reasons proof-wrong': 1,
    },
  })
  assert.deepEqual(of(values, 'difficulty', 'scores', 'reasons', 'limited', 'raisedChallenges'), {
    raisedChallenges: 1,
    ...{ 'difficulty 16': 2, 'difficulty 18': 1, 'difficulty 28': 1, 'difficulty sum': 78 },
    ...{ 'scores 0.09': 1, 'scores 0.29': 1, 'scores 0.99': 1, 'scores Infinity': 1, 'scores sum': 219 },
    ...{ 'reasons noPlugins': 2, 'reasons webdriver': 2, 'reasons proof-wrong': 1 },
    ...{ 'limited challenge address-site': 1, 'limited verify address-site': 1 },
  })
})

test('every hundredth of a score falls into its tenth', () => {
  const site = siteOf('site_a')
  for (let hundredths = 0; hundredths <= 100; hundredths++) {
    const stats = newStats()
    stats.judged(exchangeOf('site_a'), judgement(site, true, hundredths / 100, []))
    const bound = hundredths === 100 ? Infinity : (Math.floor(hundredths / 10) * 10 + 9) / 100
    assert.equal(stats.snapshot().values[`scores ${bound}`], 1, `${hundredths / 100} is not in ${bound}`)
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
  const { values } = stats.snapshot()
  const { 'requestSeconds challenge sum': microseconds, ...challenge } = of(
    values,
    'requestSeconds challenge',
  )
  assert.deepEqual(of(values, 'requests', 'aborted', 'faults'), {
    ...{ 'requests challenge 200 ok': 3, 'requests challenge 204 ok': 1 },
    ...{ 'requests challenge 429 rate-limited': 1, 'requests verify 200 failed': 1 },
    ...{ 'aborted verify': 1, 'faults verify': 1 },
  })
  const over3ms = Object.entries(challenge).filter(([name]) => Number(name.split(' ')[2]) > 0.003)
  assert.equal(
    over3ms.reduce((sum, [, count]) => sum + count, 0),
    4,
  )
  assert.equal(challenge['requestSeconds challenge Infinity'], 1)
  assert.ok(microseconds! > 60_011_000 && microseconds! < 61_000_000, `${microseconds} us`)
})

test(`however many sites there are, at most ${SITES_MAX} are counted apart, and none twice`, () => {
  const stats = newStats()
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < SITES_MAX + 50; index++) {
      const site = siteOf(`site_${index}`)
      stats.issued(exchangeOf(''), { ...ABOUT, site, difficulty: 18 })
    }
  }
  const { sites, values } = stats.snapshot()
  assert.equal(Object.keys(sites).length, SITES_MAX + 1)
  assert.deepEqual([sites['']!.challenges, sites.site_0!.challenges], [100, 2])
  assert.equal(values['difficulty 18'], 2 * (SITES_MAX + 50))
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
  const outages = () => stats.snapshot().values.storeOutages ?? 0
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
  const { values } = stats.snapshot()
  assert.deepEqual(of(values, 'storeBatch', 'storeSeconds', 'storeUp'), {
    ...{ 'storeBatch 1': 1, 'storeBatch 128': 1, 'storeBatch Infinity': 1, 'storeBatch sum': 258 },
    ...{ 'storeSeconds 0.0001': 1, 'storeSeconds 0.002': 1, 'storeSeconds Infinity': 1 }, // at a bound: below it
    ...{ 'storeSeconds sum': 5_002_100, storeUp: 1 },
  })
  assert.deepEqual(of(values, 'underWay', 'connections', 'connectionsMax', 'connectionsRefused'), {
    ...{ underWay: 3, connections: 4, connectionsMax: 9, connectionsRefused: 2 },
  })
  assert.ok(values.residentBytes! > values.heapBytes! && values.heapBytes! > 0)
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
