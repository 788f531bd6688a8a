/** The contract (docs/reference/contract.md), §8: the limits of all endpoints at their real values. */

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
import {
  type Subject,
  UNKNOWN_API_KEY,
  UNKNOWN_SITE_KEY,
  type Visitor,
  withWrongSecret,
  wrongCounter,
} from './support.ts'

/** Sends a request to an endpoint for browsers. */
export type Ask = (visitor: Visitor, headers?: Record<string, string>) => Promise<Answer>

/** The cheapest requests that are charged; to /verify, a wrong body. */
const challenge: Ask = (visitor, headers) => visitor.challenge(headers)
const verify: Ask = (visitor, headers) => visitor.verify('{}', headers)

const VERIFY_PER_SITE = 20
/** `status` is that of what `ask` sends while it is admitted. */
const ENDPOINTS = [
  { path: '/challenge', perAddress: 60, perSite: 30, wrongMethod: 'POST', ask: challenge, status: 200 },
  { path: '/verify', perAddress: 30, perSite: VERIFY_PER_SITE, wrongMethod: 'PUT', ask: verify, status: 400 },
] as const

export function limitTests(subject: Subject): void {
  for (const { path, perAddress, perSite, wrongMethod, ask, status } of ENDPOINTS) {
    const policies = { address: perAddress, 'address-site': perSite }
    const byAddress = { refusedBy: 'address', policies }
    const byAddressAtSite = { refusedBy: 'address-site', policies }
    const admittedOf = async (visitor: Visitor) =>
      (await requestsUntilLimited(() => ask(visitor), status)).admitted

    test(`§8 ${path}: ${perSite} requests/min per IP per site key, then 429`, async () => {
      const visitor = await subject.visitorOf()
      const refusal = await assertAdmits(perSite, () => ask(visitor), status, byAddressAtSite)
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
      await assertAdmits(0, () => ask(atThird), status, byAddress)
    })

    test(`§8 ${path}, decided: unknown and disabled sites count together and apart: ${perAddress} requests/min per IP`, async () => {
      const visitor = await subject.visitorOf()
      const atDisabled = visitor.at(await subject.createSite({ active: false }))
      assertRefused(await ask(atDisabled), 403, 'site-inactive')
      const atUnknown = visitor.at({ ...visitor.site, siteKey: UNKNOWN_SITE_KEY })
      await assertAdmits(perAddress - 1, () => ask(atUnknown), 403, byAddress) // one was at the disabled site
      assert.equal(await admittedOf(visitor), perSite, 'a site is served as if nothing had been')
    })

    test(`§8 ${path}, decided: a foreign page counts apart, and learns nothing of the visitor's own requests`, async () => {
      const visitor = await subject.visitorOf({ origins: ['https://shop.example'] })
      const askFrom = (Origin: string) => ask(visitor, { Origin })
      await assertAdmits(perSite, () => askFrom('https://shop.example'), status, byAddressAtSite)
      // The visitor's own requests have used up the limit, but the foreign page has all of its own.
      await assertAdmits(perSite, () => askFrom('https://other.example'), 403, byAddressAtSite)
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
      await assertAdmits(perAddress, () => ask(atUnknown), 403, byAddress)
    })
  }

  test('§7, §8 /verify, decided: a nonce that was never issued is 400; such nonces have a limit of their own, and fill none that a solved one needs', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const { nonce } = solution
    // Another first digit of the site's MAC (src/domain/nonce.ts): the service never issued this nonce.
    const other = nonce.slice(0, 16) + (nonce[16] === '0' ? 1 : 0) + nonce.slice(17)
    const invented = { ...solution, nonce: other }
    assertRefused(await visitor.verify(invented), 400, 'invalid-nonce')
    const { admitted } = await requestsUntilLimited(() => visitor.verify(invented), 400)
    assert.equal(admitted, VERIFY_PER_SITE - 1, 'with the one before, all that an address may send')
    assertPassed(await visitor.verify(solution))
  })

  test('§8 /verify: failed verifications are charged as well', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    assert.equal((await requestsUntilLimited(() => visitor.verify(wrong), 200)).admitted, VERIFY_PER_SITE)
    assertRefused(await visitor.verify(solution), 429, 'rate-limited')
  })
}

export const PER_ADDRESS = 100
const PER_API_KEY = 200
const POLICIES = { address: PER_ADDRESS, 'api-key': PER_API_KEY }
const BY_ADDRESS = { refusedBy: 'address', policies: POLICIES }
const BY_API_KEY = { refusedBy: 'api-key', policies: POLICIES }

/** /verify-token and /siteverify draw on the same limits. The cheapest request that is charged has a wrong body, or no token. */
export function backendLimitTests(subject: Subject): void {
  const verifyToken = (apiKey: string, from: string) => subject.redeem('{}', apiKey, from)
  const siteverify = (secret: string, from: string, more = {}) =>
    subject.client.siteverify({ secret, ...more }, { from })
  const admittedOf = async (apiKey: string, from: string) =>
    (await requestsUntilLimited(() => verifyToken(apiKey, from), 400)).admitted

  test('§8: 100 redemptions/min per IP (global), over all API keys, then 429; the token is not spent', async () => {
    const visitor = await subject.visitorOf()
    const token = await visitor.token()
    const from = freshAddress()
    // With its key, a retry gets its answer again. Without one, the token would be used, and such requests have another limit (below).
    const retried = { token: await subject.visitor(visitor.site).token(), idempotencyKey: 'k' }
    const retry = () => subject.redeem(retried, visitor.site.apiKey, from)
    await assertAdmits(PER_ADDRESS, retry, 200, BY_ADDRESS)
    assertNotRedeemed(await subject.redeem({ token }, visitor.site.apiKey, from), 429, 'rate-limited')
    const limited = await siteverify(visitor.site.apiKey, from, { response: token })
    assertNotSiteverified(limited, 'rate-limited', 429)
    assertLimited(limited, BY_ADDRESS)
    assertSiteverified(await siteverify(visitor.site.apiKey, freshAddress(), { response: token }))
  })

  test('§8, decided: redemptions that cost their sender nothing have a limit of their own, over all API keys and both endpoints', async () => {
    const visitor = await subject.visitorOf()
    const { apiKey: first } = visitor.site
    const { apiKey: second } = await subject.createSite()
    const from = freshAddress()
    const used = await visitor.token()
    assertRedeemed(await subject.redeem({ token: used }, first, from))
    // These cost their sender nothing: 40 wrong bodies, 20 requests without a token, 10 with a used one.
    for (let count = 0; count < 40; count++)
      assertNotRedeemed(await verifyToken(first, from), 400, 'invalid-body')
    for (let count = 0; count < 20; count++)
      assertNotSiteverified(await siteverify(first, from), 'missing-input-response')
    const askUsed = () => subject.redeem({ token: used }, first, from)
    for (let count = 0; count < 10; count++) assertNotRedeemed(await askUsed(), 400, 'token-used')
    await assertAdmits(PER_ADDRESS - (40 + 20 + 10), () => verifyToken(second, from), 400, BY_ADDRESS)
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
    await assertAdmits(left, () => verifyToken(apiKey, freshAddress()), 400, BY_API_KEY)
    const refusal = await verifyToken(apiKey, from)
    assertNotRedeemed(refusal, 429, 'rate-limited')
    assertLimited(refusal, BY_API_KEY)
    assertLimited(await siteverify(apiKey, from), BY_API_KEY)
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
      [401, () => verifyToken('malformed', from)],
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
    await assertAdmits(PER_ADDRESS, () => verifyToken(withWrongSecret(apiKey), from), 401, BY_ADDRESS)
  })

  test('§8, decided: callers without a valid key count apart, at both endpoints', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    for (let count = 0; count < 50; count++)
      assertNotSiteverified(await siteverify(UNKNOWN_API_KEY, from), 'invalid-input-secret')
    await assertAdmits(PER_ADDRESS - 50, () => verifyToken(withWrongSecret(apiKey), from), 401, BY_ADDRESS)
    assert.equal(await admittedOf(apiKey, from), PER_ADDRESS)
  })
}

const POLL_MS = 3000

/** Each of these tests takes a minute, and all wait at the same time. */
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
    assert.ok(elapsedMs >= 60_000, `admitted after ${elapsedMs} ms`)
    return // this busy machine slept past the end of the wait
  }
  await sleep(Math.max(0, mayReturnAt - performance.now()))
  const answer = await ask()
  assert.equal(answer.status, status, answer.text)
}
