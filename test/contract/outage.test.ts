/** Contract, sections 7 and 8: 503 while the store is away; /verify-token fails closed. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Answer, call, freshAddress } from '../support/http.ts'
import { TestService } from '../support/service.ts'
import { assertNotRedeemed, assertPassed, assertRefused, Subject } from './support.ts'

/** More connections than that never all end at one of two workers. */
const CONNECTIONS = 20

function assertUnavailableHeaders(answer: Answer): void {
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
  assert.match(String(answer.headers.ratelimit), /^"[\w-]+";r=0;t=\d+$/)
  assert.match(String(answer.headers['ratelimit-policy']), /^"[\w-]+";q=\d+;w=60, "[\w-]+";q=\d+;w=60$/)
}

function hasCors(answer: Answer): boolean {
  return Object.keys(answer.headers).some(name => name.startsWith('access-control-'))
}

/** A service on a Redis that runs, of which both workers have seen the site and its API key. */
async function prepareWarm(subject: Subject, env: Record<string, string> = {}): Promise<void> {
  await subject.prepare(await TestService.start('redis', env))
  for (let count = 0; count < CONNECTIONS; count++) {
    const answer = await subject.client.verifyToken(subject.site.apiKey, '{}', { from: freshAddress() })
    assertNotRedeemed(answer, 400, 'invalid-body')
  }
}

describe('Redis is away', () => {
  const subject = new Subject()
  let token: string
  before(async () => {
    await prepareWarm(subject)
    token = await subject.client.token(subject.site.siteKey, { from: freshAddress() })
    await subject.service.redis!.kill()
  })
  after(() => subject.service.stop())

  test('§7 /verify-token: 503, the endpoint fails closed, with the failure body and Retry-After', async () => {
    for (let count = 0; count < CONNECTIONS; count++) {
      const answer = await subject.client.verifyToken(
        subject.site.apiKey,
        { token },
        { from: freshAddress() },
      )
      assertNotRedeemed(answer, 503, 'unavailable')
      assertUnavailableHeaders(answer)
      assert.ok(!hasCors(answer))
    }
  })

  test('§8 fail-closed: a request that could not be counted is refused even if its body is wrong', async () => {
    const answer = await subject.client.verifyToken(subject.site.apiKey, '{}', { from: freshAddress() })
    assertNotRedeemed(answer, 503, 'unavailable')
  })

  test('§5 rule 3: a missing Authorization header is 401 nevertheless', async () => {
    const answer = await call(`${subject.url}/verify-token`, { method: 'POST', body: '{}' })
    assertNotRedeemed(answer, 401, 'missing-credentials')
  })

  test('§7, decided: /challenge and /verify fail open', async () => {
    const { siteKey } = subject.site
    for (let count = 0; count < 5; count++) {
      const from = freshAddress()
      const solution = await subject.client.solved(siteKey, { from })
      assertPassed(await subject.client.verify(siteKey, solution, { from }))
      assertRefused(await subject.client.verify(siteKey, solution, { from }), 400, 'nonce-used')
    }
  })

  test('§8, decided: meanwhile an address still has a limit, of at most that of the contract', async () => {
    const from = freshAddress()
    const statuses: number[] = []
    for (let count = 0; count < 31; count++) {
      statuses.push((await subject.client.challenge(subject.site.siteKey, { from })).status)
    }
    assert.equal(statuses[0], 200)
    assert.equal(statuses.at(-1), 429)
  })
})

describe('Redis is away and nothing fails open', () => {
  const subject = new Subject()
  before(async () => {
    await prepareWarm(subject, { POWGATE_FAIL_OPEN: 'none' })
    await subject.service.redis!.kill()
  })
  after(() => subject.service.stop())

  for (const path of ['/challenge', '/verify']) {
    test(`§7 ${path}: 503, with an error body, Retry-After and CORS`, async () => {
      const { siteKey } = subject.site
      for (let count = 0; count < CONNECTIONS; count++) {
        const from = freshAddress()
        const answer = await (path === '/challenge'
          ? subject.client.challenge(siteKey, { from })
          : subject.client.verify(siteKey, '{}', { from }))
        assertRefused(answer, 503, 'unavailable')
        assertUnavailableHeaders(answer)
        assert.equal(answer.headers['access-control-allow-origin'], '*')
      }
    })

    test(`§4.4 ${path}, decided: the preflight does not need the store`, async () => {
      const url = subject.url + path
      assert.equal((await call(url, { method: 'OPTIONS', from: freshAddress() })).status, 204)
    })
  }

  test('§5 rule 1: a missing site key is 400 nevertheless', async () => {
    assertRefused(await subject.client.challenge('', { from: freshAddress() }), 400, 'site-key-missing')
  })
})
