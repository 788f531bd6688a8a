/**
 * Contract §4: CORS for any origin on /challenge and /verify, on every status, and never on the endpoints of backends.
 * Decided: 404 for other paths, 405 with Allow for other methods, 413 for bodies over 8 KiB.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINT_NAMES } from '../../src/domain/endpoint.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { words } from '../harness/values.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
} from './answers.ts'
import { type Subject, UNKNOWN_SITE_KEY, type Visitor, wrongCounter } from './support.ts'

const BODY_BYTES_MAX = 8192
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
const NGINX_ANSWERS: readonly string[] = ['/%', 'TRACE']

const arrives = ({ front }: Subject, methodOrPath: string): boolean =>
  front !== 'nginx' || !NGINX_ANSWERS.includes(methodOrPath)

/** JSON of exactly this many bytes: an unknown field fills it up. */
function padded(body: object, bytes: number): string {
  const text = `${JSON.stringify(body).slice(0, -1)},"padding":""}`
  return text.replace(/""}$/, `"${'x'.repeat(bytes - Buffer.byteLength(text))}"}`)
}

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
    for (const method of METHODS.filter(
      name => !allow.split(', ').includes(name) && arrives(subject, name),
    )) {
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

  for (const [how, headers] of [
    ['', {}],
    [', also of unannounced length', { 'Transfer-Encoding': 'chunked' }],
  ] as const) {
    test(`§4.2, §4.3 request body, decided: 8192 bytes are taken, 8193 give 413 and spend nothing${how}`, async () => {
      const visitor = subject.visitor()
      const solution = await visitor.solved()
      const tooLarge = await visitor.verify(padded(solution, BODY_BYTES_MAX + 1), headers)
      assertRefused(tooLarge, 413, 'body-too-large')
      const passed = await visitor.verify(padded(solution, BODY_BYTES_MAX), headers)
      assertPassed(passed)
      const { token } = passed.json
      const redeem = (bytes: number) =>
        subject.client.verifyToken(visitor.site.apiKey, padded({ token }, bytes), { headers })
      assertNotRedeemed(await redeem(BODY_BYTES_MAX + 1), 413, 'body-too-large')
      assertRedeemed(await redeem(BODY_BYTES_MAX))
    })
  }

  test('§4.2 request body, decided: a body of 8192 bytes that is wrong gives 400', async () => {
    const body = 'x'.repeat(BODY_BYTES_MAX)
    assertRefused(await subject.visitor().verify(body), 400, 'invalid-body')
    assertNotRedeemed(await subject.redeem(body), 400, 'invalid-body')
  })

  test('§4.2 request body, decided: the cap counts bytes, not characters; a much larger body gives 413 as well', async () => {
    for (const body of [`"${'é'.repeat(4096)}"`, 'x'.repeat(100_000)])
      assertRefused(await subject.visitor().verify(body), 413, 'body-too-large')
  })
}

const ORIGIN = { Origin: 'https://any.example' }
const EXPOSED = words('retry-after ratelimit ratelimit-policy')

type Ask = (visitor: Visitor, subject: Subject) => Promise<Answer>

const challenge: Ask = visitor => visitor.challenge(ORIGIN)
const verify = (body: string): Ask => {
  return visitor => visitor.verify(body, ORIGIN)
}
const redeem = (body: string, apiKey?: string): Ask => {
  return ({ site, from }, { client }) =>
    client.verifyToken(apiKey ?? site.apiKey, body, { from, headers: ORIGIN })
}
const other = (method: string, path: string, headers: Record<string, string> = {}): Ask => {
  return ({ from }, { url }) => call(url + path, { method, headers: { ...ORIGIN, ...headers }, from })
}
const preflight = (path: string, method: string, headers: string): Ask => {
  const asked = { 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': headers }
  return other('OPTIONS', path, asked)
}
const after = (count: number, ask: Ask): Ask => {
  return async (visitor, subject) => {
    for (let index = 0; index < count; index++) await ask(visitor, subject)
    return ask(visitor, subject)
  }
}
const at = (siteKey: string, ask: Ask): Ask => {
  return (visitor, subject) => ask(visitor.at({ ...visitor.site, siteKey }), subject)
}

const passedVerify: Ask = async visitor => visitor.verify(await visitor.solved(), ORIGIN)
const failedVerify: Ask = async visitor => {
  const solution = await visitor.solved()
  return visitor.verify({ ...solution, counter: wrongCounter(solution.nonce) }, ORIGIN)
}
const verifyElsewhere: Ask = async (visitor, subject) =>
  visitor.verify(await subject.visitor().solved(), ORIGIN)
const redeemGood: Ask = async (visitor, subject) =>
  redeem(JSON.stringify({ token: await visitor.token() }))(visitor, subject)

type Rows = readonly (readonly [about: string, status: number, ask: Ask])[]

const CROSS_ORIGIN: Rows = [
  ['/challenge', 200, challenge],
  ['/challenge without a site key', 400, at('', challenge)],
  ['/challenge of an unknown site', 403, at(UNKNOWN_SITE_KEY, challenge)],
  ['DELETE /challenge', 405, other('DELETE', '/challenge')],
  ['/challenge over the limit', 429, after(30, challenge)],
  ['/verify, passed', 200, passedVerify],
  ['/verify, failed', 200, failedVerify],
  ['/verify with a wrong body', 400, verify('{}')],
  ['/verify without a site key', 400, at('', verify('{}'))],
  ['/verify of an unknown site', 403, at(UNKNOWN_SITE_KEY, verify('{}'))],
  ['/verify from another address', 403, verifyElsewhere],
  ['/verify with a body too large', 413, verify(' '.repeat(8193))],
  ['/verify over the limit', 429, after(20, verify('{}'))],
  ['GET /verify', 405, other('GET', '/verify')],
]

const SAME_ORIGIN: Rows = [
  ['/verify-token: a good token', 200, redeemGood],
  ['/verify-token: a bad token', 400, redeem('{"token":"x"}')],
  ['/verify-token: wrong credentials', 401, redeem('{}', 'x')],
  ['/verify-token: a body too large', 413, redeem(' '.repeat(8193))],
  ['/verify-token: over the limit', 429, after(100, redeem('{}'))],
  ['/verify-token: GET', 405, other('GET', '/verify-token')],
  ['/verify-token: a preflight', 405, preflight('/verify-token', 'POST', 'Authorization, Content-Type')],
  ['/siteverify: a page', 400, other('POST', '/siteverify')],
  ['/siteverify: a preflight', 405, preflight('/siteverify', 'POST', 'Content-Type')],
]

const wordsOf = (header: unknown): string[] => String(header).toLowerCase().split(/ *, */)

export function corsTests(subject: Subject): void {
  for (const [about, status, ask] of CROSS_ORIGIN) {
    test(`§4.4: any origin (*) on ${status} of ${about}`, async () => {
      const answer = await ask(subject.visitor(), subject)
      assert.equal(answer.status, status, answer.text)
      assert.equal(answer.headers['access-control-allow-origin'], '*')
      const exposed = wordsOf(answer.headers['access-control-expose-headers'])
      for (const name of EXPOSED) assert.ok(exposed.includes(name), `${name} is not exposed`)
    })
  }

  for (const [path, method] of Object.entries({ '/challenge': 'GET', '/verify': 'POST' })) {
    test(`§4.4: the preflight of ${method} ${path} is answered`, async () => {
      const answer = await preflight(path, method, 'x-site-key, content-type')(subject.visitor(), subject)
      assert.deepEqual([answer.status, answer.text], [200, '{}'])
      assert.equal(answer.headers['access-control-allow-origin'], '*')
      assert.ok(wordsOf(answer.headers['access-control-allow-methods']).includes(method.toLowerCase()))
      const allowed = wordsOf(answer.headers['access-control-allow-headers'])
      for (const name of ['x-site-key', 'content-type', 'authorization', '*'])
        assert.ok(allowed.includes(name))
      assert.equal(answer.headers['access-control-allow-credentials'], undefined)
    })
  }

  for (const [about, status, ask] of SAME_ORIGIN) {
    test(`§4.4: CORS headers, ETag and Vary are not sent on ${status} of ${about}`, async () => {
      const answer = await ask(subject.visitor(), subject)
      assert.equal(answer.status, status, answer.text)
      const sent = Object.keys(answer.headers).filter(name => /^(?:access-control-|etag$|vary$)/.test(name))
      assert.deepEqual(sent, [])
    })
  }
}
