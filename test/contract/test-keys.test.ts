/** The published test keys: what each answers where POWGATE_TEST_KEYS is on, and that it is nobody's key where it is off. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TEST_KEYS } from '../../src/domain/test-keys.ts'
import { freshAddress } from '../harness/http.ts'
import { TestService } from '../harness/service.ts'
import {
  assertFailedResult,
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
  assertSiteverified,
  requestsUntilLimited,
} from './answers.ts'
import { claimsOf, onEachStore, Subject, wrongCounter } from './support.ts'

const { passes, fails, used } = TEST_KEYS

/** A browser with every sign of a robot. */
const ROBOT = {
  environment: { webdriver: true, chromeAbsent: true, swiftShader: true, noPlugins: true, zeroScreen: true },
  solveTimeMs: 1e9,
  fingerprintHash: 'f'.repeat(64),
}

function siteKeyTests(subject: Subject): void {
  for (const { siteKey } of [passes, used]) {
    test(`${siteKey}: any right proof passes with score 1, from any origin, once`, async () => {
      const from = freshAddress()
      const headers = { Origin: 'https://any.example' }
      const challenge = await subject.client.challenge(siteKey, { from, headers })
      assert.equal(challenge.json.difficulty, 16)
      const solution = await subject.client.solved(siteKey, { from }, ROBOT)
      const answer = await subject.client.verify(siteKey, solution, { from, headers })
      assertPassed(answer)
      assert.equal(claimsOf(answer.json.token).score, 1)
      assertRefused(await subject.client.verify(siteKey, solution, { from }), 400, 'nonce-used')
    })

    test(`${siteKey}: a wrong proof fails, another address is refused, and a real site's nonce too`, async () => {
      const from = freshAddress()
      const solution = await subject.client.solved(siteKey, { from })
      const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
      assertFailedResult(await subject.client.verify(siteKey, wrong, { from }))
      const elsewhere = await subject.client.verify(siteKey, solution, { from: freshAddress() })
      assertRefused(elsewhere, 403, 'ip-mismatch')
      const real = await subject.client.solved(subject.site.siteKey, { from })
      assertRefused(await subject.client.verify(siteKey, real, { from }), 400, 'invalid-nonce')
      assertRefused(
        await subject.client.verify(subject.site.siteKey, solution, { from }),
        400,
        'invalid-nonce',
      )
    })
  }

  test(`${fails.siteKey}: a solution always fails, and a body that is none is refused`, async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(fails.siteKey, { from })
    for (let attempt = 0; attempt < 3; attempt++)
      assertFailedResult(await subject.client.verify(fails.siteKey, solution, { from }))
    assertRefused(await subject.client.verify(fails.siteKey, '{}', { from }), 400, 'invalid-body')
  })

  test('failures at a test site do not count against the address at other sites', async () => {
    const { siteKey } = await subject.createSite({ threshold: 1 })
    const from = freshAddress()
    const solution = await subject.client.solved(fails.siteKey, { from })
    for (let attempt = 0; attempt < 10; attempt++)
      assertFailedResult(await subject.client.verify(fails.siteKey, solution, { from }))
    assertPassed(
      await subject.client.verify(siteKey, await subject.client.solved(siteKey, { from }), { from }),
    )
  })

  test('limits hold at a test site', async () => {
    const from = freshAddress()
    const ask = () => subject.client.challenge(passes.siteKey, { from })
    assert.equal((await requestsUntilLimited(ask, 200)).admitted, 30)
  })
}

function apiKeyTests(subject: Subject): void {
  const redeem = (apiKey: string, body: object, from = freshAddress()) =>
    subject.client.verifyToken(apiKey, body, { from })
  const siteverify = (body: object, from = freshAddress()) => subject.client.siteverify(body, { from })

  test('always passes: any token, as often as you like', async () => {
    const from = freshAddress()
    const before = Date.now()
    for (const token of ['x', 'x', 'any text', '1'.repeat(1024)]) {
      const answer = await redeem(passes.apiKey, { token }, from)
      assertRedeemed(answer)
      const { solvedAt, ...rest } = answer.json
      assert.deepEqual(rest, { success: true, score: 1, ip: from })
      assert.ok(solvedAt >= before && solvedAt <= Date.now(), String(solvedAt))
    }
    assert.equal(
      (await redeem(passes.apiKey, { token: 'x', expectedIp: '2001:DB8::1' })).json.ip,
      '2001:db8::1',
    )
    assertNotRedeemed(await redeem(passes.apiKey, { token: '' }), 400, 'invalid-body')
    assertNotRedeemed(await redeem(passes.apiKey, { token: 'x', expectedIp: 'here' }), 400, 'invalid-body')
  })

  test('always passes, at /siteverify, whatever the site key', async () => {
    const before = Date.now()
    const fields = { secret: passes.apiKey, response: 'x', sitekey: used.siteKey, remoteip: '192.0.2.1' }
    const answer = await siteverify(new URLSearchParams(fields))
    assertSiteverified(answer)
    assert.equal(answer.json.score, 1)
    assert.ok(Date.parse(answer.json.challenge_ts) >= before)
    assertNotSiteverified(await siteverify({ secret: passes.apiKey }), 'missing-input-response')
  })

  test('always fails, and always already used', async () => {
    const token = await subject.client.token(passes.siteKey, { from: freshAddress() })
    for (const one of [token, 'x']) {
      assertNotRedeemed(await redeem(fails.apiKey, { token: one }), 400, 'invalid-token')
      const answer = await redeem(used.apiKey, { token: one })
      assertNotRedeemed(answer, 400, 'token-used')
      assert.equal(answer.json.error, 'Token already used')
      const failed = await siteverify({ secret: fails.apiKey, response: one })
      assertNotSiteverified(failed, 'invalid-input-response')
      assertNotSiteverified(await siteverify({ secret: used.apiKey, response: one }), 'timeout-or-duplicate')
    }
  })

  test('a test key with another secret is nobody', async () => {
    const apiKey = `${passes.apiKey.slice(0, -1)}1`
    assertNotRedeemed(await redeem(apiKey, { token: 'x' }), 401, 'invalid-credentials')
  })

  test("a test site's token is worth nothing with a real API key; a test key spends no real token", async () => {
    const { siteKey, apiKey } = subject.site
    for (const test of [passes, used]) {
      const token = await subject.client.token(test.siteKey, { from: freshAddress() })
      assertNotRedeemed(await redeem(apiKey, { token }), 400, 'site-mismatch')
      assertNotSiteverified(await siteverify({ secret: apiKey, response: token }), 'sitekey-secret-mismatch')
    }
    const token = await subject.client.token(siteKey, { from: freshAddress() })
    for (const test of [passes, fails, used]) await redeem(test.apiKey, { token })
    assertRedeemed(await redeem(apiKey, { token }))
  })

  test('limits hold for a test key', async () => {
    const from = freshAddress()
    const ask = () => redeem(fails.apiKey, { token: 'x' }, from)
    assert.equal((await requestsUntilLimited(ask, 400)).admitted, 100)
  })
}

function storeTests(subject: Subject): void {
  test('test keys are in no store', async () => {
    const store = await subject.service.openSites()
    try {
      const sites = await store.listSites()
      const apiKeys = await store.listApiKeys()
      for (const { siteKey } of Object.values(TEST_KEYS)) {
        assert.equal(await store.readSite(siteKey), undefined)
        assert.ok(!sites.some(site => site.siteKey === siteKey))
        assert.ok(!apiKeys.some(apiKey => apiKey.siteKey === siteKey))
      }
      assert.ok(sites.some(site => site.siteKey === subject.site.siteKey))
    } finally {
      await store.close()
    }
  })

  test('the service warns at its start, once', () => {
    assert.equal(subject.service.output.match(/POWGATE_TEST_KEYS is on/g)?.length, 1)
  })
}

onEachStore(
  { 'site keys': siteKeyTests, 'API keys': apiKeyTests, 'beside the store': storeTests },
  { env: { POWGATE_TEST_KEYS: 'on' } },
)

describe('test keys that are off', () => {
  const subject = new Subject()
  before(async () => subject.prepare(await TestService.start('embedded')))
  after(() => subject.service.stop())

  test('are unknown keys like any other, and nothing warns', async () => {
    for (const { siteKey, apiKey } of Object.values(TEST_KEYS)) {
      const from = freshAddress()
      assertRefused(await subject.client.challenge(siteKey, { from }), 403, 'site-unknown')
      assertRefused(await subject.client.verify(siteKey, '{}', { from }), 403, 'site-unknown')
      assertNotRedeemed(
        await subject.client.verifyToken(apiKey, { token: 'x' }, { from }),
        401,
        'invalid-credentials',
      )
      assertNotSiteverified(
        await subject.client.siteverify({ secret: apiKey, response: 'x' }, { from }),
        'invalid-input-secret',
      )
    }
    assert.doesNotMatch(subject.service.output, /TEST_KEYS/)
  })
})
