/** The contract (docs/reference/contract.md), §7 and §8: 503 while the store is away, as in the OpenAPI document; /verify-token fails closed. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { SiteSettings } from '../../src/domain/site-fields.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { workerPids } from '../harness/processes.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { CONNECTIONS, TestService, type TestSite } from '../harness/service.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRefused,
  assertSiteverified,
} from './answers.ts'
import { OpenapiChecker, SEEN_BY_OUTAGE_TEST } from './openapi-checker.ts'
import { Subject, UNKNOWN_API_KEY, untilAll } from './support.ts'

const checker = new OpenapiChecker()
checker.listen()

function assertUnavailableHeaders(answer: Answer): void {
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
  assert.match(String(answer.headers.ratelimit), /^"[\w-]+";r=0;t=\d+$/)
  assert.match(String(answer.headers['ratelimit-policy']), /^"[\w-]+";q=\d+;w=60, "[\w-]+";q=\d+;w=60$/)
}

const hasCors = (answer: Answer): boolean =>
  Object.keys(answer.headers).some(name => name.startsWith('access-control-'))

/** Challenges a minute at such a site. It is no usual limit, and odd, so that the half of it that a worker admits is rounded. */
const WARM_SITE_LIMIT = 21

/** A site that both workers have seen. */
async function warmSite(subject: Subject, failOpen: SiteSettings['failOpen'] & object): Promise<TestSite> {
  const site = await subject.createSite({ failOpen, limits: { challenge: WARM_SITE_LIMIT } })
  for (let count = 0; count < CONNECTIONS; count++)
    assert.equal((await subject.visitor(site).challenge()).status, 200)
  return site
}

/** Counts the challenges that one visitor gets until a refusal, over one connection, whose requests all reach the same worker. */
async function admittedByOneWorker({ service }: Subject, { siteKey }: TestSite): Promise<number> {
  const connection = await RawConnection.open(service.port, freshAddress())
  const request = requestText('GET /challenge', [`X-Site-Key: ${siteKey}`])
  let admitted = 0
  let answer = await connection.request(request)
  for (; answer?.status === 200; admitted++) answer = await connection.request(request)
  connection.close()
  assert.equal(answer?.status, 429)
  return admitted
}

/** Two seconds in place of ten shorten the tests. */
const OPEN_AFTER_MS = 2000
const ENV = {
  POWGATE_FAIL_OPEN_AFTER_SECONDS: '2',
  POWGATE_STORE_DEADLINE_MS: '2000',
  LOG_LEVEL: 'trace', // for the search for secrets at the end of a run
}

/** A service on a Redis that runs, of which both workers have seen the site and its API key. */
async function prepareWarm(subject: Subject, env: Record<string, string> = {}): Promise<void> {
  await subject.prepare(await TestService.start('redis', { ...ENV, ...env }))
  for (let count = 0; count < CONNECTIONS; count++)
    assertNotRedeemed(await subject.redeem('{}'), 400, 'invalid-body')
}

/** Waits for both workers, because each notices the outage by itself. */
const untilOpen = (subject: Subject, site = subject.site): Promise<unknown> =>
  untilAll('both workers fail open', 200, () => subject.visitor(site).challenge())

describe('Redis is away', () => {
  const subject = new Subject()
  let token: string
  let closedSite: TestSite
  let halfOpenSite: TestSite
  /** What /challenge answered until the first visitor was served without the store, `waitedMs` after it ended. */
  const whileAway: Answer[] = []
  let waitedMs: number
  before(async () => {
    await prepareWarm(subject)
    closedSite = await warmSite(subject, { challenge: false, verify: false })
    halfOpenSite = await warmSite(subject, { challenge: false })
    token = await subject.visitor().token()
    const killedAtMs = performance.now()
    await subject.service.redis!.kill()
    await eventually(60_000, 'a worker fails open', async () => {
      whileAway.push(await subject.visitor().challenge())
      waitedMs = performance.now() - killedAtMs
      return whileAway.at(-1)!.status === 200
    })
  })
  after(() => subject.service.stop())

  test('§7 /verify-token: 503, the endpoint fails closed, with the failure body and Retry-After; also if the body is wrong', async () => {
    for (const body of [...Array.from({ length: CONNECTIONS }, () => ({ token })), '{}']) {
      const answer = await subject.redeem(body)
      assertNotRedeemed(answer, 503, 'unavailable')
      assertUnavailableHeaders(answer)
      assert.ok(!hasCors(answer))
    }
  })

  test('/siteverify: 503, it fails closed, with its own words and Retry-After', async () => {
    const { apiKey: secret } = subject.site
    const siteverify = (body: object) => subject.client.siteverify(body, { from: freshAddress() })
    for (const body of [{ secret, response: token }, { secret }]) {
      const answer = await siteverify(body)
      assertNotSiteverified(answer, 'internal-error', 503)
      assertUnavailableHeaders(answer)
      assert.ok(!hasCors(answer))
    }
    assertNotSiteverified(await siteverify({ response: token }), 'missing-input-secret')
  })

  test('§5 rule 1, rule 3: a missing site key is 400 nevertheless, a missing Authorization header 401', async () => {
    const nobody = subject.visitor({ ...subject.site, siteKey: '' })
    assertRefused(await nobody.challenge(), 400, 'site-key-missing')
    const answer = await call(`${subject.url}/verify-token`, { method: 'POST', body: '{}' })
    assertNotRedeemed(answer, 401, 'missing-credentials')
  })

  test('§7, decided: /challenge and /verify make visitors wait as long as a failover may take, then fail open', async () => {
    assert.ok(waitedMs >= OPEN_AFTER_MS, `${waitedMs} ms`)
    for (const refused of whileAway.slice(0, -1)) {
      assertRefused(refused, 503, 'unavailable')
      assert.equal(refused.headers['retry-after'], '1')
    }
    await untilOpen(subject)
    for (let count = 0; count < 5; count++) {
      const visitor = subject.visitor()
      const solution = await visitor.solved()
      assertPassed(await visitor.verify(solution))
      assertRefused(await visitor.verify(solution), 400, 'nonce-used')
    }
  })

  test('§7 /challenge, /verify: a site that fails closed gets 503, with an error body, Retry-After, CORS and its own limits; decided: the preflight does not need the store', async () => {
    for (let count = 0; count < CONNECTIONS; count++) {
      const visitor = subject.visitor(closedSite)
      const [challenge, verification] = [await visitor.challenge(), await visitor.verify('{}')]
      for (const answer of [challenge, verification]) {
        assertRefused(answer, 503, 'unavailable')
        assertUnavailableHeaders(answer)
        assert.equal(answer.headers['access-control-allow-origin'], '*')
      }
      const policies = String(challenge.headers['ratelimit-policy'])
      assert.ok(policies.endsWith(`"address-site";q=${WARM_SITE_LIMIT};w=60`), policies)
    }
    for (const path of ['/challenge', '/verify'])
      assert.equal((await call(subject.url + path, { method: 'OPTIONS', from: freshAddress() })).status, 200)
  })

  test('§7, decided: each endpoint of a site has a policy of its own', async () => {
    const visitor = subject.visitor(halfOpenSite)
    assertRefused(await visitor.challenge(), 503, 'unavailable')
    assertPassed(await visitor.verify(await visitor.agedSolution(1000)))
  })

  test('§8, decided: meanwhile each of the two workers admits half of what an address may have', async () => {
    assert.equal(await admittedByOneWorker(subject, subject.site), 30 / 2)
  })

  // This test comes last, because it kills the workers that have seen the sites.
  test('a worker that has never reached the store answers 503', async () => {
    for (const pid of workerPids(subject.service.pid)) process.kill(pid, 'SIGKILL')
    const ask = () => subject.visitor().challenge()
    await eventually(60_000, 'new workers', async () => (await ask().catch(() => undefined))?.status === 503)
    for (let count = 0; count < CONNECTIONS; count++) {
      const answer = await ask()
      assertRefused(answer, 503, 'unavailable')
      assertUnavailableHeaders(answer)
    }
  })
})

test('§7, decided: with POWGATE_FAIL_OPEN=none only a site of its own policy fails open, its limits divided among the workers', async t => {
  const subject = new Subject()
  await prepareWarm(subject, { POWGATE_FAIL_OPEN: 'none' })
  t.after(() => subject.service.stop())
  const openSite = await warmSite(subject, { challenge: true, verify: true })
  await subject.service.redis!.kill()
  await untilOpen(subject, openSite)
  await subject.visitor(openSite).passed()
  assert.equal(await admittedByOneWorker(subject, openSite), Math.floor(WARM_SITE_LIMIT / 2))
  assertRefused(await subject.visitor().challenge(), 503, 'unavailable')
  assertRefused(await subject.visitor().verify('{}'), 503, 'unavailable')
})

describe('Redis is frozen', () => {
  const subject = new Subject()
  before(() => prepareWarm(subject, { POWGATE_STORE_DEADLINE_MS: '1000' }))
  after(() => subject.service.stop())

  test('/siteverify fails closed; a retry with its idempotency_key is sure to get the answer when Redis is back', async () => {
    const redeem = (response: string, more: Record<string, string> = {}) => {
      const fields = { secret: subject.site.apiKey, response, ...more }
      return subject.client.siteverify(fields, { from: freshAddress() })
    }
    const key = { idempotency_key: 'order 17' }
    const token = await subject.visitor().token()
    subject.service.redis!.freeze()
    for (let count = 0; count < 5; count++) {
      const answer = await redeem(token, key)
      assertNotSiteverified(answer, 'internal-error', 503)
      assertUnavailableHeaders(answer)
    }
    subject.service.redis!.thaw()
    // Asks with a key of nobody: the site's own would use up its limit while one worker answers and the other does not.
    const nobody = { secret: UNKNOWN_API_KEY, response: 'a token of nobody' }
    const ask = () => subject.client.siteverify(nobody, { from: freshAddress() })
    await untilAll('the service answers again', 200, ask)
    // Redis may have run the commands that it was sent, or not. The answer must be the same.
    assertSiteverified(await redeem(token, key))
    assertNotSiteverified(await redeem(token), 'timeout-or-duplicate')
  })

  test('§3 rule 1: a nonce of before the store lost its memory is invalid, and expired once its time is over', async () => {
    const visitor = subject.visitor()
    const [fresh, old] = [await visitor.agedSolution(0), await visitor.agedSolution(600_000)]
    await subject.service.redis!.kill()
    await subject.service.redis!.boot()
    await untilAll('both workers have noticed', 200, () => subject.visitor().challenge())
    assertRefused(await visitor.verify(fresh), 400, 'invalid-nonce')
    assertRefused(await visitor.verify(old), 400, 'expired-nonce')
  })
})

test('every refusal for an outage that the OpenAPI document has was seen', () => {
  assert.deepEqual(checker.unseen(SEEN_BY_OUTAGE_TEST), [])
})
