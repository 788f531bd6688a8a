/**
 * The OpenAPI document is valid, and so are its examples. contract.test.ts and outage.test.ts check all their answers
 * against the document. This file tests its own statements, an overload, and ambiguous requests.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { checkProof } from '../../src/domain/pow.ts'
import { EXAMPLES } from '../../src/openapi/answer-schemas.ts'
import { Client } from '../harness/client.ts'
import { call, freshAddress } from '../harness/http.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'
import { OpenapiChecker, SEEN_BY_OPENAPI_TEST } from './openapi-checker.ts'
import { onHosts, type Subject, UNKNOWN_SITE_KEY } from './support.ts'

const checker = new OpenapiChecker()
const { document } = checker
checker.listen()

test('the document is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
  assert.doesNotThrow(() => validator.resolveRefs())
})

test('every schema compiles in strict mode', () => {
  for (const schema of Object.values<object>(document.components.schemas))
    new Ajv2020({ strict: true }).compile(schema)
})

test('every example validates against its schema; the proof in them holds', () => {
  assert.ok(checker.checkExamples() > 50, 'the document has some 80 examples')
  const { challenge, solution, passed } = EXAMPLES
  assert.ok(checkProof(challenge.nonce, solution.counter, challenge.difficulty))
  assert.equal(solution.nonce, passed.token.split('|')[1])
})

test('an urlencoded body of /siteverify is documented without the idempotency_key that is refused there', () => {
  const { content } = document.paths['/siteverify'].post.requestBody
  const [, name] = /(\w+)$/.exec(content['application/x-www-form-urlencoded'].schema.$ref)!
  assert.ok(!('idempotency_key' in document.components.schemas[name!].properties))
})

function documentTests(subject: Subject): void {
  const ask = (headers: Record<string, string> = {}, method = 'GET') =>
    call(`${subject.service.url}/openapi.json`, { method, headers, from: freshAddress() })

  test('GET /openapi.json gives the document, to any origin, with an ETag', async () => {
    const answer = await ask({ Origin: 'https://any.example' })
    assert.deepEqual(answer.json, document)
    assert.equal(answer.headers['access-control-allow-origin'], '*')
    const again = await ask({ 'If-None-Match': String(answer.headers.etag) })
    assert.equal(again.status, 304)
    assert.equal((await ask({ 'If-None-Match': '"another"' })).status, 200)
  })

  test('GET /openapi.json, compressed, is the same; HEAD is it without a body', async () => {
    const headers = { 'Accept-Encoding': 'gzip' }
    const response = await fetch(`${subject.service.url}/openapi.json`, { headers })
    assert.equal(response.headers.get('content-encoding'), 'gzip')
    assert.deepEqual(await response.json(), document)
    const head = await ask(headers, 'HEAD')
    assert.equal(head.status, 200)
    assert.equal(head.text, '')
  })

  test('a body whose end two servers may read differently is refused as documented', async () => {
    const headers = { 'Transfer-Encoding': 'gzip, chunked' }
    const { siteKey, apiKey } = subject.site
    for (const answer of [
      await subject.client.verify(siteKey, '{}', { headers }),
      await subject.client.verifyToken(apiKey, '{}', { headers }),
      await subject.client.siteverify('{}', { headers }),
    ])
      assert.equal(answer.status, 400)
  })
}

onHosts([{ store: 'embedded', sections: { 'the document': documentTests } }]) // the store answers none of it

test('with more requests than can be answered, every endpoint gives 503 as documented, and a GET with a chunked body from a trusted proxy 400', async t => {
  const server = await startRefusingServer(t, { trustedProxies: ['127.0.0.1'] })
  const client = new Client(server.url)
  for (const answer of [
    await client.challenge(UNKNOWN_SITE_KEY),
    await client.verify(UNKNOWN_SITE_KEY, '{}'),
    await client.verifyToken('none', '{}'),
    await client.siteverify({ secret: 'none' }),
  ])
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1'])
  const headers = { 'Transfer-Encoding': 'chunked' }
  assert.equal((await client.challenge(UNKNOWN_SITE_KEY, { headers })).json.code, 'ambiguous-length')
})

test('every answer in the document for an overload, or for an ambiguous length, was seen', () => {
  assert.deepEqual(checker.unseen(SEEN_BY_OPENAPI_TEST), [])
})
