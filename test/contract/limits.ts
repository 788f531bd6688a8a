/** Contract, section 8: the limits of /challenge and /verify at their real values. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { assertLimited, requestsUntilLimited } from './counting.ts'
import { assertRefused, type Subject, UNKNOWN_SITE_KEY, wrongCounter } from './support.ts'

interface LimitedEndpoint {
  readonly path: '/challenge' | '/verify'
  readonly perAddress: number
  readonly perSite: number
  readonly wrongMethod: string
  /** One request as cheap as possible; /verify's has no good body and is charged all the same. */
  ask(subject: Subject, siteKey: string, from: string, headers?: Record<string, string>): Promise<Answer>
  readonly status: number
}

const ENDPOINTS: readonly LimitedEndpoint[] = [
  {
    path: '/challenge',
    perAddress: 60,
    perSite: 30,
    wrongMethod: 'POST',
    ask: (subject, siteKey, from, headers = {}) => subject.client.challenge(siteKey, { from, headers }),
    status: 200,
  },
  {
    path: '/verify',
    perAddress: 30,
    perSite: 20,
    wrongMethod: 'PUT',
    ask: (subject, siteKey, from, headers = {}) => subject.client.verify(siteKey, '{}', { from, headers }),
    status: 400,
  },
]

export function limitTests(subject: Subject): void {
  for (const { path, perAddress, perSite, wrongMethod, ask, status } of ENDPOINTS) {
    const policies = { address: perAddress, 'address-site': perSite }
    const admittedOf = (siteKey: string, from: string) =>
      requestsUntilLimited(() => ask(subject, siteKey, from), status)

    test(`§8 ${path}: ${perSite} requests/min per IP per site key, then 429`, async () => {
      const { siteKey } = await subject.createSite()
      const { admitted, refusal } = await admittedOf(siteKey, freshAddress())
      assert.equal(admitted, perSite)
      assertLimited(refusal, 'address-site', policies)
      assertRefused(refusal, 429, 'rate-limited')
      assert.equal(
        (await ask(subject, siteKey, freshAddress())).status,
        status,
        'another address has its own',
      )
    })

    test(`§8 ${path}: ${perAddress} requests/min per IP (global), over all site keys; a refused one is not charged`, async () => {
      const from = freshAddress()
      const first = await subject.createSite()
      assert.equal((await admittedOf(first.siteKey, from)).admitted, perSite)
      for (let count = 0; count < 10; count++) {
        assertRefused(await ask(subject, first.siteKey, from), 429, 'rate-limited')
      }
      const second = await subject.createSite()
      assert.equal((await admittedOf(second.siteKey, from)).admitted, perAddress - perSite)
      const third = await subject.createSite()
      const { admitted, refusal } = await admittedOf(third.siteKey, from)
      assert.equal(admitted, 0)
      assertLimited(refusal, 'address', policies)
    })

    test(`§8 ${path}: at once over two workers no more than ${perAddress} of 100 are admitted`, async () => {
      const from = freshAddress()
      const sites = await Promise.all(Array.from({ length: 5 }, () => subject.createSite()))
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => ask(subject, sites[index % 5]!.siteKey, from)),
      )
      assert.equal(answers.filter(answer => answer.status === status).length, perAddress)
      assert.equal(answers.filter(answer => answer.status === 429).length, 100 - perAddress)
    })

    test(`§8 ${path}, decided: unknown and disabled sites count together and apart: ${perAddress} requests/min per IP`, async () => {
      const from = freshAddress()
      const disabled = await subject.createSite({ active: false })
      assertRefused(await ask(subject, disabled.siteKey, from), 403, 'site-inactive')
      const unknown = await requestsUntilLimited(() => ask(subject, UNKNOWN_SITE_KEY, from), 403)
      assert.equal(unknown.admitted, perAddress - 1)
      assertLimited(unknown.refusal, 'address', policies)
      const { siteKey } = await subject.createSite()
      assert.equal(
        (await admittedOf(siteKey, from)).admitted,
        perSite,
        'a site is served as if nothing had been',
      )
    })

    test(`§8 ${path}, decided: a foreign page counts apart, and learns nothing of the visitor's own requests`, async () => {
      const { siteKey } = await subject.createSite({ origins: ['https://shop.example'] })
      const from = freshAddress()
      const askFrom = (Origin: string) => ask(subject, siteKey, from, { Origin })
      const own = await requestsUntilLimited(() => askFrom('https://shop.example'), status)
      assert.equal(own.admitted, perSite)
      const foreign = await requestsUntilLimited(() => askFrom('https://other.example'), 403)
      assert.equal(foreign.admitted, perSite)
      assertLimited(foreign.refusal, 'address-site', policies)
    })

    test(`§8 ${path}, decided: a missing or malformed site key, preflight, 404, 405 and 413 are not charged`, async () => {
      const { siteKey } = await subject.createSite()
      const from = freshAddress()
      const url = subject.url + path
      const headers = { 'X-Site-Key': siteKey }
      for (let count = 0; count < perAddress + 5; count++) {
        assert.equal((await ask(subject, '', from)).status, 400)
        assert.equal((await ask(subject, 'site_malformed', from)).status, 400)
        assert.equal((await call(url, { method: 'OPTIONS', headers, from })).status, 200)
        assert.equal((await call(`${url}/none`, { headers, from })).status, 404)
        assert.equal((await call(url, { method: wrongMethod, headers, from })).status, 405)
        const tooLarge = await subject.client.verify(siteKey, 'x'.repeat(8193), { from })
        assert.equal(tooLarge.status, 413)
      }
      assert.equal((await admittedOf(siteKey, from)).admitted, perSite)
    })
  }

  test('§8: the limits of /challenge and /verify are counted apart', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    for (const { perSite, ask, status } of ENDPOINTS) {
      const { admitted } = await requestsUntilLimited(() => ask(subject, siteKey, from), status)
      assert.equal(admitted, perSite)
    }
  })

  test('§8 /verify: failed verifications are charged as well', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const wrong = { ...solution, counter: wrongCounter(solution.nonce) }
    const { admitted } = await requestsUntilLimited(
      () => subject.client.verify(siteKey, wrong, { from }),
      200,
    )
    assert.equal(admitted, 20)
    assertRefused(await subject.client.verify(siteKey, solution, { from }), 429, 'rate-limited')
  })
}
