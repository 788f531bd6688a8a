/** Contract, section 8: the limits of /verify-token at their real values. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiKey } from '../../src/sites/sites.ts'
import { call, freshAddress } from '../harness/http.ts'
import { assertLimited, requestsUntilLimited } from './counting.ts'
import { assertNotRedeemed, assertRedeemed, type Subject } from './support.ts'

const PER_ADDRESS = 100
const PER_API_KEY = 200
const POLICIES = { address: PER_ADDRESS, 'api-key': PER_API_KEY }

export function backendLimitTests(subject: Subject): void {
  /** One request as cheap as possible: its body is not good, and it is charged all the same. */
  const ask = (apiKey: string, from: string) => subject.client.verifyToken(apiKey, '{}', { from })
  const admittedOf = (apiKey: string, from: string) => requestsUntilLimited(() => ask(apiKey, from), 400)

  /** Uses up some of a key's limit, from addresses of its own. */
  async function charge(apiKey: string, count: number): Promise<void> {
    let from = freshAddress()
    for (let index = 0; index < count; index++) {
      if (index % 80 === 0) from = freshAddress()
      assertNotRedeemed(await ask(apiKey, from), 400, 'invalid-body')
    }
  }

  test('§8 /verify-token: 100 requests/min per IP (global), over all API keys, then 429', async () => {
    const [first, second] = [await subject.createSite(), await subject.createSite()]
    const from = freshAddress()
    for (let count = 0; count < PER_ADDRESS / 2; count++) {
      assertNotRedeemed(await ask(first.apiKey, from), 400, 'invalid-body')
    }
    const { admitted, refusal } = await admittedOf(second.apiKey, from)
    assert.equal(admitted, PER_ADDRESS / 2)
    assertNotRedeemed(refusal, 429, 'rate-limited')
    assertLimited(refusal, 'address', POLICIES)
    assertNotRedeemed(await ask(first.apiKey, from), 429, 'rate-limited')
    assertNotRedeemed(await ask(first.apiKey, freshAddress()), 400, 'invalid-body')
  })

  test('§8 /verify-token: 200 requests/min per API key, over all IPs, then 429', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const store = await subject.service.openSites()
    const second = await createApiKey(store, siteKey).finally(() => store.close())
    await charge(apiKey, PER_API_KEY - 1)
    const from = freshAddress()
    const { admitted, refusal } = await admittedOf(apiKey, from)
    assert.equal(admitted, 1)
    assertNotRedeemed(refusal, 429, 'rate-limited')
    assertLimited(refusal, 'api-key', POLICIES)
    // What the key's limit refused has not been charged to the address, and the site's other key has its own.
    assert.equal((await admittedOf(second.apiKey, from)).admitted, PER_ADDRESS - 1)
  })

  test('§8 /verify-token: at once over two workers no more than 200 of 250 are admitted', async () => {
    const { apiKey } = await subject.createSite()
    const addresses = Array.from({ length: 5 }, freshAddress)
    const answers = await Promise.all(
      Array.from({ length: 250 }, (_, index) => ask(apiKey, addresses[index % 5]!)),
    )
    assert.equal(answers.filter(answer => answer.status === 400).length, PER_API_KEY)
    assert.equal(answers.filter(answer => answer.status === 429).length, 50)
  })

  test('§8 /verify-token: a request over the limit does not spend its token', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    const token = await subject.client.token(siteKey, { from })
    assert.equal((await admittedOf(apiKey, from)).admitted, PER_ADDRESS)
    const limited = await subject.client.verifyToken(apiKey, { token }, { from })
    assertNotRedeemed(limited, 429, 'rate-limited')
    assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from: freshAddress() }))
  })

  test('§8 /verify-token: successes are charged as well', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    for (let count = 0; count < 3; count++) {
      const token = await subject.client.token(siteKey, { from: freshAddress() })
      assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }))
    }
    assert.equal((await admittedOf(apiKey, from)).admitted, PER_ADDRESS - 3)
  })

  test('§8 /verify-token, decided: missing or malformed credentials, 404, 405 and 413 are not charged', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    const url = `${subject.url}/verify-token`
    const headers = { Authorization: `Bearer ${apiKey}` }
    for (let count = 0; count < PER_ADDRESS + 5; count++) {
      assert.equal((await call(url, { method: 'POST', body: '{}', from })).status, 401)
      assert.equal((await ask('malformed', from)).status, 401)
      assert.equal((await call(url, { method: 'OPTIONS', headers, from })).status, 405)
      assert.equal((await call(`${url}/none`, { method: 'POST', headers, from })).status, 404)
      const tooLarge = await subject.client.verifyToken(apiKey, 'x'.repeat(8193), { from })
      assert.equal(tooLarge.status, 413)
    }
    assert.equal((await admittedOf(apiKey, from)).admitted, PER_ADDRESS)
  })

  test('§8 /verify-token, decided: callers without a valid key count apart', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    const wrongKey = `${apiKey.slice(0, -2)}${apiKey.endsWith('AA') ? 'BB' : 'AA'}`
    const wrong = await requestsUntilLimited(() => ask(wrongKey, from), 401)
    assert.equal(wrong.admitted, PER_ADDRESS)
    assertLimited(wrong.refusal, 'address', POLICIES)
    assert.equal((await admittedOf(apiKey, from)).admitted, PER_ADDRESS)
  })

  test("§8: a backend's requests and a browser's from one address are counted apart", async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    assert.equal((await admittedOf(apiKey, from)).admitted, PER_ADDRESS)
    assert.equal((await subject.client.challenge(siteKey, { from })).status, 200)
  })
}
