/** The page's parts: formats of numbers, ticks of axes, the list of problems, limits in words, and how many workers serve. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ADD_MS, History } from '../../src/dashboard/history.ts'
import { duration, exact, milliseconds, percent, rate, short } from '../../src/dashboard/page/format.ts'
import { limitText, problemsOf } from '../../src/dashboard/page/problems.ts'
import { ticksFromZero, timeSpan, timeTicks } from '../../src/dashboard/page/scale.ts'
import { type ServiceState, serviceState } from '../../src/dashboard/service-state.ts'
import type { Values } from '../../src/metrics/table.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { numbers } from '../harness/values.ts'
import { WELL } from './stage.ts'

test('numbers are shortened to three digits, with a unit', () => {
  const rows: [format: (value: number) => string, texts: Readonly<Record<number, string>>][] = [
    [exact, { 1234567: '1,234,567' }],
    [short, { 0: '0', 999: '999', 1234: '1.23k', 4560000: '4.56M' }],
    [rate, { 0: '0', 0.004: '<0.01', 0.0167: '0.017', 12.34: '12.3' }],
    [percent, { 0: '0 %', 1: '100 %', 0.9999: '>99.9 %', 0.0001: '<0.1 %', 0.973: '97.3 %' }],
    [milliseconds, { 0.214: '0.21 ms', 3.4: '3.4 ms', 119.7: '120 ms', 999.7: '1 s', 1234: '1.2 s' }],
    [duration, { 5: '5 s', 200: '3 min', 7500: '2 h 5 min', 273600: '3 d 4 h' }],
  ]
  for (const [format, texts] of rows)
    for (const [value, text] of Object.entries(texts)) assert.equal(format(Number(value)), text)
})

describe('axes', () => {
  test('ticks start at 0, are evenly spaced, few, and reach what is shown', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), fc.boolean(), (max, isWhole) => {
        const ticks = ticksFromZero(max, 4, isWhole)
        assert.equal(ticks[0], 0)
        assert.ok(ticks.at(-1)! >= max * 0.999, `${ticks} of ${max}`)
        assert.ok(ticks.length >= 2 && ticks.length <= 6, `${ticks} of ${max}`)
        if (isWhole) assert.ok(ticks.every(Number.isInteger), String(ticks))
      }),
      { seed: 5 },
    )
    assert.deepEqual(ticksFromZero(0.3, 4), [0, 0.1, 0.2, 0.3])
    assert.deepEqual(ticksFromZero(58, 4), [0, 20, 40, 60])
  })

  test('times are round in the zone of the viewer', () => {
    const noon = Date.UTC(2026, 2, 3, 12)
    const indiaMinutes = -330 // as getTimezoneOffset() gives it
    const ticks = timeTicks(noon - 86_400_000, noon, 6, indiaMinutes)
    assert.ok(ticks.length > 2 && ticks.length <= 6)
    for (const tick of ticks) assert.equal((tick - indiaMinutes * 60_000) % (4 * 3_600_000), 0)
    assert.deepEqual(timeTicks(noon, noon + 300_000, 6, 0).length, 6)
  })

  test('a service that has just started does not get half an hour of empty axis', () => {
    const [toMs, minute] = [100_000_000, 60_000]
    const startedJustNowMs = toMs - 10_000
    assert.deepEqual(timeSpan('30m', toMs, startedJustNowMs), { fromMs: toMs - 5 * minute, toMs })
    assert.deepEqual(timeSpan('30m', toMs, 0), { fromMs: toMs - 30 * minute, toMs })
    assert.deepEqual(timeSpan('24h', toMs, 0), { fromMs: toMs - 24 * 60 * minute, toMs })
  })
})

describe('problems', () => {
  /** What the page lists for a service that is well but for this. @param values counters, beside those of a service that is well */
  const problemsIn = (service: Partial<ServiceState>, values: Values = {}) => {
    const history = new History(0, () => undefined)
    history.add(ADD_MS, { values: { workers: 2, storeUp: 1, 'restarts roll': 3, ...values }, sites: {} })
    return problemsOf({ ...history.view('30m', null), isUnknown: false, service: { ...WELL, ...service } })
  }

  test('problems of the dashboard are listed, the worst first', () => {
    const cases: [Partial<ServiceState>, RegExp[]][] = [
      [{}, []], // workers that were replaced on purpose are none
      [{ workersRunning: 0, workersWithStore: 0, isReady: false, isHealthy: false }, [/^bad No worker runs/]],
      [
        { workersRunning: 0, workersWithStore: 0, isReady: false, storeCauses: ['refused'] },
        [/^bad The start waits for the store: nothing listens at its address\. Nothing is answered\.$/],
      ],
      [{ workersRunning: 1, workersWithStore: 1 }, [/^warn 1 of 2 workers run/]],
      [{ workersWithStore: 1 }, [/^bad The store does not answer 1 of 2 workers\. /]],
      [
        { workersWithStore: 1, storeCauses: ['auth'] },
        [/1 of 2 workers: it refuses the user or the password\. /],
      ],
      [
        { workersRunning: 1, workersWithStore: 0, isReady: false },
        [/^bad The store does not answer any worker\. Tokens cannot be /, /^warn 1 of 2 workers run/],
      ],
      [
        { workersWithStore: 0, storeCauses: ['refused'] }, // but ready, so half of a Cluster answers
        [/^bad A part of the Redis Cluster does not answer any .*: nothing listens .* sites that lie there/],
      ],
      [
        { workersWithStore: 1, isStoreEmbedded: true },
        [/^bad The store does not answer 1 of 2 workers\. Until it does, challenges, .* are refused\.$/],
      ],
      [{ isReady: false }, [/^bad Not ready/]],
      [{ sitesLost: 3 }, [/^bad The store has lost 3 sites/]],
      [
        { differences: ['POWGATE_TOKEN_SECONDS: 300 here, 600 on b:8080', 'another'] },
        [/^bad Hosts of this store refuse .*\. POWGATE_TOKEN_SECONDS: 300 here, .* \(and 1 more\): set the/],
      ],
      [
        { backends: ['one', 'other'].map(text => ({ text, isOverLimit: text === 'other' })) },
        [/^bad other\.$/, /^warn one\.$/],
      ],
      [{ isProxyUntrusted: true }, [/^warn Nearly all visitors come from one .* in POWGATE_TRUSTED_PROXIES/]],
      [{ clockApartSeconds: 7.2 }, [/^warn The clock is 7 s off that of Redis.*: see timedatectl/]],
      [{ evictedKeys: 1200 }, [/^warn Redis has evicted 1,200 keys .*: see its maxmemory and/]],
      [{ isReloadDone: false }, [/^warn The last SIGHUP has not renewed all workers.*: see the log/]],
      [{ isHealthy: false }, [/^warn A worker is starting/]],
    ]
    for (const [service, expected] of cases) {
      const found = problemsIn(service).map(({ level, text }) => `${level} ${text}`)
      assert.equal(found.length, expected.length, found.join('\n'))
      for (const [index, pattern] of expected.entries()) assert.match(found[index]!, pattern)
    }
    // Of worker 1 the lag in seconds, and five calls of the store that took up to half a second.
    const counters = { 'faults verify': 2, 'lag 1 p99': 0.3, 'storeSeconds 0.5': 5, logLinesLost: 3 }
    const counted = problemsIn({}, counters).map(({ text }) => text)
    assert.match(counted[0]!, /^2 requests ran into a fault/)
    assert.match(counted[1]!, /^Lines of the log were lost, 3 times/)
    assert.match(counted[2]!, /^Workers are late by 300 ms/)
    assert.match(counted[3]!, /^The store is slow/)
    const { text } = problemsIn({}, { 'restarts store': 1 })[0]!
    assert.match(text, /^A worker or the store process ended or hung/)
    const refusedMoreOften = {
      'requests verify-token 403 token-other-address': /solved them: name your proxy/,
      'limited challenge address': /before you raise it, see that POWGATE_TRUSTED_PROXIES/,
      'requests verify 403 nonce-other-address': /asked for the challenge: name every/,
    }
    const good = numbers(
      'requests verify-token 200 ok: 30, requests challenge 200 ok: 30, requests verify 200 ok: 30',
    )
    // Told where more are refused than not.
    for (const [refused, pattern] of Object.entries(refusedMoreOften)) {
      assert.match(problemsIn({}, { ...good, [refused]: 40 })[0]!.text, pattern)
      assert.deepEqual(problemsIn({}, { ...good, [refused]: 20 }), [])
    }
    const unredeemed = [{ name: 'shop', passed: 70 }]
    const view = { ...new History(0, () => undefined).view('30m', null), unredeemed }
    const [first] = problemsOf({ ...view, isUnknown: false, service: { ...WELL, hosts: [] } })
    assert.match(first!.text, /^70 visitors of shop have passed since .* Run powgate try/)
    assert.deepEqual(problemsOf({ ...view, isUnknown: false, service: WELL }), []) // another host may redeem them
  })

  test('what was wrong before, or at another site than the chosen one, is not told', () => {
    const refused = { 'requests verify-token 403 token-other-address': 40 }
    const history = new History(0, () => undefined)
    const told = (site: string | null) => {
      const problems = problemsOf({ ...history.view('24h', site), isUnknown: false, service: WELL })
      return problems.map(({ text }) => text.slice(0, 15))
    }
    const stepsPerMinute = 60_000 / ADD_MS
    let step = 0
    const add = (steps: number, values: Values) => {
      for (const end = step + steps; step < end; ) history.add(++step * ADD_MS, { values, sites: {} })
    }
    add(2 * stepsPerMinute, refused)
    assert.deepEqual(told(null), ['Most tokens are'])
    const mended = { ...refused, 'requests verify-token 200 ok': 1 }
    add(12 * stepsPerMinute, mended) // most must have been refused in the last ten minutes too
    add(1, { ...mended, 'limited challenge address': 40 })
    assert.deepEqual([told(null), told('site_a')], [['Most challenges'], []])
  })

  test('workers that leave count as running only once all leave', () => {
    const totals = new Totals()
    const workers = [0, 1].map(pid => ({ pid, build: { version: '', node: '' }, isLeaving: pid === 0 }))
    for (const worker of workers) totals.take(worker, { values: { storeUp: worker.pid } }, 0)
    const supervisor = { isHealthy: () => true, isReady: () => true, workersWanted: () => 1 }
    const hosts = { living: [], differencesToOthers: [] }
    const backends = { limitsHalfUsed: [], unbound: [] }
    for (const expected of [1, 2]) {
      // @ts-expect-error: these objects have only what serviceState reads
      const { workersRunning, workersWithStore } = serviceState({}, totals, supervisor, hosts, backends)
      assert.deepEqual([workersRunning, workersWithStore], [expected, 1])
      workers[1]!.isLeaving = true
    }
  })

  test('a limit that was hit tells what to raise; the proxy first, where all visitors seem to have its address', () => {
    const ofProxy = { ...WELL, isProxyUntrusted: true }
    for (const endpoint of ['challenge', 'verify']) {
      assert.match(limitText(endpoint, 'address', WELL), /^The limit is per address, all sites together/)
      const text = limitText(endpoint, 'address', ofProxy)
      assert.match(text, /^Nearly all visitors .* The limit is per address/)
    }
    assert.match(limitText('siteverify', 'api-key', ofProxy), /^The limit is per API key/)
    assert.match(limitText('siteverify', 'junk', ofProxy), /raise nothing/)
    assert.equal(limitText('later', 'address', WELL), '')
  })
})
