/** What a worker counts, and its snapshots. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/addresses/address.ts'
import type { Ending, Judged } from '../../src/domain/ending.ts'
import type { Policy } from '../../src/domain/limits.ts'
import type { Reason } from '../../src/domain/outcome.ts'
import { NO_TRAFFIC, priceOf } from '../../src/domain/price.ts'
import { PRICING } from '../../src/domain/pricing.ts'
import { compileSite, SITE_DEFAULTS, type Site } from '../../src/domain/site.ts'
import type { ObservedExchange } from '../../src/http/exchange-host.ts'
import { measureLag, Stats } from '../../src/metrics/stats.ts'
import { SITES_MAX, type Values } from '../../src/metrics/table.ts'
import { eventually } from '../harness/eventually.ts'

const siteOf = (siteKey: string): Site =>
  compileSite({ ...SITE_DEFAULTS, siteKey, createdAt: 0, updatedAt: 0 })

/** @param siteKey what `siteNamedBy` looks at */
const exchangeOf = (siteKey: string, tookMs = 0): ObservedExchange =>
  ({ siteKey, receivedAtMs: performance.now() - tookMs }) as ObservedExchange

const COUNTS = { challenges: 0, limitPerMinute: 30, accepted: 0 }

function issued(site: Site, difficulty: number, raise = 0): Ending {
  const about = { counts: COUNTS, traffic: NO_TRAFFIC, price: priceOf(COUNTS, NO_TRAFFIC, PRICING) }
  const bounds = { base: 18, min: 16, max: 28, raise }
  return { kind: 'issued', site, nonce: '', issuedAtMs: 0, puzzle: 'sha256', difficulty, bounds, ...about }
}

function judged(site: Site, passed: boolean, score: number | null, reasons: Judged['reasons']): Ending {
  return { kind: 'judged', site, nonce: '', passed, score, reasons, signals: undefined }
}

function refused(reason: Reason, policy?: Policy): Ending {
  return { kind: 'refused', refusal: { reason, ...(policy && { policy }) } }
}

function newStats(metricsSites: readonly string[] = []): Stats {
  return new Stats({
    readGauges: () => ({}),
    storeTrouble: () => undefined,
    siteNamedBy: siteKey => (siteKey.startsWith('site') ? siteKey : undefined),
    metricsSites,
  })
}

/** The numbers of these metrics or series alone. */
function only(values: Values, ...series: readonly string[]): Values {
  const isMeant = (name: string) => series.some(each => `${name} `.startsWith(`${each} `))
  return Object.fromEntries(Object.entries(values).filter(([name]) => isMeant(name)))
}

test('every hundredth of a score falls into its tenth', () => {
  const site = siteOf('site_a')
  for (let hundredths = 0; hundredths <= 100; hundredths++) {
    const stats = newStats()
    stats.answered(exchangeOf('site_a'), 'verify', 200, judged(site, true, hundredths / 100, []))
    const bound = hundredths === 100 ? Infinity : (Math.floor(hundredths / 10) * 10 + 9) / 100
    assert.equal(stats.snapshot().values[`scores ${bound}`], 1, `${hundredths / 100} is not in ${bound}`)
  }
})

test('the time of answers is counted by endpoint; so are aborts and faults', t => {
  t.mock.method(performance, 'now', () => 100_000) // no time passes between exchange and answer
  const stats = newStats()
  // Without an ending, as the answers to files and pages.
  for (const ms of [4, 4, 4, 0, 60_000]) stats.answered(exchangeOf('', ms), 'challenge', 200, undefined)
  stats.aborted('verify')
  stats.faulted('verify')
  const { values } = stats.snapshot()
  const timed = only(values, 'requestSeconds challenge')
  const { 'requestSeconds challenge sum': microseconds, ...challenge } = timed
  assert.deepEqual(only(values, 'aborted', 'faults'), { 'aborted verify': 1, 'faults verify': 1 })
  // The last word of a name is its bucket's upper bound in seconds. Of the five answers one took no time.
  const over3ms = Object.entries(challenge).filter(([name]) => Number(name.split(' ')[2]) > 0.003)
  const count = over3ms.reduce((sum, [, count]) => sum + count, 0)
  assert.equal(count, 4)
  assert.equal(challenge['requestSeconds challenge Infinity'], 1)
  assert.equal(Math.round(microseconds!), 60_012_000)
})

test(`however many sites there are, at most ${SITES_MAX} are counted apart, and none twice`, () => {
  const stats = newStats()
  const [beyond, requests] = [50, 2] // sites that are not counted apart, and requests of each site
  for (let request = 0; request < requests; request++)
    for (let site = 0; site < SITES_MAX + beyond; site++)
      stats.answered(exchangeOf(''), 'challenge', 200, issued(siteOf(`site_${site}`), 18))
  const { sites, values } = stats.snapshot()
  assert.equal(Object.keys(sites).length, SITES_MAX + 1)
  const counted = [sites['']!, sites.site_0!, values].map(counts => counts['difficulty sha256 18'])
  assert.deepEqual(counted, [requests * beyond, requests, requests * (SITES_MAX + beyond)])
})

test('sites with metrics of their own: each answer by endpoint and outcome, of no other site', () => {
  const stats = newStats(['site_a', 'lost']) // the setting names `lost`, which no store has
  for (const site of ['site_a', 'site_b']) {
    stats.answered(exchangeOf(site), 'challenge', 200, issued(siteOf(site), 18))
    stats.answered(exchangeOf(site), 'challenge', 403, refused('site-inactive'))
    stats.answered(exchangeOf(site), 'verify', 200, judged(siteOf(site), false, 0, []))
  }
  stats.answered(exchangeOf('lost'), 'challenge', 403, refused('site-unknown'))
  const ofA = 'siteRequests site_a'
  assert.deepEqual(only(stats.snapshot().values, 'siteRequests'), {
    'siteRequests lost challenge site-unknown': 1,
    ...{ [`${ofA} challenge ok`]: 1, [`${ofA} challenge site-inactive`]: 1, [`${ofA} verify failed`]: 1 },
  })
})

test('challenges that a raise made harder are counted', () => {
  const stats = newStats()
  for (const raise of [0, 3])
    stats.answered(exchangeOf('site_a'), 'challenge', 200, issued(siteOf('site_a'), 18 + raise, raise))
  assert.equal(stats.snapshot().values.raisedChallenges, 1)
})

test('a proxy that is not trusted: nearly all challenges are asked for from one private or loopback address', () => {
  /** 100 visitors come in turns. */
  const isSeen = (from: string, others: (index: number) => string, share: number) => {
    const stats = newStats()
    for (let index = 0; index < 300; index++) {
      const address = parseAddress(index % 100 < share ? from : others(index))!
      stats.answered({ ...exchangeOf('site_a'), address }, 'challenge', 200, issued(siteOf('site_a'), 18))
    }
    return stats.snapshot().values.proxyUntrusted === 1
  }
  const strangers = (index: number) => `203.0.113.${index % 250}`
  for (const proxy of ['127.0.0.1', '::1', '10.2.3.4', '172.17.0.1', '192.168.0.9', 'fd00::7'])
    assert.ok(isSeen(proxy, strangers, 97), proxy)
  assert.ok(!isSeen('198.51.100.1', strangers, 100), 'a public address')
  assert.ok(!isSeen('10.0.0.1', strangers, 50), 'half of the visitors')
  assert.ok(!isSeen('10.0.0.1', index => `10.0.1.${index % 250}`, 20), 'an intranet')
})

test('an outage is counted when the store goes, and its seconds are told when it is back', () => {
  const stats = newStats()
  const outages = () => stats.snapshot().values.storeOutages ?? 0
  assert.equal(stats.storeChanged(true), undefined, 'reached for the first time')
  assert.equal(outages(), 0)
  assert.equal(stats.storeChanged(false), undefined)
  assert.equal(outages(), 1)
  assert.ok(stats.storeChanged(true)! >= 0, 'how long it lasted')
  stats.storeChanged(false)
  assert.equal(outages(), 2)
})

test('a blocked event loop is seen as lag, an idle one as almost none', async () => {
  const lag = measureLag()
  await eventually(60_000, 'a first sample', () => lag().mean > 0)
  await eventually(60_000, 'little lag', () => lag().mean < 0.1)
  const end = performance.now() + 300
  while (performance.now() < end);
  const { max, mean, p99 } = await eventually(60_000, 'the stall shows', () => {
    const now = lag()
    return now.max > 0.25 ? now : undefined
  })
  assert.ok(max >= p99 && p99 >= 0 && mean > 0 && mean < max, `${mean} ${p99} ${max}`)
})
