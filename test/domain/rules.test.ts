/** Difficulty, score, load, origins and keys: every limit tested at its exact value. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DifficultyInputs, difficultyFor } from '../../src/domain/difficulty.ts'
import { FingerprintWatch } from '../../src/domain/fingerprints.ts'
import { equalInConstantTime } from '../../src/domain/keyring.ts'
import { addLoad, decayedRate, isAttack, type LoadState, loadOf } from '../../src/domain/load.ts'
import { isOriginPattern, OriginList } from '../../src/domain/origin.ts'
import { SCORE_WEIGHTS, type ScoreSignals, scoreOf } from '../../src/domain/score.ts'
import {
  apiKeyId,
  apiKeySha256,
  isApiKeyOf,
  isSiteKey,
  newApiKey,
  newSiteKey,
} from '../../src/domain/site.ts'
import { NEW_SOURCE } from '../../src/domain/sources.ts'
import { seeded } from '../harness/arbitraries.ts'
import { FLAGS } from '../harness/client.ts'
import { words } from '../harness/values.ts'

const bounds = { base: 18, min: 16, max: 28 }
const quiet: DifficultyInputs = {
  addressChallenges: 0,
  addressLimit: 30,
  addressFailures: 0,
  addressAccepted: 0,
  source: NEW_SOURCE,
  siteRate: 0,
  siteRateUsual: 0,
  siteGrowth: 1,
}

test('difficulty: a lone honest visitor stays at the base, also on an empty site', () => {
  for (const addressChallenges of [0, 1, 5, 7]) {
    assert.equal(difficultyFor(bounds, { ...quiet, addressChallenges }), 18)
  }
  assert.equal(difficultyFor(bounds, { ...quiet, siteRate: 2, siteRateUsual: 0 }), 18)
})

test('difficulty: an address climbs steadily to its limit, and failures add to it', () => {
  const climb = Array.from({ length: 31 }, (_, addressChallenges) =>
    difficultyFor(bounds, { ...quiet, addressChallenges }),
  )
  for (let index = 1; index < climb.length; index++) {
    assert.ok(climb[index]! - climb[index - 1]! >= 0 && climb[index]! - climb[index - 1]! <= 1)
  }
  assert.equal(climb[30], 22)
  assert.equal(difficultyFor(bounds, { ...quiet, addressFailures: 3 }), 19)
  assert.equal(difficultyFor(bounds, { ...quiet, addressFailures: 100 }), 21)
  const shared = { ...quiet, addressAccepted: 15 }
  assert.equal(difficultyFor(bounds, { ...shared, addressFailures: 15 }), 19, 'of a neighbour')
  assert.equal(difficultyFor(bounds, { ...shared, addressFailures: 16 }), 21, 'of most behind it')
})

test('difficulty: who asks without solving costs neighbours who solve one bit, with failures; who solves pays in full', () => {
  const at = (addressChallenges: number, addressAccepted: number, addressFailures = 0) =>
    difficultyFor(bounds, { ...quiet, addressChallenges, addressFailures, addressAccepted })
  assert.equal(at(15, 0), 20)
  assert.equal(at(15, 30), 19)
  assert.equal(at(15, 30, 9), 19)
  assert.equal(at(29, 30, 9), 19)
  assert.equal(at(15, 12), 20, 'more is left unsolved than people behind it solved')
  assert.equal(at(15, 30, 31), 23, 'more failed than people behind it solved')
  assert.deepEqual([at(15, 75), at(29, 100), at(29, 145)], [20, 22, 22])
})

test('difficulty: an attack raises sources that come again, others and networks with history by one bit, and a good day nobody', () => {
  const at = (siteRate: number, some: Partial<DifficultyInputs> = { addressAccepted: 2 }) =>
    difficultyFor(bounds, { ...quiet, ...some, siteRate, siteRateUsual: 10 })
  assert.equal(at(40), 18)
  assert.equal(at(41), 19)
  assert.equal(at(80), 19)
  assert.equal(at(81), 20)
  assert.equal(at(1e9), 22)
  assert.equal(at(1e9, { source: { ...NEW_SOURCE, isOverBudget: true } }), 22)
  assert.deepEqual([at(40, {}), at(41, {}), at(1e9, {})], [18, 19, 19])
  const source = { ...NEW_SOURCE, networkBits: 1, historyBits: 1 }
  assert.equal(at(1e9, { addressAccepted: 2, source }), 19, 'of a network with history')
  const ofNetwork = (networkBits: number) =>
    at(1e9, { source: { ...NEW_SOURCE, isOverBudget: true, networkBits } })
  assert.deepEqual([ofNetwork(3), ofNetwork(7)], [22, 25], 'its network and the load: the larger of both')
  assert.deepEqual([at(400, { addressAccepted: 2, siteGrowth: 10 }), at(401, { siteGrowth: 10 })], [18, 19])
})

test('property: difficulty is within the bounds of the site and never falls as pressure rises', () => {
  const inputs = fc.record({
    addressChallenges: fc.nat(1000),
    addressLimit: fc.integer({ min: 1, max: 1000 }),
    addressFailures: fc.nat(1000),
    source: fc
      .record({
        networkBits: fc.nat(10),
        historyBits: fc.constantFrom(1, 4, Number.POSITIVE_INFINITY),
        isOverBudget: fc.boolean(),
      })
      .map(some => ({ ...NEW_SOURCE, ...some })),
    addressAccepted: fc.nat(255),
    siteGrowth: fc.double({ min: 1, max: 1000, noNaN: true }),
    siteRate: fc.double({ min: 0, max: 1e9, noNaN: true }),
    siteRateUsual: fc.double({ min: 0, max: 1e9, noNaN: true }),
  })
  fc.assert(
    fc.property(inputs, some => {
      const bits = difficultyFor(bounds, some)
      assert.ok(Number.isInteger(bits) && bits >= 18 && bits <= 28)
      assert.ok(difficultyFor(bounds, { ...some, addressChallenges: some.addressChallenges + 1 }) >= bits)
      assert.ok(difficultyFor(bounds, { ...some, siteRate: some.siteRate * 2 }) >= bits)
      assert.equal(difficultyFor({ base: 20, min: 20, max: 20 }, some), 20)
    }),
    seeded(3000),
  )
})

const honest: ScoreSignals = {
  environment: {},
  solveTimeMs: 100,
  elapsedMs: 400,
  difficulty: 18,
  fingerprintAddresses: 1,
  addressFailures: 0,
}

test('score: 1 without suspicion; each flag takes off what the table says, common ones only beside another', () => {
  assert.deepEqual(scoreOf(honest), { score: 1, reasons: [] })
  for (const flag of FLAGS) {
    const isCommon = ['chromeAbsent', 'swiftShader', 'noPlugins', 'notificationDenied'].includes(flag)
    const alone = scoreOf({ ...honest, environment: { [flag]: true } })
    assert.deepEqual(alone.reasons, isCommon ? [] : [flag])
    assert.equal(alone.score, isCommon ? 1 : 1 - SCORE_WEIGHTS[flag])
    const other = flag === 'zeroScreen' ? 'noLanguages' : 'zeroScreen'
    const both = scoreOf({ ...honest, environment: { [flag]: true, [other]: true } })
    assert.equal(both.score, Math.round(100 * (1 - SCORE_WEIGHTS[flag] - SCORE_WEIGHTS[other])) / 100)
    const ofSite = { ...SCORE_WEIGHTS, [flag]: 0.5 }
    assert.equal(scoreOf({ ...honest, environment: { [flag]: true } }, ofSite).score, 0.5)
    assert.equal(scoreOf({ ...honest, environment: { [flag]: false } }).score, 1)
  }
  assert.deepEqual(scoreOf({ ...honest, environment: undefined }).reasons, ['environmentMissing'])
})

test('score: the signals that the server measures, each at its bound', () => {
  const reasons = (change: Partial<ScoreSignals>) => scoreOf({ ...honest, ...change }).reasons
  assert.deepEqual(reasons({ solveTimeMs: 450 }), [])
  assert.deepEqual(reasons({ solveTimeMs: 451 }), ['solveTimeImpossible'])
  assert.deepEqual(reasons({ solveTimeMs: undefined }), [])
  assert.deepEqual(reasons({ fingerprintAddresses: 31 }), [])
  assert.deepEqual(reasons({ fingerprintAddresses: 32 }), ['fingerprintReused'])
  assert.deepEqual(reasons({ fingerprintAddresses: 256 }), ['fingerprintSpread'])
  assert.deepEqual(reasons({ addressFailures: 1 }), ['recentFailure'])
  const failed = (addressFailures: number) => scoreOf({ ...honest, addressFailures }).score
  assert.equal(failed(6), failed(600))
})

test('property: a claim of the client never raises the score, which is always 0 to 1', () => {
  const flag = fc.option(fc.boolean(), { nil: false })
  const environment = fc.record(Object.fromEntries(FLAGS.map(name => [name, flag])))
  fc.assert(
    fc.property(
      environment,
      fc.nat(100_000),
      fc.nat(100_000),
      fc.nat(10),
      (some, solveTimeMs, elapsedMs, failures) => {
        const base = { ...honest, elapsedMs, addressFailures: failures, solveTimeMs: undefined }
        const claimed = scoreOf({ ...base, environment: some, solveTimeMs }).score
        assert.ok(claimed >= 0 && claimed <= 1)
        assert.ok(claimed <= scoreOf({ ...base, environment: {} }).score)
      },
    ),
    seeded(3000),
  )
})

test('load: the rate follows within seconds and decays; the usual rate follows an attack slowly', () => {
  const again = (count: number) => ({ again: count, once: 0 })
  const sinceMs = -30 * 86_400_000
  let state: LoadState = { sinceMs, atMs: 0, rate: 0, usualRate: 0, onceRate: 0, onceUsual: 0 }
  for (let second = 0; second < 60; second++) state = addLoad(state, second * 1000, again(100))
  assert.ok(Math.abs(state.rate - 100) < 10, String(state.rate))
  assert.ok(state.usualRate < 2, String(state.usualRate))
  assert.ok(decayedRate(state.rate, 60_000) < 1)
  const later = addLoad(state, 60_000 + 59_000, again(0))
  assert.ok(later.rate < 1)
  let day: LoadState = { sinceMs, atMs: 0, rate: 1, usualRate: 1, onceRate: 0, onceUsual: 0 }
  for (let second = 1; second <= 86_400; second++) day = addLoad(day, second * 1000, again(50))
  assert.ok(day.usualRate < 1.25, `after a day at 50 times the usual rate: ${day.usualRate}`)
  for (let second = 1; second <= 7200; second++) day = addLoad(day, day.atMs + 1000, again(3))
  assert.ok(day.usualRate > 2.5, `after two hours at three times the usual rate: ${day.usualRate}`)
})

test('load: a new site learns its usual rate from the start, and is under attack at no hour of its first day', () => {
  for (const perSecond of [4, 10, 50, 500]) {
    let state: LoadState | undefined
    for (let second = 1; second <= 86_400; second++) {
      state = addLoad(state, second * 1000, { again: perSecond, once: perSecond })
      if (second >= 10) assert.ok(!isAttack(loadOf(state)), `${perSecond} a second, after ${second} s`)
    }
  }
})

test('load: if the clock is set back by an hour, the load goes on fading', () => {
  const before = addLoad(undefined, 3_600_000, { again: 1000, once: 0 })
  const after = [0, 60_000].reduce((state, ms) => addLoad(state, ms, { again: 0, once: 0 }), before)
  assert.ok(after.rate < 1, String(after.rate))
})

test('load: what the operator expects is usual, however quiet the days before were, and no more than that', () => {
  const after = (perSecond: number, expected?: number) => {
    let state: LoadState | undefined
    for (let hour = 0; hour < 48; hour++) state = addLoad(state, hour * 3_600_000, { again: 0, once: 0 })
    for (let second = 0; second < 600; second++)
      state = addLoad(state, state!.atMs + 1000, { again: perSecond, once: 0, ...(expected && { expected }) })
    return isAttack(loadOf(state!, expected))
  }
  assert.deepEqual([after(35), after(35, 10), after(50, 10)], [true, false, true])
})

const SECRET = 1

test('fingerprints: one visitor is one; many addresses are counted within a quarter; old ones are forgotten', () => {
  const watch = new FingerprintWatch(2, SECRET)
  assert.equal(watch.note(1, 'f', 'a', 0), 1)
  assert.equal(watch.note(1, 'f', 'a', 1), 1)
  let estimate = 0
  for (let index = 0; index < 60; index++) estimate = watch.note(1, 'f', `address ${index}`, 2)
  assert.ok(estimate > 60 * 2 * 0.75 && estimate < 60 * 2 * 1.25, String(estimate))
  assert.equal(watch.note(2, 'f', 'a', 2), 1)
  watch.note(1, 'g', 'a', 300_001)
  watch.note(1, 'g', 'a', 600_002)
  assert.equal(watch.note(1, 'f', 'a', 600_003), 1)
})

test('a fingerprint that is common because the device is popular is not suspicious on a busy site', () => {
  const watch = new FingerprintWatch(4, SECRET)
  let popular = 0
  let botnet = 0
  for (let visit = 0; visit < 3000; visit++) {
    const address = `address ${visit}`
    if (visit % 10 === 0) popular = watch.note(1, 'phone', address, visit)
    else if (visit % 10 < 4) botnet = watch.note(1, 'image', address, visit)
    else watch.note(1, `browser ${visit}`, address, visit)
  }
  assert.equal(popular, 1)
  assert.ok(botnet > 256)
})

test('origins: exact, wildcards, none', () => {
  const list = new OriginList(['https://example.com', 'https://*.shop.example', 'http://localhost:3000'])
  const rows: [origin: string, allowed: boolean][] = [
    ['https://example.com', true],
    ['http://example.com', false],
    ['https://example.com:8443', false],
    ['https://www.example.com', false],
    ['https://a.shop.example', true],
    ['https://a.b.shop.example', true],
    ['https://shop.example', false],
    ['https://evil.com/.shop.example', false],
    ['https://evilshop.example', false],
    ['https://.shop.example', false],
    ['http://localhost:3000', true],
    ['null', false],
    ['', true],
  ]
  for (const [origin, allowed] of rows) assert.equal(list.allows(origin, false), allowed, origin)
  assert.equal(list.allows('', true), false)
  assert.equal(new OriginList([]).allows('https://anything.example', false), true)
})

test('origins: what can be written into a list', () => {
  for (const good of words(
    'https://example.com https://*.example.com http://localhost:3000 http://[::1]:8080',
  ))
    assert.ok(isOriginPattern(good), good)
  const bad = words(
    'example.com https://example.com/ https://example.com:443 https://* https://*.com*',
    'ftp://a.b https://EXAMPLE.com * https://example.com:99999',
  )
  for (const pattern of ['https://a b.com', ...bad]) assert.ok(!isOriginPattern(pattern), pattern)
})

test('texts of another length are never equal', () => {
  assert.ok(equalInConstantTime('secret', 'secret', 6))
  for (const other of ['secre', 'secrets', '', 'Secret']) {
    assert.ok(!equalInConstantTime('secret', other, 6), other)
    assert.ok(!equalInConstantTime(other, 'secret', 6), other)
  }
})

test('keys: new ones have the form, and only the right secret matches', () => {
  for (let index = 0; index < 200; index++) {
    assert.ok(isSiteKey(newSiteKey(randomBytes(96))))
    const key = newApiKey(randomBytes(128))
    const record = {
      id: apiKeyId(key)!,
      siteKey: 's',
      secretSha256: apiKeySha256(key),
      createdAt: 0,
      revokedAt: null,
    }
    assert.equal(record.id.length, 8)
    assert.ok(isApiKeyOf(record, key))
    assert.ok(!isApiKeyOf(record, newApiKey(randomBytes(128))))
  }
  const [a, b] = ['a'.repeat(21), 'b'.repeat(42)]
  for (const bad of ['', 'site_', `site_${a}`, `site_${a}aa`, `site_${'-'.repeat(22)}`, `Site_${a}a`])
    assert.ok(!isSiteKey(bad), bad)
  for (const bad of ['', 'sk_', `sk_aaaaaaaa_${b}`, `sk_aaaaaaa_${b}b`, `sk_aaaaaaaa_${b}bb`])
    assert.equal(apiKeyId(bad), undefined, bad)
})
