/** The history of counters: the last half hour in fine steps, the last day in coarse ones. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { quantile } from '../../src/dashboard/columns.ts'
import { OTHER_SITES, sum } from '../../src/dashboard/data.ts'
import { ADD_MS, History } from '../../src/dashboard/history.ts'
import type { Snapshot } from '../../src/metrics/stats.ts'
import type { Values } from '../../src/metrics/table.ts'
import { numbers } from '../harness/values.ts'
import { siteKeyOf } from './sample-day.ts'

const START_MS = 1_800_000_000_000
/** The time at the end of so many steps. */
const timeOf = (step: number) => START_MS + step * ADD_MS

function startHistory(aheadMs = () => 0): History {
  return new History(START_MS, siteKey => (siteKey === siteKeyOf(0) ? 'shop' : undefined), aheadMs)
}

const counted = (values: Values, sites: Snapshot['sites'] = {}): Snapshot => ({ values, sites })
const challenges = (count: number) => counted({ 'requests challenge 200 ok': count })

describe('steps', () => {
  test('each keeps what was counted in it, not before; counters that start anew are counted from zero', () => {
    const history = startHistory()
    for (const [index, count] of [5, 5, 12, 3].entries()) history.add(timeOf(index + 1), challenges(count))
    const { traffic, times, seconds, nowMs, startedAtMs } = history.view('30m', null)
    assert.deepEqual(traffic.challenges, [5, 0, 7, 3])
    assert.deepEqual(times, [1, 2, 3, 4].map(timeOf))
    assert.deepEqual(seconds, [10, 10, 10, 10])
    assert.deepEqual([nowMs, startedAtMs], [timeOf(4), START_MS])
  })

  test('half an hour is kept in steps of 10 s and a day in steps of 2 min, no more', () => {
    const history = startHistory()
    const adds = 25 * 360 // 25 hours
    for (let add = 1; add <= adds; add++) history.add(timeOf(add), challenges(add))
    const fine = history.view('30m', null)
    assert.equal(fine.times.length, 180)
    assert.ok(fine.traffic.challenges.every(count => count === 1))
    const coarse = history.view('24h', null)
    assert.equal(coarse.times.length, 720)
    assert.ok(coarse.traffic.challenges.every(count => count === 12))
    assert.ok(coarse.seconds.every(length => length === 120))
    assert.equal(coarse.times.at(-1), timeOf(adds))
    const { seconds, challenges: inLastMinute } = coarse.lastMinute
    assert.deepEqual([seconds, inLastMinute], [60, 6])
  })

  test('the last step of the day grows until it is full, with the worst of its gauges', () => {
    const history = startHistory()
    const views = Array.from({ length: 14 }, (_, index) => {
      const snapshot = counted({
        'requests challenge 200 ok': index + 1,
        storeUp: index === 3 ? 0 : 1,
        'lag 0 p99': 0.001,
        'lag 1 p99': index === 2 ? 0.5 : 0,
        'lag 1 max': 9, // not shown
      })
      history.add(timeOf(index + 1), snapshot)
      return history.view('24h', null)
    })
    assert.deepEqual(views.map(({ traffic }) => traffic.challenges.join()).slice(0, 3), ['1', '2', '3'])
    assert.deepEqual(views[11]!.traffic.challenges, [12])
    assert.deepEqual(views[13]!.traffic.challenges, [12, 2])
    assert.deepEqual(views[13]!.store.up, [0, 1])
    assert.deepEqual(views[13]!.workers.lagMs, [500, 1])
  })

  test('the store counts as away in a step in which a worker lost it, even if it is back before the end', () => {
    const history = startHistory()
    for (const [index, storeOutages] of [0, 1, 1].entries())
      history.add(timeOf(index + 1), counted({ storeUp: 1, storeOutages }))
    history.add(timeOf(4), counted({})) // no worker runs, which tells nothing of the store
    assert.deepEqual(history.view('30m', null).store.up, [1, 0, 1, null])
  })

  test('timers that are a little early or late lose nothing', () => {
    const history = startHistory()
    let nowMs = START_MS
    let count = 0
    for (let add = 0; add < 100; add++) {
      nowMs += ADD_MS + (add % 2 === 0 ? -30 : 45)
      history.add(nowMs, challenges((count += 3)))
    }
    for (const range of ['30m', '24h'] as const) {
      const { challenges } = history.view(range, null).traffic
      assert.equal(sum(challenges), 300)
    }
    assert.equal(history.view('24h', null).times.length, 9) // 1,000 s in steps of 120
  })

  test('a clock that is set takes the past along, and no step gets longer or shorter', () => {
    let aheadMs = 0
    const history = startHistory(() => aheadMs)
    for (const add of [1, 2, 3]) history.add(timeOf(add), challenges(add))
    // The function above, which reads `aheadMs`, is the clock's deviation for the history.
    for (aheadMs of [3_600_000, -3_600_000]) {
      const { times, seconds, nowMs, startedAtMs } = history.view('30m', null)
      const expected = [0, 1, 2, 3, 3].map(step => timeOf(step) + aheadMs)
      assert.deepEqual([startedAtMs, ...times, nowMs], expected)
      assert.deepEqual(seconds, [10, 10, 10])
    }
  })
})

describe('sites', () => {
  test('each has numbers of its own; those that the workers have summed up are the other sites', () => {
    const history = startHistory()
    const sites = { [siteKeyOf(0)]: challenges(100).values, '': challenges(1_000_000).values }
    history.add(timeOf(1), counted({}, sites))
    assert.equal(history.view('30m', null).sites.length, 2)
    assert.deepEqual(history.view('30m', OTHER_SITES).traffic.challenges, [1_000_000])
    assert.deepEqual(history.view('30m', siteKeyOf(0)).traffic.challenges, [100])
  })

  test('a site without requests in the range is forgotten', () => {
    const history = startHistory()
    // The first step takes its counts, all others add none, and half an hour has 180 steps.
    for (let add = 1; add <= 181; add++)
      history.add(timeOf(add), counted({}, { site_a: challenges(1).values }))
    assert.deepEqual(history.view('30m', null).sites, [])
    assert.equal(history.view('24h', null).sites.length, 1)
  })

  test('a site without numbers of its own is probably among the other sites, if there are any', () => {
    const history = startHistory()
    history.add(timeOf(1), counted({}, { site_a: challenges(1).values }))
    assert.equal(history.view('30m', 'site_b').isAmongOthers, false)
    history.add(timeOf(2), counted({}, { site_a: challenges(1).values, '': challenges(1).values }))
    const isAmongOthers = (site: string) => history.view('30m', site).isAmongOthers
    assert.deepEqual(['site_a', 'site_b', OTHER_SITES].map(isAmongOthers), [false, true, false])
  })
})

test('a site is told after ten minutes in which visitors passed and none of their tokens was redeemed, though usually some are', () => {
  const history = startHistory()
  const counts = (passed: number, redeemed: number) => {
    return { 'requests verify 200 ok': passed, 'requests siteverify 200 ok': redeemed }
  }
  const [lastRedeemed, now] = [200, 270]
  const tenMinutes = 600_000 / ADD_MS
  for (let step = 1; step <= now; step++) {
    const redeemed = Math.min(step, lastRedeemed)
    const sites = {
      [siteKeyOf(0)]: counts(step, redeemed),
      [siteKeyOf(1)]: counts(10 * step, step), // redeems to the end; a bot solves nine of ten challenges and sends no form
      [siteKeyOf(2)]: counts(step, Math.floor(redeemed / 20)), // few send its form, so 70 may pass of whom none does
    }
    history.add(timeOf(step), counted({}, sites))
    if (step === lastRedeemed + tenMinutes - 1) assert.deepEqual(history.view('24h', null).unredeemed, [])
  }
  const shop = [{ name: 'shop', passed: now - lastRedeemed }]
  const told = [null, siteKeyOf(0), siteKeyOf(1)].map(site => history.view('24h', site).unredeemed)
  assert.deepEqual(told, [shop, shop, []], 'all sites, the shop, the second site')
})

describe('the whole service', () => {
  test('requests by what was answered, also where no site is known', () => {
    const history = startHistory()
    const answers = numbers(
      'challenge 200 ok: 10, challenge 204 ok: 99, challenge 403 site-unknown: 4, challenge 429 rate-limited: 3',
      'verify 429 rate-limited: 1, verify 200 ok: 6, verify 200 failed: 2',
      'verify-token 200 ok: 5, verify-token 400 token-used: 2, siteverify 200 ok: 2, siteverify 200 token-expired: 1',
      'content 200 ok: 1000, other 404 not-found: 7',
    )
    const requests = Object.entries(answers).map(([labels, count]) => [`requests ${labels}`, count])
    const others = numbers(
      'limited challenge address: 3, limited verify address-site: 1, scores 0.09: 2, scores 0.79: 6',
      'difficulty sha256 18: 6, difficulty sha256 20: 3, difficulty sha256 sum: 168',
      'faults verify: 1, faults other: 1, aborted verify: 2, reasons webdriver: 2, reasons swiftShader: 6',
      'restarts crash: 1, restarts hang: 1, restarts roll: 2',
    )
    history.add(timeOf(1), counted({ ...Object.fromEntries(requests), ...others }))
    const { traffic, limits, workers, lastMinute } = history.view('30m', null)
    const { challenges, passed, failed, redeemed, refused, refusals } = traffic
    assert.deepEqual([challenges, passed, failed, redeemed].flat(), [10, 6, 2, 5 + 2])
    assert.deepEqual(refused, [4 + (3 + 1) + 2 + 1]) // as below, but for wrong paths, which are no site's
    const totals = (tallies: typeof limits) => tallies.map(({ name, total }) => `${name} ${total}`)
    const told = 'not-found 7, site-unknown 4, rate-limited 4, token-used 2, token-expired 1'
    assert.equal(totals(refusals).join(', '), told)
    assert.deepEqual(totals(limits), ['challenge address 3', 'verify address-site 1'])
    const { crashes, faults, aborted } = workers
    assert.deepEqual([crashes, faults, aborted].flat(), [2, 2, 2]) // a rolling restart is no crash
    assert.deepEqual(totals(traffic.failureReasons), ['swiftShader 6', 'webdriver 2'])
    assert.deepEqual(traffic.difficulty.sha256, { mean: [18.67], max: [20] }) // 168 bits of 9 challenges
    assert.deepEqual(traffic.scores, [2, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0])
    assert.deepEqual([lastMinute.faults, lastMinute.redeemed, lastMinute.redemptionsRefused], [2, 7, 3])
  })

  test('latencies are interpolated as Prometheus does it', () => {
    const bounds = [0.001, 0.002, 0.004]
    assert.equal(quantile(bounds, [0, 0, 0, 0], 0.5), null)
    assert.equal(quantile(bounds, [10, 0, 0, 0], 0.5), 0.0005)
    assert.equal(quantile(bounds, [0, 10, 0, 0], 0.5), 0.0015)
    assert.equal(quantile(bounds, [5, 0, 5, 0], 0.5), 0.001)
    assert.equal(quantile(bounds, [0, 0, 0, 9], 0.99), 0.004)
    const history = startHistory()
    const seconds = { 'requestSeconds verify 0.0005': 100, 'requestSeconds siteverify 0.0001': 9 }
    history.add(timeOf(1), counted(seconds))
    const { verify, siteverify, challenge } = history.view('30m', null).latencies
    assert.deepEqual([verify.p50, verify.p99, challenge.p50], [[0.4], [0.498], [null]])
    assert.deepEqual(siteverify.p50, [0.05])
  })
})
