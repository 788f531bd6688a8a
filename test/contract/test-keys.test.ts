/** The published test keys: the answers of each with POWGATE_TEST_KEYS=on, and that they are unknown otherwise. */

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { TEST_KEYS } from '../../src/domain/test-keys.ts'
import { FLAGS } from '../harness/client.ts'
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
import { claimsOf, onHosts, Subject, wrongCounter } from './support.ts'

const { passes, fails, used } = TEST_KEYS

const environment = Object.fromEntries(FLAGS.map(flag => [flag, true]))
const ROBOT = { environment, solveTimeMs: 1e9, fingerprintHash: 'f'.repeat(64) }

function siteKeyTests(subject: Subject): void {
  for (const site of [passes, used]) {
    test(`${site.siteKey}: any right proof passes with score 1, from any origin, once`, async () => {
      const visitor = subject.visitor(site)
      const headers = { Origin: 'https://any.example' }
      assert.equal((await visitor.challenge(headers)).json.difficulty, 16)
      const solution = await visitor.solved(ROBOT)
      const answer = await visitor.verify(solution, headers)
      assertPassed(answer)
      assert.equal(claimsOf(answer.json.token).score, 1)
      assertRefused(await visitor.verify(solution), 400, 'nonce-used')
      for (let again = 0; again < 2; again++)
        assertPassed(await visitor.verify(await visitor.solved(), headers))
      const rate = await subject.withSites(store => store.readUsualRate(site.siteKey))
      assert.equal(rate, undefined, 'and counts as no traffic, though it returns')
    })

    test(`${site.siteKey}: a wrong proof fails, another address is refused, and a real site's nonce too`, async () => {
      const visitor = subject.visitor(site)
      const solution = await visitor.solved()
      assertFailedResult(await visitor.verify({ ...solution, counter: wrongCounter(solution.nonce) }))
      assertRefused(await subject.visitor(site).verify(solution), 403, 'ip-mismatch')
      const real = visitor.at(subject.site)
      assertRefused(await visitor.verify(await real.solved()), 400, 'invalid-nonce')
      assertRefused(await real.verify(solution), 400, 'invalid-nonce')
    })
  }

  test(`${fails.siteKey}: a solution always fails, which counts at no other site; a body that is none is refused`, async () => {
    const visitor = subject.visitor(fails)
    const solution = await visitor.solved()
    for (let attempt = 0; attempt < 10; attempt++) assertFailedResult(await visitor.verify(solution))
    assertRefused(await visitor.verify('{}'), 400, 'invalid-body')
    await visitor.at(await subject.createSite({ threshold: 1 })).passed()
  })

  test("§8: limits hold at a test site, and for a test key; a browser's requests and a backend's from one address count apart", async () => {
    const visitor = subject.visitor(passes)
    assert.equal((await requestsUntilLimited(() => visitor.challenge(), 200)).admitted, 30)
    const redeem = () => subject.redeem({ token: 'x' }, fails.apiKey, visitor.from)
    assert.equal((await requestsUntilLimited(redeem, 400)).admitted, 100)
  })

  test('test keys are in no store, and the service warns of them at its start, once', () =>
    subject.withSites(async store => {
      const records = [...(await store.listSites()), ...(await store.listApiKeys())]
      const siteKeys = records.map(({ siteKey }) => siteKey)
      for (const { siteKey } of Object.values(TEST_KEYS)) assert.ok(!siteKeys.includes(siteKey))
      assert.ok(siteKeys.includes(subject.site.siteKey))
      assert.equal(subject.service.output.match(/POWGATE_TEST_KEYS is on/g)?.length, 1)
    }))
}

function apiKeyTests(subject: Subject): void {
  const siteverify = (body: object) => subject.client.siteverify(body, { from: freshAddress() })

  test('always passes: any token, as often as you like', async () => {
    const from = freshAddress()
    const redeem = (body: object) => subject.redeem(body, passes.apiKey, from)
    const before = Date.now()
    for (const token of ['x', 'x', 'any text', '1'.repeat(1024)]) {
      const answer = await redeem({ token })
      assertRedeemed(answer)
      const { solvedAt, ...rest } = answer.json
      assert.deepEqual(rest, { success: true, score: 1, ip: from })
      assert.ok(solvedAt >= before && solvedAt <= Date.now(), String(solvedAt))
    }
    assert.equal((await redeem({ token: 'x', expectedIp: '2001:DB8::1' })).json.ip, '2001:db8::1')
    for (const body of [{ token: '' }, { token: 'x', expectedIp: 'here' }])
      assertNotRedeemed(await redeem(body), 400, 'invalid-body')
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

  test('the test key `fails` refuses every token as invalid, `used` as already used; one with another secret is nobody', async () => {
    for (const token of [await subject.visitor(passes).token(), 'x']) {
      for (const [{ apiKey }, code, codeThere] of [
        [fails, 'invalid-token', 'invalid-input-response'],
        [used, 'token-used', 'timeout-or-duplicate'],
      ] as const) {
        assertNotRedeemed(await subject.redeem({ token }, apiKey), 400, code)
        assertNotSiteverified(await siteverify({ secret: apiKey, response: token }), codeThere)
      }
    }
    const stranger = `${passes.apiKey.slice(0, -1)}1`
    assertNotRedeemed(await subject.redeem({ token: 'x' }, stranger), 401, 'invalid-credentials')
  })

  test("a test site's token is worth nothing with a real API key; a test key spends no real token", async () => {
    const { apiKey: secret } = subject.site
    for (const site of [passes, used]) {
      const token = await subject.visitor(site).token()
      assertNotRedeemed(await subject.redeem({ token }), 400, 'site-mismatch')
      assertNotSiteverified(await siteverify({ secret, response: token }), 'sitekey-secret-mismatch')
    }
    const token = await subject.visitor().token()
    for (const { apiKey } of [passes, fails, used]) await subject.redeem({ token }, apiKey)
    assertRedeemed(await subject.redeem({ token }))
  })
}

const SECTIONS = { 'site keys': siteKeyTests, 'API keys': apiKeyTests }
onHosts([{ store: 'embedded', sections: SECTIONS, env: { POWGATE_TEST_KEYS: 'on' } }])

const subject = new Subject()
before(async () => subject.prepare(await TestService.start('embedded')))

test('with POWGATE_TEST_KEYS off, a test key is an unknown key, and the start warns of nothing', async () => {
  for (const site of Object.values(TEST_KEYS)) {
    const visitor = subject.visitor(site)
    assertRefused(await visitor.challenge(), 403, 'site-unknown')
    assertRefused(await visitor.verify('{}'), 403, 'site-unknown')
    assertNotRedeemed(await visitor.redeem({ token: 'x' }), 401, 'invalid-credentials')
    const answer = await subject.client.siteverify({ secret: site.apiKey, response: 'x' })
    assertNotSiteverified(answer, 'invalid-input-secret')
  }
  assert.doesNotMatch(subject.service.output, /TEST_KEYS/)
})
