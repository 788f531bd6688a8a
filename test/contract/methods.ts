/** Contract, section 4, decided: 404 for other paths, 405 with Allow for other methods, 413 for bodies over 8 KiB. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, freshAddress } from '../harness/http.ts'
import { words } from '../harness/words.ts'
import { assertNotRedeemed, assertPassed, assertRedeemed, assertRefused, type Subject } from './support.ts'

const BODY_BYTES_MAX = 8192

const PATHS = [
  {
    path: '/challenge',
    allow: ['GET', 'OPTIONS'],
    wrong: ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'],
  },
  { path: '/verify', allow: ['POST', 'OPTIONS'], wrong: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE'] },
  {
    path: '/verify-token',
    allow: ['POST'],
    wrong: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'OPTIONS'],
  },
] as const

const OTHER_PATHS = words(
  '/ /challenge/ /challenges /Challenge /challenge/1 /verify/ /verify-token/',
  '/verify-tokens /v1/challenge /%63hallenge /%',
)

/** nginx does not pass on what is no percent-encoding (400), nor TRACE (405): these never arrive. */
const NGINX_ANSWERS: readonly string[] = ['/%', 'TRACE']

function arrives({ front }: Subject, methodOrPath: string): boolean {
  return front !== 'nginx' || !NGINX_ANSWERS.includes(methodOrPath)
}

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

  for (const { path, allow, wrong } of PATHS) {
    for (const method of wrong.filter(method => arrives(subject, method))) {
      test(`§4, decided: ${method} ${path} gives 405 with Allow`, async () => {
        const headers = { 'X-Site-Key': subject.site.siteKey, Authorization: `Bearer ${subject.site.apiKey}` }
        const answer = await call(subject.url + path, { method, headers, from: freshAddress() })
        assert.equal(answer.status, 405)
        assert.deepEqual(String(answer.headers.allow).split(/, */).sort(), [...allow].sort())
        if (method === 'HEAD') assert.equal(answer.text, '')
        else if (path === '/verify-token') assertNotRedeemed(answer, 405, 'method-not-allowed')
        else assertRefused(answer, 405, 'method-not-allowed')
      })
    }
  }

  test('§4.2 request body, decided: 8192 bytes are taken, 8193 give 413 and spend nothing', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const tooLarge = padded(solution, BODY_BYTES_MAX + 1)
    assert.equal(Buffer.byteLength(tooLarge), 8193)
    assertRefused(await subject.client.verify(siteKey, tooLarge, { from }), 413, 'body-too-large')
    const largest = padded(solution, BODY_BYTES_MAX)
    assert.equal(Buffer.byteLength(largest), 8192)
    assertPassed(await subject.client.verify(siteKey, largest, { from }))
  })

  test('§4.3 request body, decided: 8192 bytes are taken, 8193 give 413 and spend nothing', async () => {
    const { siteKey, apiKey } = subject.site
    const from = freshAddress()
    const token = await subject.client.token(siteKey, { from })
    const tooLarge = padded({ token }, BODY_BYTES_MAX + 1)
    assertNotRedeemed(await subject.client.verifyToken(apiKey, tooLarge, { from }), 413, 'body-too-large')
    assertRedeemed(await subject.client.verifyToken(apiKey, padded({ token }, BODY_BYTES_MAX), { from }))
  })

  test('§4.2 request body, decided: a body of 8192 bytes that is wrong gives 400', async () => {
    const from = freshAddress()
    const body = 'x'.repeat(BODY_BYTES_MAX)
    assertRefused(await subject.client.verify(subject.site.siteKey, body, { from }), 400, 'invalid-body')
    const answer = await subject.client.verifyToken(subject.site.apiKey, body, { from })
    assertNotRedeemed(answer, 400, 'invalid-body')
  })

  test('§4.2 request body, decided: the cap counts bytes, not characters', async () => {
    const body = `"${'é'.repeat(4096)}"`
    assert.ok(body.length < BODY_BYTES_MAX)
    const answer = await subject.client.verify(subject.site.siteKey, body, { from: freshAddress() })
    assertRefused(answer, 413, 'body-too-large')
  })

  test('§4.2 request body, decided: the cap holds for a body of unannounced length too', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const headers = { 'Transfer-Encoding': 'chunked' }
    const solution = await subject.client.solved(siteKey, { from })
    const tooLarge = padded(solution, BODY_BYTES_MAX + 1)
    assertRefused(await subject.client.verify(siteKey, tooLarge, { from, headers }), 413, 'body-too-large')
    assertPassed(await subject.client.verify(siteKey, padded(solution, BODY_BYTES_MAX), { from, headers }))
  })

  test('§4.2 request body, decided: a much larger one gives 413 as well', async () => {
    const body = 'x'.repeat(100_000)
    const answer = await subject.client.verify(subject.site.siteKey, body, { from: freshAddress() })
    assertRefused(answer, 413, 'body-too-large')
  })
}
