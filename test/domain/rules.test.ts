/** The rules of the domain for difficulty, score, origins, keys and sites: what each gives, and every bound at its exact value. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { equalInConstantTime } from '../../src/domain/keyring.ts'
import {
  hostnameOf,
  isForeign,
  isOriginPattern,
  OriginList,
  publicSuffixOf,
} from '../../src/domain/origin.ts'
import { type AddressCounts, difficultyOf, priceOf, type Traffic } from '../../src/domain/price.ts'
import { PRICING } from '../../src/domain/pricing.ts'
import {
  countedFailures,
  PLAIN_ENVIRONMENT,
  SCORE_WEIGHTS,
  type ScoreSignals,
  scoreOf,
} from '../../src/domain/score.ts'
import {
  apiKeyId,
  apiKeyRecord,
  compileSite,
  DEMO_KEY_PREFIX,
  isApiKeyOf,
  isSiteKey,
  newApiKey,
  newSiteKey,
  nextUpdatedAt,
  raisedBits,
  SITE_DEFAULTS,
  type SiteRecord,
  siteRefusal,
} from '../../src/domain/site.ts'
import { seeded } from '../harness/arbitraries.ts'
import { FLAGS } from '../harness/client.ts'
import { words } from '../harness/values.ts'

const bounds = { base: 18, min: 16, max: 28 }

const bitsOf = (counts: AddressCounts, traffic: Traffic, within = bounds): number =>
  difficultyOf(within, priceOf(counts, traffic, PRICING))

test('property: difficulty is never below the base nor above the maximum, and never falls as pressure rises', () => {
  const upTo = (max: number) => fc.double({ min: 0, max, noNaN: true })
  const rates = fc.record({ recent: upTo(1e9), usual: upTo(1e9) })
  const network = rates.map(some => ({ ...some, prefixBits: 24, free: PRICING.v4.free.owner }))
  const thousand = fc.integer({ min: 1, max: 1000 })
  const inputs = fc.record({
    counts: fc.record({ challenges: fc.nat(1000), limitPerMinute: thousand, accepted: fc.nat(1000) }),
    traffic: fc.record({
      networkRates: fc.array(network, { maxLength: 2 }),
      siteRates: rates,
      siteExpected: upTo(1e6),
      isKnownNetwork: fc.boolean(),
    }),
  })
  fc.assert(
    fc.property(inputs, ({ counts, traffic }) => {
      const bits = bitsOf(counts, traffic)
      assert.ok(Number.isInteger(bits) && bits >= bounds.base && bits <= bounds.max)
      assert.ok(bitsOf({ ...counts, challenges: counts.challenges + 1 }, traffic) >= bits)
      const twice = <Some extends { recent: number }>(some: Some) => ({ ...some, recent: some.recent * 2 })
      assert.ok(bitsOf(counts, { ...traffic, siteRates: twice(traffic.siteRates) }) >= bits)
      assert.ok(bitsOf(counts, { ...traffic, networkRates: traffic.networkRates.map(twice) }) >= bits)
      assert.equal(bitsOf(counts, traffic, { base: 20, min: 20, max: 20 }), 20)
    }),
    seeded(3000),
  )
})

const inTime = { solveTimeMs: 100, elapsedMs: 400 }
const honest: ScoreSignals = { environment: {}, difficulty: 18, ...inTime, addressFailures: 0 }

test('score: 1 without suspicion; each flag takes off its weight, but a common one, which honest browsers have too, only beside another', () => {
  assert.deepEqual(scoreOf(honest), { score: 1, reasons: [] })
  const common = words('chromeAbsent swiftShader noPlugins notificationDenied') // not from score.ts, where a change must fail here
  for (const flag of FLAGS) {
    const isCommon = common.includes(flag)
    const alone = scoreOf({ ...honest, environment: { [flag]: true } })
    assert.deepEqual(alone.reasons, isCommon ? [] : [flag])
    assert.equal(alone.score, isCommon ? 1 : 1 - SCORE_WEIGHTS[flag])
    const other = flag === 'zeroScreen' ? 'noLanguages' : 'zeroScreen'
    const both = scoreOf({ ...honest, environment: { [flag]: true, [other]: true } })
    assert.equal(both.score, Math.round(100 * (1 - SCORE_WEIGHTS[flag] - SCORE_WEIGHTS[other])) / 100)
    const weightsOfSite = { ...SCORE_WEIGHTS, [flag]: 0.5 } // a site that weighs a common flag wants it to count alone
    assert.equal(scoreOf({ ...honest, environment: { [flag]: true } }, weightsOfSite).score, 0.5)
    assert.equal(scoreOf({ ...honest, environment: { [flag]: false } }).score, 1)
  }
  assert.deepEqual(scoreOf({ ...honest, environment: undefined }).reasons, ['environmentMissing'])
  assert.deepEqual(PLAIN_ENVIRONMENT, Object.fromEntries(FLAGS.map(flag => [flag, false])))
})

test('score: the signals that the server measures, each at its bound', () => {
  // The claimed time may be 50 ms above the one that passed, 400 ms, as clocks are coarse; where that is below 0, clocks differ.
  for (const [change, ...reasons] of [
    [{ solveTimeMs: 450 }],
    [{ solveTimeMs: 451 }, 'solveTimeImpossible'],
    [{ solveTimeMs: undefined }],
    [{ solveTimeMs: 51, elapsedMs: 0 }, 'solveTimeImpossible'],
    [{ solveTimeMs: 51, elapsedMs: -1 }],
    [{ addressFailures: 1 }, 'recentFailure'],
  ] as [Partial<ScoreSignals>, ...string[]][])
    assert.deepEqual(scoreOf({ ...honest, ...change }).reasons, reasons, JSON.stringify(change))
  const failed = (addressFailures: number) => scoreOf({ ...honest, addressFailures }).score
  assert.equal(failed(2), 1 - 2 * SCORE_WEIGHTS.recentFailure)
  assert.equal(failed(6), failed(600), 'six count at most')
})

test('score: of failures at an address with an accepted proof, which a neighbour may have caused, one counts at most', () => {
  const countedBeside = (accepted: number, failures: number) => countedFailures(failures, accepted)
  assert.equal(countedBeside(1, 20), 1)
  assert.equal(countedBeside(0, 20), 20)
  assert.equal(countedBeside(3, 0), 0)
})

test('property: a claim of the client never raises the score, which is always 0 to 1', () => {
  const flag = fc.option(fc.boolean(), { nil: false })
  const environment = fc.record(Object.fromEntries(FLAGS.map(name => [name, flag])))
  const times = fc.nat(100_000)
  fc.assert(
    fc.property(environment, times, times, fc.nat(10), (some, claimMs, elapsedMs, addressFailures) => {
      const base = { ...honest, elapsedMs, addressFailures, solveTimeMs: undefined }
      const claimed = scoreOf({ ...base, environment: some, solveTimeMs: claimMs }).score
      assert.ok(claimed >= 0 && claimed <= 1 && claimed <= scoreOf({ ...base, environment: {} }).score)
    }),
    seeded(3000),
  )
})

test('origins: a list allows exact ones and those that fit a pattern, and none that look like them; an empty list allows all', () => {
  const patterns = words(
    'https://example.com https://*.shop.example http://localhost:3000 https://shop-*.vercel.app https://my_shop.example.com http://127.0.0.1:*',
    'https://www.pr-*-eu.example.com http://[::1]:* http://*.localhost:3000 capacitor://localhost',
  )
  for (const pattern of patterns) assert.ok(isOriginPattern(pattern), pattern)
  const list = new OriginList(patterns)
  const allowed = words(
    'https://example.com https://a.shop.example https://a.b.shop.example http://localhost:3000',
    'https://shop-git-main.vercel.app https://www.pr-7-eu.example.com http://127.0.0.1 http://127.0.0.1:5173',
    'http://[::1]:4200 http://a.b.localhost:3000 capacitor://localhost https://my_shop.example.com https://a_b.shop.example',
  )
  const refused = words(
    'http://example.com https://example.com:8443 https://www.example.com https://shop.example null',
    'https://evil.com/.shop.example https://evilshop.example https://.shop.example https://shop-.vercel.app',
    'https://myshop-1.vercel.app https://shop-a.b.vercel.app https://shop-1.vercel.app.evil.example',
    'http://shop-1.vercel.app https://pr-7-eu.example.com http://127.0.0.1:x http://127.0.0.1:5173.evil.example',
    'https://*.shop.example http://127.0.0.10:80 http://a.localhost:3001 http://localhost:3001 ionic://localhost',
  )
  // '' is a request without an origin; `true` makes a list require one.
  for (const origin of ['', ...allowed]) assert.ok(list.allows(origin, false), origin)
  for (const origin of refused) assert.ok(!list.allows(origin, false), origin)
  assert.equal(list.allows('', true), false)
  assert.equal(new OriginList([]).allows('https://anything.example', false), true)
})

test('origins: the only host of a page is known if there is one exact origin and no pattern', () => {
  for (const [patterns, only] of [
    [['https://a.example'], 'a.example'],
    [['https://a.example', 'http://b.example:8080'], undefined],
    [['https://a.example', 'https://*.a.example'], undefined],
    [['https://*.a.example'], undefined],
  ] as const) {
    const list = new OriginList(patterns)
    assert.equal(list.onlyHostname, only)
    assert.ok(!list.allows('https://c.example', false), patterns.join())
  }
})

test('origins: the host of one, and whether that is another than the host that was asked (a foreign page)', () => {
  for (const [origin, hostname] of [
    ['https://a.example:8443', 'a.example'],
    ['http://[::1]:3000', '[::1]'],
    ['https://*.a.example', undefined],
    ['null', undefined],
  ] as const)
    assert.equal(hostnameOf(origin), hostname)
  for (const [origin, host, foreign] of [
    ['https://a.example', 'A.example:8080', false],
    ['http://[::1]:3000', '[::1]:8080', false],
    ['', '', false],
    ['https://a.example', '', true],
    ['https://b.example', 'a.example', true],
    ['null', 'null', true],
  ] as const)
    assert.equal(isForeign(origin, host), foreign, `${origin} at ${host}`)
})

test('origins: what can be written into a list', () => {
  for (const good of words(
    'https://example.com https://*.example.com http://localhost:3000 http://[::1]:8080 http://*.localhost:*',
    'https://*-shop.netlify.app https://a*b.example.com https://localhost:* app://bundle tauri://localhost',
    'capacitor://app.example.com http://shop-*.localhost http://a.localhost:*',
  ))
    assert.ok(isOriginPattern(good), good)
  const bad = words(
    'example.com https://example.com/ https://example.com:443 https://* https://*.com*',
    'ftp://a.b https://EXAMPLE.com * https://example.com:99999 https://shop-*.com https://shop-* https://*',
    'https://a-*.b-*.example.com https://*.b-*.example.com https://example.com:* https://*.example.com:*',
    'http://10.0.0.1:* http://10.*.0.1 http://127.*.0.1:80 http://localhost.evil.example:* http://localhost:*1',
    'http://notlocalhost:*',
    'http://localhost:80 file://x javascript://x capacitor:// htps://localhost http://[*::1] https://**.example.com',
  )
  for (const pattern of ['https://a b.com', ...bad]) assert.ok(!isOriginPattern(pattern), pattern)
})

test('origins: the suffix under which anybody gets a name, such as vercel.app, is found in a pattern below it', () => {
  const patternsAndSuffixes = words(
    'https://*.vercel.app=vercel.app https://shop-*.netlify.app=netlify.app https://a*b.netlify.app=netlify.app',
    'https://*.co.uk=co.uk https://shop.vercel.app https://*.shop.pages.dev https://*.example.com http://*.localhost:*',
  )
  for (const [pattern = '', suffix] of patternsAndSuffixes.map(text => text.split('='))) {
    assert.ok(isOriginPattern(pattern))
    assert.equal(publicSuffixOf(pattern), suffix, pattern)
  }
})

test('equalInConstantTime: texts of another length are never equal', () => {
  assert.ok(equalInConstantTime('secret', 'secret', 6))
  for (const other of ['secre', 'secrets', '', 'Secret']) {
    assert.ok(!equalInConstantTime('secret', other, 6), other)
    assert.ok(!equalInConstantTime(other, 'secret', 6), other)
  }
})

test('keys: new ones have the form, and only the right secret matches', () => {
  for (let index = 0; index < 200; index++) {
    assert.ok(isSiteKey(newSiteKey(randomBytes(96)))) // it takes 22 bytes that are not skipped (below)
    const key = newApiKey(randomBytes(128))
    const record = apiKeyRecord(key, { siteKey: 's', createdAt: 0 })
    assert.deepEqual([record.id.length, record.revokedAt], [8, null])
    assert.ok(isApiKeyOf(record, key) && !isApiKeyOf(record, newApiKey(randomBytes(128))))
  }
  // Bytes from 248 on, the last multiple of 62 below 256, are skipped, because they would favour some characters.
  const unbiased = new Array(22).fill(247)
  assert.equal(newSiteKey(Uint8Array.of(248, 255, ...unbiased)), `site_${'z'.repeat(22)}`)
  assert.throws(() => newSiteKey(Uint8Array.from(unbiased.slice(1))), RangeError)
  const [a, b] = ['a'.repeat(21), 'b'.repeat(42)] // each a character short: of a site key, and of an API key's secret
  for (const bad of ['', 'site_', `site_${a}`, `site_${a}aa`, `site_${'-'.repeat(22)}`, `Site_${a}a`])
    assert.ok(!isSiteKey(bad), bad)
  for (const bad of ['', 'sk_', `sk_aaaaaaaa_${b}`, `sk_aaaaaaa_${b}b`, `sk_aaaaaaaa_${b}bb`])
    assert.equal(apiKeyId(bad), undefined, bad)
})

test('sites: whom they refuse, by origin and by page', () => {
  const origins = ['https://a.example']
  const demo = { siteKey: `${DEMO_KEY_PREFIX}1` }
  const [mine, other, foreign] = [
    { origin: 'https://a.example' },
    { origin: 'https://b.example' },
    { isForeign: true },
  ]
  const cases: [
    Partial<SiteRecord>,
    { origin?: string; mayLackOrigin?: boolean; isForeign?: boolean },
    string?,
  ][] = [
    [{ active: false, origins }, mine, 'site-inactive'],
    [{ origins }, { ...mine, ...foreign }],
    [{ origins }, other, 'origin-refused'],
    [{ origins }, {}],
    [{ origins, requireOrigin: true }, {}, 'origin-refused'],
    [{ origins, requireOrigin: true }, { mayLackOrigin: true }],
    [{}, { ...other, ...foreign }],
    [demo, { ...other, ...foreign }, 'origin-refused'],
    [demo, other],
    [
      { ...demo, origins },
      { ...mine, ...foreign },
    ],
  ]
  for (const [change, { origin = '', mayLackOrigin = false, isForeign = false }, refusal] of cases) {
    const record = { ...SITE_DEFAULTS, siteKey: 's', createdAt: 0, updatedAt: 0, ...change }
    const found = siteRefusal(compileSite(record), origin, mayLackOrigin, isForeign)
    assert.equal(found, refusal, JSON.stringify(change))
  }
})

test('sites: a change has a later time than the one before, also while the clock is behind; a raise ends at its moment', () => {
  const site = { ...SITE_DEFAULTS, siteKey: 's', createdAt: 5, updatedAt: 9 }
  assert.deepEqual([nextUpdatedAt(site, 3), nextUpdatedAt(site, 20)], [10, 20])
  assert.equal(nextUpdatedAt({ createdAt: 5 }, 3), 6, 'of a record that was never changed')
  assert.equal(compileSite(site).logTag, 34_638, 'records of addresses have it, so it must stay')
  const raised = { ...site, raise: { bits: 3, until: 1000 } }
  assert.deepEqual([raisedBits(raised, 999), raisedBits(raised, 1000), raisedBits(site, 0)], [3, 0, 0])
})
