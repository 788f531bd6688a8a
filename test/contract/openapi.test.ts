/**
 * The OpenAPI document: valid, with examples that are, and true: the running service is driven through all that it says,
 * and says nothing that it does not.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { checkProof } from '../../src/domain/pow.ts'
import { mintToken } from '../../src/domain/token.ts'
import { openapiDocument } from '../../src/openapi/document.ts'
import { CHALLENGE, PASSED, SOLUTION } from '../../src/openapi/examples.ts'
import { Client } from '../harness/client.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'
import { TestService } from '../harness/service.ts'
import { requestsUntilLimited } from './counting.ts'
import { OpenapiChecker } from './openapi-checker.ts'
import { claimsOf, keyring, onEachStore, Subject, UNKNOWN_SITE_KEY, wrongCounter } from './support.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const document = JSON.parse(JSON.stringify(openapiDocument(version)))
const checker = new OpenapiChecker(document)

test('the document is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
  assert.doesNotThrow(() => validator.resolveRefs())
})

test('a validator finds a document wrong that is', async () => {
  const { valid } = await new Validator().validate({ ...structuredClone(document), paths: { verify: 5 } })
  assert.equal(valid, false)
})

test('every schema compiles in strict mode', () => {
  for (const schema of Object.values<object>(document.components.schemas))
    new Ajv2020({ strict: true }).compile(schema)
})

test('every example validates against its schema; the proof in them holds', () => {
  assert.ok(checker.checkExamples() > 50)
  assert.ok(checkProof(CHALLENGE.nonce, SOLUTION.counter, CHALLENGE.difficulty))
  assert.equal(SOLUTION.nonce, PASSED.token.split('|')[1])
})

/** Whose word about addresses and request ids is taken. */
const PROXY = '127.255.255.254'

function documentTests(subject: Subject): void {
  const ask = (headers: Record<string, string> = {}, method = 'GET') =>
    call(`${subject.service.url}/openapi.json`, { method, headers, from: freshAddress() })

  test('GET /openapi.json gives the document, to any origin, with an ETag', async () => {
    const answer = await ask({ Origin: 'https://any.example' })
    checker.check('GET', '/openapi.json', answer)
    assert.deepEqual(answer.json, document)
    assert.equal(answer.headers['access-control-allow-origin'], '*')
    const again = await ask({ 'If-None-Match': String(answer.headers.etag) })
    assert.equal(again.status, 304)
    checker.check('GET', '/openapi.json', again)
    assert.equal((await ask({ 'If-None-Match': '"another"' })).status, 200)
  })

  test('GET /openapi.json, compressed, is the same; HEAD is it without a body', async () => {
    const response = await fetch(`${subject.service.url}/openapi.json`, {
      headers: { 'Accept-Encoding': 'gzip' },
    })
    assert.equal(response.headers.get('content-encoding'), 'gzip')
    assert.deepEqual(await response.json(), document)
    const head = await ask({ 'Accept-Encoding': 'gzip' }, 'HEAD')
    checker.check('HEAD', '/openapi.json', head)
    assert.equal(head.status, 200)
    assert.equal(head.text, '')
  })

  test('the document names the paths that are served, and no others', async () => {
    const routes = readFileSync(new URL('../../src/routes.ts', import.meta.url), 'utf8')
    const served = [...routes.matchAll(/ path: '([^']+)'/g)].map(([, path]) => path!)
    assert.deepEqual(Object.keys(document.paths).sort(), [...served, '/openapi.json'].sort())
    for (const path of Object.keys(document.paths))
      assert.notEqual((await call(subject.service.url + path, { from: freshAddress() })).status, 404, path)
  })

  for (const path of Object.keys(document.paths)) {
    test(`${path}: other methods are refused as documented`, async () => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
        if (method.toLowerCase() in document.paths[path]) continue
        if (path === '/openapi.json' && method === 'HEAD') continue
        const answer = await call(subject.service.url + path, { method, from: freshAddress() })
        assert.equal(answer.status, 405)
        checker.check(method, path, answer)
      }
    })
  }
}

/** A coding of which not every server knows where the body ends. */
const AMBIGUOUS = { 'Transfer-Encoding': 'gzip, chunked' }

function browserTests(subject: Subject): void {
  const see = (path: '/challenge' | '/verify', answer: Answer) =>
    checker.check(path === '/challenge' ? 'GET' : 'POST', path, answer)
  const challenge = async (siteKey: string, from = freshAddress(), headers: Record<string, string> = {}) => {
    const answer = await subject.client.challenge(siteKey, { from, headers })
    see('/challenge', answer)
    return answer
  }
  const verify = async (
    siteKey: string,
    body: unknown,
    from = freshAddress(),
    headers: Record<string, string> = {},
  ) => {
    const answer = await subject.client.verify(siteKey, body, { from, headers })
    see('/verify', answer)
    return answer
  }

  test('/challenge and /verify: sites and origins', async () => {
    const strict = await subject.createSite({ origins: ['https://shop.example'] })
    const inactive = await subject.createSite({ active: false })
    const elsewhere = { Origin: 'https://other.example' }
    for (const asked of [
      challenge,
      (siteKey: string, ...more: [string?, object?]) => verify(siteKey, '{}', ...(more as [])),
    ]) {
      for (const siteKey of ['', 'site_short', UNKNOWN_SITE_KEY, inactive.siteKey]) await asked(siteKey)
      assert.equal((await asked(strict.siteKey, freshAddress(), elsewhere)).json.code, 'origin-not-allowed')
    }
  })

  test('/challenge and /verify: preflights', async () => {
    for (const path of ['/challenge', '/verify']) {
      const answer = await call(subject.service.url + path, { method: 'OPTIONS', from: freshAddress() })
      assert.equal(answer.status, 200)
      checker.check('OPTIONS', path, answer)
    }
  })

  test('/verify: passed, failed, and everything that is wrong with a solution', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    assert.equal((await challenge(siteKey, from)).status, 200)
    const solution = await subject.client.solved(siteKey, { from })
    await verify(siteKey, { ...solution, counter: wrongCounter(solution.nonce) }, from)
    await verify(siteKey, solution, freshAddress())
    await verify(siteKey, solution, from, { 'Content-Type': 'text/plain' })
    for (const body of ['', '{', '[]', '{}', Buffer.from([0xff]), { ...solution, counter: -1 }])
      await verify(siteKey, body, from)
    await verify(siteKey, { ...solution, nonce: '0'.repeat(32) }, from)
    await verify(siteKey, await subject.agedSolution(siteKey, from, 3_600_000), from)
    await verify(siteKey, ' '.repeat(8193), from)
    await verify(siteKey, '{}', from, AMBIGUOUS)
    assert.equal((await verify(siteKey, solution, from)).json.passed, true)
    await verify(siteKey, solution, from)
  })

  test('/challenge and /verify: a request id from a trusted proxy comes back', async () => {
    const headers = { 'X-Request-Id': 'a-proxy-named-it', 'X-Forwarded-For': '203.0.113.1' }
    const answers = [
      await challenge(subject.site.siteKey, PROXY, headers),
      await verify(subject.site.siteKey, '{}', PROXY, headers),
    ]
    for (const answer of answers) assert.equal(answer.headers['x-request-id'], 'a-proxy-named-it')
    for (const harmful of ['a b', '<script>', 'x'.repeat(129)]) {
      const answer = await challenge(subject.site.siteKey, PROXY, { ...headers, 'X-Request-Id': harmful })
      assert.match(String(answer.headers['x-request-id']), /^[\w-]{8,40}$/)
    }
  })

  test('/challenge and /verify: over the limit', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    await requestsUntilLimited(() => challenge(siteKey, from), 200)
    await requestsUntilLimited(() => verify(siteKey, '{}', from), 400)
  })
}

function backendTests(subject: Subject): void {
  const verifyToken = async (
    apiKey: string,
    body: unknown,
    from = freshAddress(),
    headers: Record<string, string> = {},
  ) => {
    const answer = await subject.client.verifyToken(apiKey, body, { from, headers })
    checker.check('POST', '/verify-token', answer)
    return answer
  }
  const siteverify = async (
    body: object | string,
    from = freshAddress(),
    headers: Record<string, string> = {},
  ) => {
    const answer = await subject.client.siteverify(body, { from, headers })
    checker.check('POST', '/siteverify', answer)
    return answer
  }
  const freshToken = (from = freshAddress()) => subject.client.token(subject.site.siteKey, { from })

  /** An hour ago this was a good token. */
  async function expiredToken(): Promise<string> {
    const claims = claimsOf(await freshToken())
    return mintToken(keyring, { ...claims, issuedAtMs: claims.issuedAtMs - 3_600_000 })
  }

  test('/verify-token: success, and everything that is wrong with a redemption', async () => {
    const { apiKey } = subject.site
    const other = await subject.createSite()
    const token = await freshToken()
    const url = `${subject.service.url}/verify-token`
    checker.check('POST', '/verify-token', await call(url, { method: 'POST', from: freshAddress() }))
    await verifyToken('malformed', { token })
    await verifyToken(`sk_00000000_${'A'.repeat(43)}`, { token })
    await verifyToken(apiKey, { token }, freshAddress(), { 'Content-Type': 'text/plain' })
    for (const body of [
      '',
      '{',
      '[]',
      '{}',
      Buffer.from([0xff]),
      { token: 5 },
      { token, expectedIp: 'here' },
    ])
      await verifyToken(apiKey, body)
    await verifyToken(apiKey, ' '.repeat(8193))
    await verifyToken(apiKey, '{}', freshAddress(), AMBIGUOUS)
    await verifyToken(apiKey, { token: 'x' })
    await verifyToken(apiKey, { token: await expiredToken() })
    await verifyToken(other.apiKey, { token })
    await verifyToken(apiKey, { token, expectedIp: '192.0.2.1' })
    assert.equal((await verifyToken(apiKey, { token })).status, 200)
    await verifyToken(apiKey, { token })
  })

  test('/siteverify: success, and everything that is wrong with a redemption', async () => {
    const { apiKey: secret } = subject.site
    const other = await subject.createSite({ origins: ['https://shop.example'] })
    const response = await freshToken()
    await siteverify({ response })
    await siteverify({ secret: 'malformed', response })
    await siteverify({ secret })
    await siteverify('secret=%', freshAddress(), { 'Content-Type': 'application/x-www-form-urlencoded' })
    await siteverify('x', freshAddress(), { 'Content-Type': 'text/plain' })
    await siteverify(' '.repeat(8193))
    await siteverify('{}', freshAddress(), AMBIGUOUS)
    await siteverify({ secret, response: 'x' })
    await siteverify({ secret, response: await expiredToken() })
    await siteverify({ secret: other.apiKey, response })
    await siteverify({ secret, response, remoteip: 'here' })
    await siteverify({ secret, response, remoteip: '192.0.2.1' })
    assert.equal((await siteverify({ secret, response })).json.success, true)
    await siteverify(new URLSearchParams({ secret, response }))
    const otherToken = await subject.client.token(other.siteKey, { from: freshAddress() })
    const withHost = await siteverify({ secret: other.apiKey, response: otherToken })
    assert.equal(withHost.json.hostname, 'shop.example')
  })

  test('/verify-token and /siteverify: a request id from a trusted proxy comes back', async () => {
    const headers = { 'X-Request-Id': 'a-proxy-named-it', 'X-Forwarded-For': '203.0.113.1' }
    for (const answer of [await verifyToken('x', '{}', PROXY, headers), await siteverify({}, PROXY, headers)])
      assert.equal(answer.headers['x-request-id'], 'a-proxy-named-it')
  })

  test('/verify-token and /siteverify: over the limit', async () => {
    const { apiKey: secret } = await subject.createSite()
    const from = freshAddress()
    await requestsUntilLimited(() => verifyToken(secret, '{}', from), 400)
    assert.equal((await siteverify({ secret }, from)).status, 429)
  })
}

onEachStore(
  { 'the document': documentTests, 'for browsers': browserTests, 'for backends': backendTests },
  { env: { POWGATE_TRUSTED_PROXIES: PROXY } },
)

describe('Redis is frozen and nothing fails open', () => {
  const subject = new Subject()
  before(async () => {
    await subject.prepare(await TestService.start('redis', { POWGATE_FAIL_OPEN: 'none' }))
    const { siteKey, apiKey } = subject.site
    // Both workers are to know the site, which they cannot ask for later.
    for (let count = 0; count < 20; count++)
      await subject.client.verifyToken(apiKey, '{}', { from: freshAddress() })
    assert.equal((await subject.client.challenge(siteKey, { from: freshAddress() })).status, 200)
    subject.service.redis!.freeze()
  })
  after(async () => {
    subject.service.redis!.thaw()
    await subject.service.stop()
  })

  test('every endpoint gives 503 as documented', async () => {
    const { siteKey, apiKey } = subject.site
    const from = freshAddress()
    const answers: [string, string, Answer][] = [
      ['GET', '/challenge', await subject.client.challenge(siteKey, { from })],
      ['POST', '/verify', await subject.client.verify(siteKey, '{}', { from })],
      ['POST', '/verify-token', await subject.client.verifyToken(apiKey, '{}', { from })],
      ['POST', '/siteverify', await subject.client.siteverify({ secret: apiKey }, { from })],
    ]
    for (const [method, path, answer] of answers) {
      assert.equal(answer.status, 503)
      checker.check(method, path, answer)
    }
  })
})

test('with more requests than can be answered, every endpoint gives 503 as documented', async () => {
  const server = await startRefusingServer()
  const client = new Client(server.url)
  const answers: [string, string, Answer][] = [
    ['GET', '/challenge', await client.challenge(UNKNOWN_SITE_KEY)],
    ['POST', '/verify', await client.verify(UNKNOWN_SITE_KEY, '{}')],
    ['POST', '/verify-token', await client.verifyToken('none', '{}')],
    ['POST', '/siteverify', await client.siteverify({ secret: 'none' })],
  ]
  server.stop()
  for (const [method, path, answer] of answers) {
    assert.equal(answer.status, 503)
    assert.equal(answer.headers['retry-after'], '1')
    checker.check(method, path, answer)
  }
})

test('there is nothing in the document that was not seen', () => {
  assert.deepEqual(checker.unseen(), [])
})

test('the checker finds what is not documented', async () => {
  const good = { status: 200, headers: {}, text: '', json: undefined } as Answer
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'Retry-After',
  }
  const answer = (more: Partial<Answer>): Answer => ({ ...good, headers, json: CHALLENGE, ...more })
  checker.check('GET', '/challenge', answer({}))
  const wrong: Partial<Answer>[] = [
    { status: 418 },
    { json: { ...CHALLENGE, extra: 1 } },
    { json: { ...CHALLENGE, difficulty: 15 } },
    { json: { error: 'x', code: 'site-unknown' } },
    { headers: { ...headers, 'x-extra': '1' } },
    { headers: { ...headers, 'access-control-allow-origin': 'https://one.example' } },
    { headers: { ...headers, 'content-type': 'text/plain' } },
    { headers: { 'content-type': 'application/json' } },
    { status: 400, json: { error: 'x', code: 'nonce-used' } },
  ]
  for (const more of wrong)
    assert.throws(
      () => checker.check('GET', '/challenge', answer(more)),
      { code: 'ERR_ASSERTION' },
      JSON.stringify(more),
    )
})
