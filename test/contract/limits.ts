/** Contract §8: the limits of all endpoints at their real values. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApiKey } from '../../src/sites/sites.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import {
  assertAdmits,
  assertLimited,
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
  assertSiteverified,
  requestsUntilLimited,
} from './answers.ts'
import { type Subject, UNKNOWN_SITE_KEY, type Visitor, wrongCounter } from './support.ts'

/** Sends the cheapest request that is charged; to /verify, a wrong body. */
type Ask = (visitor: Visitor, headers?: Record<string, string>) => Promise<Answer>
const challenge: Ask = (visitor, headers) => visitor.challenge(headers)
const verify: Ask = (visitor, headers) => visitor.verify('{}', headers)

const ENDPOINTS = [
  { path: '/challenge', perAddress: 60, perSite: 30, wrongMethod: 'POST', ask: challenge, status: 200 },
  { path: '/verify', perAddress: 30, perSite: 20, wrongMethod: 'PUT', ask: verify, status: 400 },
] as const

export function limitTests(subject: Subject): void {
  for (const { path, perAddress, perSite, wrongMethod, ask, status } of ENDPOINTS) {
    const policies = { address: perAddress, 'address-site': perSite }
    const admittedOf = async (visitor: Visitor) =>
      (await requestsUntilLimited(() => ask(visitor), status)).admitted

    test(`§8 ${path}: ${perSite} requests/min per IP per site key, then 429`, async () => {
      const visitor = await subject.visitorOf()
      const refusal = await assertAdmits(perSite, () => ask(visitor), status, 'address-site', policies)
      assertRefused(refusal, 429, 'rate-limited')
      const other = await ask(subject.visitor(visitor.site))
      assert.equal(other.status, status, 'another address has its own')
    })

    test(`§8 ${path}: ${perAddress} requests/min per IP (global), over all site keys; a refused one is not charged`, async () => {
      const visitor = await subject.visitorOf()
      assert.equal(await admittedOf(visitor), perSite)
      for (let count = 0; count < 10; count++) assertRefused(await ask(visitor), 429, 'rate-limited')
      const atSecond = visitor.at(await subject.createSite())
      assert.equal(await admittedOf(atSecond), perAddress - perSite)
      const atThird = visitor.at(await subject.createSite())
      await assertAdmits(0, () => ask(atThird), status, 'address', policies)
    })

    test(`§8 ${path}, decided: unknown and disabled sites count together and apart: ${perAddress} requests/min per IP`, async () => {
      const visitor = await subject.visitorOf()
      const atDisabled = visitor.at(await subject.createSite({ active: false }))
      assertRefused(await ask(atDisabled), 403, 'site-inactive')
      const atUnknown = visitor.at({ ...visitor.site, siteKey: UNKNOWN_SITE_KEY })
      await assertAdmits(perAddress - 1, () => ask(atUnknown), 403, 'address', policies)
      assert.equal(await admittedOf(visitor), perSite, 'a site is served as if nothing had been')
    })

    test(`§8 ${path}, decided: a foreign page counts apart, and learns nothing of the visitor's own requests`, async () => {
      const visitor = await subject.visitorOf({ origins: ['https://shop.example'] })
      const askFrom = (Origin: string) => ask(visitor, { Origin })
      for (const [name, code] of Object.entries({ shop: status, other: 403 }))
        await assertAdmits(perSite, () => askFrom(`https://${name}.example`), code, 'address-site', policies)
    })

    test(`§8 ${path}, decided: a missing or malformed site key, preflight, 404, 405 and 413 are not charged`, async () => {
      const visitor = await subject.visitorOf()
      const { site, from } = visitor
      const url = subject.url + path
      const headers = { 'X-Site-Key': site.siteKey }
      for (const siteKey of ['', 'site_malformed'])
        assert.equal((await ask(visitor.at({ ...site, siteKey }))).status, 400)
      assert.equal((await call(url, { method: 'OPTIONS', headers, from })).status, 200)
      assert.equal((await call(`${url}/none`, { headers, from })).status, 404)
      assert.equal((await call(url, { method: wrongMethod, headers, from })).status, 405)
      assert.equal((await visitor.verify('x'.repeat(8193))).status, 413)
      // One charge would show: in the site's window, in the address's, or in that of unknown sites.
      assert.equal(await admittedOf(visitor), perSite)
      assert.equal(await admittedOf(visitor.at(await subject.createSite())), perAddress - perSite)
      const atUnknown = visitor.at({ ...site, siteKey: UNKNOWN_SITE_KEY })
      await assertAdmits(perAddress, () => ask(atUnknown), 403, 'address', policies)
    })
  }

  test('§7, §8 /verify, decided: a nonce that was never issued is 400; such nonces have a limit of their own, and fill none that a solved one needs', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const { nonce } = solution
    // One digit of the site's MAC differs: the service never issued this nonce.
    const other = nonce.slice(0, 20) + (nonce[20] === '0' ? 1 : 0) + nonce.slice(21)
    const invented = { ...solution, nonce: other }
    assertRefused(await visitor.verify(invented), 400, 'invalid-nonce')
    const { admitted } = await requestsUntilLimited(() => visitor.verify(invented), 400)
    assert.equal(admitted, 20 - 1, 'with the one before, as many as an address may send to a site')
    assertPassed(await visitor.verify(solution))
  })

  test('§8 /verify: failed verifications are charged as well', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    assert.equal((await requestsUntilLimited(() => visitor.verify(wrong), 200)).admitted, 20)
    assertRefused(await visitor.verify(solution), 429, 'rate-limited')
  })
}

const PER_ADDRESS = 100
const PER_API_KEY = 200
const POLICIES = { address: PER_ADDRESS, 'api-key': PER_API_KEY }

const wrongKeyOf = (apiKey: string) => `${apiKey.slice(0, -2)}${apiKey.endsWith('AA') ? 'BB' : 'AA'}`

/** /verify-token and /siteverify draw on the same limits. */
export function backendLimitTests(subject: Subject): void {
  /** Sends the cheapest request that is charged, with a wrong body. */
  const ask = (apiKey: string, from: string) => subject.redeem('{}', apiKey, from)
  const siteverify = (secret: string, from: string, more = {}) =>
    subject.client.siteverify({ secret, ...more }, { from })
  const admittedOf = async (apiKey: string, from: string) =>
    (await requestsUntilLimited(() => ask(apiKey, from), 400)).admitted

  test('§8: 100 redemptions/min per IP (global), over all API keys, then 429; the token is not spent', async () => {
    const visitor = await subject.visitorOf()
    const token = await visitor.token()
    const from = freshAddress()
    const retried = { token: await subject.visitor(visitor.site).token(), idempotencyKey: 'k' }
    const askGood = () => subject.redeem(retried, visitor.site.apiKey, from)
    await assertAdmits(PER_ADDRESS, askGood, 200, 'address', POLICIES)
    assertNotRedeemed(await subject.redeem({ token }, visitor.site.apiKey, from), 429, 'rate-limited')
    const limited = await siteverify(visitor.site.apiKey, from, { response: token })
    assertNotSiteverified(limited, 'rate-limited', 429)
    assertLimited(limited, 'address', POLICIES)
    assertSiteverified(await siteverify(visitor.site.apiKey, freshAddress(), { response: token }))
  })

  test('§8, decided: redemptions that cost their sender nothing have a limit of their own, over all API keys and both endpoints', async () => {
    const visitor = await subject.visitorOf()
    const [{ apiKey: first }, { apiKey: second }] = [visitor.site, await subject.createSite()]
    const from = freshAddress()
    const used = await visitor.token()
    assertRedeemed(await subject.redeem({ token: used }, first, from))
    // These cost their sender nothing: 40 wrong bodies, 20 requests without a token, 10 with a used one.
    for (let count = 0; count < 40; count++) assertNotRedeemed(await ask(first, from), 400, 'invalid-body')
    for (let count = 0; count < 20; count++)
      assertNotSiteverified(await siteverify(first, from), 'missing-input-response')
    const askUsed = () => subject.redeem({ token: used }, first, from)
    for (let count = 0; count < 10; count++) assertNotRedeemed(await askUsed(), 400, 'token-used')
    await assertAdmits(PER_ADDRESS - (40 + 20 + 10), () => ask(second, from), 400, 'address', POLICIES)
    assertNotRedeemed(await askUsed(), 429, 'rate-limited')
    const again = await subject.visitor(visitor.site).token()
    assertRedeemed(await subject.redeem({ token: again }, first, from))
  })

  test('§8: 200 redemptions/min per API key, over all IPs and both endpoints, then 429', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const { apiKey: second } = await subject.withSites(store => createApiKey(store, siteKey))
    const [first, from] = [freshAddress(), freshAddress()]
    for (let count = 0; count < PER_ADDRESS; count++)
      assertNotSiteverified(await siteverify(apiKey, first), 'missing-input-response')
    const left = PER_API_KEY - PER_ADDRESS
    await assertAdmits(left, () => ask(apiKey, freshAddress()), 400, 'api-key', POLICIES)
    const refusal = await ask(apiKey, from)
    assertNotRedeemed(refusal, 429, 'rate-limited')
    assertLimited(refusal, 'api-key', POLICIES)
    assertLimited(await siteverify(apiKey, from), 'api-key', POLICIES)
    // Requests that the key's limit refused were not charged to the address, and the site's other key has a limit of its own.
    assert.equal(await admittedOf(second, from), PER_ADDRESS)
  })

  test('§8, decided: missing or malformed credentials, 404, 405 and 413 are not charged', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    const url = `${subject.url}/verify-token`
    const headers = { Authorization: `Bearer ${apiKey}` }
    const uncharged: readonly (readonly [status: number, () => Promise<Answer>])[] = [
      [401, () => call(url, { method: 'POST', body: '{}', from })],
      [401, () => ask('malformed', from)],
      [405, () => call(url, { method: 'OPTIONS', headers, from })],
      [404, () => call(`${url}/none`, { method: 'POST', headers, from })],
      [413, () => subject.redeem('x'.repeat(8193), apiKey, from)],
      [200, () => subject.client.siteverify({}, { from })],
      [200, () => siteverify('malformed', from)],
      [200, () => subject.client.siteverify('{', { from })],
      [200, () => subject.client.siteverify(new URLSearchParams('secret=%'), { from })],
    ]
    for (const [status, send] of uncharged) assert.equal((await send()).status, status)
    assert.equal(await admittedOf(apiKey, from), PER_ADDRESS)
    // Neither were they as from callers without a valid key, who count apart.
    await assertAdmits(PER_ADDRESS, () => ask(wrongKeyOf(apiKey), from), 401, 'address', POLICIES)
  })

  test('§8, decided: callers without a valid key count apart, at both endpoints', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    for (let count = 0; count < 50; count++)
      assertNotSiteverified(await siteverify(`sk_00000000_${'A'.repeat(43)}`, from), 'invalid-input-secret')
    await assertAdmits(PER_ADDRESS - 50, () => ask(wrongKeyOf(apiKey), from), 401, 'address', POLICIES)
    assert.equal(await admittedOf(apiKey, from), PER_ADDRESS)
  })
}

const WINDOW_MS = 60_000
const POLL_MS = 3000

/** Each test takes a minute, and all wait at the same time. */
export function minuteTests(subject: Subject): void {
  const redeem: Ask = ({ from }) => subject.redeem('{}', subject.site.apiKey, from)
  const backends = { path: '/verify-token', perSite: PER_ADDRESS, ask: redeem, status: 400 }
  for (const { path, perSite, ask, status } of [...ENDPOINTS, backends]) {
    test(`§8 ${path}: limits are counted per minute; who waits for Retry-After is admitted`, async () => {
      const visitor = await subject.visitorOf()
      await waitsAMinute(() => ask(visitor), perSite, status)
    })
  }
}

/** Keeps sending requests while they are refused, because these must not extend the wait. */
async function waitsAMinute(ask: () => Promise<Answer>, limit: number, status: number): Promise<void> {
  const startedAt = performance.now()
  const { admitted, refusal } = await requestsUntilLimited(ask, status)
  const mayReturnAt = performance.now() + Number(refusal.headers['retry-after']) * 1000
  assert.equal(admitted, limit)
  while (performance.now() + POLL_MS < mayReturnAt) {
    await sleep(POLL_MS)
    if ((await ask()).status === 429) continue
    const elapsedMs = performance.now() - startedAt
    assert.ok(elapsedMs >= WINDOW_MS, `admitted after ${elapsedMs} ms`)
    return // the busy machine slept for longer
  }
  await sleep(Math.max(0, mayReturnAt - performance.now()))
  const answer = await ask()
  assert.equal(answer.status, status, answer.text)
}
