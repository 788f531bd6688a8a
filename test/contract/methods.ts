/**
 * The contract (docs/reference/contract.md), §4: CORS for any origin on /challenge and /verify, on every status, and never on the
 * endpoints of backends. What it leaves open, powgate decided: 404 for other paths, 405 with Allow for other methods.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINT_NAMES } from '../../src/domain/endpoint.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { words } from '../harness/values.ts'
import { assertNotRedeemed, assertNotSiteverified, assertRefused } from './answers.ts'
import type { Subject } from './support.ts'

const METHODS = words('GET HEAD POST PUT PATCH DELETE TRACE OPTIONS')

const notAllowed = (answer: Answer) => assertRefused(answer, 405, 'method-not-allowed')
const PATHS = [
  ['/challenge', 'GET, OPTIONS', notAllowed],
  ['/verify', 'OPTIONS, POST', notAllowed],
  ['/verify-token', 'POST', (answer: Answer) => assertNotRedeemed(answer, 405, 'method-not-allowed')],
  ['/siteverify', 'POST', (answer: Answer) => assertNotSiteverified(answer, 'bad-request', 405)],
] as const

const OTHER_PATHS = words(
  '/ /challenge/ /challenges /Challenge /challenge/1 /verify/ /verify-token/',
  '/verify-tokens /v1/challenge /%63hallenge /%',
)

/** nginx does not pass on what is no percent-encoding (400), nor TRACE (405): these never arrive. */
const arrives = ({ front }: Subject, methodOrPath: string): boolean =>
  front !== 'nginx' || !['/%', 'TRACE'].includes(methodOrPath)

export function methodTests(subject: Subject): void {
  for (const path of OTHER_PATHS.filter(path => arrives(subject, path))) {
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
      test(`§4, decided: there is no such path: ${method} ${path} gives 404`, async () => {
        const headers = { 'X-Site-Key': subject.site.siteKey }
        const answer = await call(subject.url + path, { method, headers, from: freshAddress() })
        assertRefused(answer, 404, 'not-found')
      })
    }
  }

  test('§4: methods are tried on every endpoint', () => {
    assert.deepEqual(PATHS.map(([path]) => path).sort(), ENDPOINT_NAMES.map(name => `/${name}`).sort())
  })

  for (const [path, allow, assertWrongMethod] of PATHS) {
    const wrong = METHODS.filter(name => !allow.split(', ').includes(name) && arrives(subject, name))
    for (const method of wrong) {
      test(`§4, decided: ${method} ${path} gives 405 with Allow`, async () => {
        const headers = { 'X-Site-Key': subject.site.siteKey, Authorization: `Bearer ${subject.site.apiKey}` }
        const answer = await call(subject.url + path, { method, headers, from: freshAddress() })
        assert.equal(answer.status, 405)
        assert.equal(String(answer.headers.allow).split(/, */).sort().join(', '), allow)
        if (method === 'HEAD') assert.equal(answer.text, '')
        else assertWrongMethod(answer)
      })
    }
  }
}

const ORIGIN = { Origin: 'https://any.example' }

const wordsOf = (header: unknown): string[] => String(header).toLowerCase().split(/ *, */)

/** contract.test.ts holds the headers of every status to the OpenAPI document. */
export function corsTests(subject: Subject): void {
  for (const [path, method] of Object.entries({ '/challenge': 'GET', '/verify': 'POST' }))
    test(`§4.4: any origin (*) on ${path}, and its preflight is answered`, async () => {
      const visitor = subject.visitor()
      const answer = await (method === 'GET' ? visitor.challenge(ORIGIN) : visitor.verify('{}', ORIGIN))
      assert.equal(answer.headers['access-control-allow-origin'], '*')
      const exposed = wordsOf(answer.headers['access-control-expose-headers'])
      for (const name of words('retry-after ratelimit ratelimit-policy'))
        assert.ok(exposed.includes(name), name)
      const asked = {
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': 'x-site-key, content-type',
      }
      const preflight = { method: 'OPTIONS', headers: { ...ORIGIN, ...asked }, from: visitor.from }
      const { status, text, headers } = await call(subject.url + path, preflight)
      assert.deepEqual([status, text, headers['access-control-allow-origin']], [200, '{}', '*'])
      assert.ok(wordsOf(headers['access-control-allow-methods']).includes(method.toLowerCase()))
      const allowed = wordsOf(headers['access-control-allow-headers'])
      // Tracing agents add headers of any name to a page's requests; `*` does not cover Authorization.
      for (const name of ['x-site-key', 'content-type', 'authorization', '*'])
        assert.ok(allowed.includes(name))
      assert.equal(headers['access-control-allow-credentials'], undefined)
    })

  for (const path of ['/verify-token', '/siteverify'])
    test(`§4.4: no CORS headers are sent by ${path}, also to a preflight; nor ETag and Vary, as files have them`, async () => {
      const asked = { ...ORIGIN, 'Access-Control-Request-Method': 'POST' }
      for (const method of ['POST', 'OPTIONS']) {
        const { headers } = await call(subject.url + path, { method, headers: asked, from: freshAddress() })
        const sent = Object.keys(headers).filter(name => /^(?:access-control-|etag$|vary$)/.test(name))
        assert.deepEqual(sent, [])
      }
    })
}
