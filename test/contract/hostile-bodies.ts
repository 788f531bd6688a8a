/**
 * Contract, section 7: a body that is no JSON object gives 400 on both endpoints that take one, and nothing else
 * happens: the nonce or token it came with is still good.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, freshAddress } from '../harness/http.ts'
import {
  BODY_BYTES_MAX,
  DEEP,
  deepField,
  deepUnknownField,
  HOSTILE,
  type HostileBody,
  LARGE_BODY_BYTES_MAX,
} from './malformed.ts'
import {
  assertNotRedeemed,
  assertPassed,
  assertRedeemed,
  assertRefused,
  refusesAndSpendsNothing,
  type Subject,
} from './support.ts'

const SOLUTION_FIELDS = ['environment', 'nonce', 'counter']
const REDEMPTION_FIELDS = ['token', 'expectedIp', 'idempotencyKey']

const WRONG_CONTENT_TYPES = [
  undefined,
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=a',
  'application/jsonp',
  'application/json-patch+json',
  'text/plain; application/json',
]
const RIGHT_CONTENT_TYPES = ['application/json; charset=utf-8', 'Application/JSON', 'application/json ;q=1']

export function hostileBodyTests(subject: Subject): void {
  const deep = (field: string) => deepField(field, 3000)
  verifyRefuses(subject, [...HOSTILE, ...SOLUTION_FIELDS.map(deep)], BODY_BYTES_MAX)
  verifyTokenRefuses(subject, [...HOSTILE, ...REDEMPTION_FIELDS.map(deep)], BODY_BYTES_MAX)

  for (const contentType of WRONG_CONTENT_TYPES) {
    test(`§4.2, §4.3 Content-Type is required, application/json: ${contentType ?? 'none'} gives 400`, async () => {
      const { siteKey, apiKey } = subject.site
      const headers: Record<string, string> = contentType === undefined ? {} : { 'Content-Type': contentType }
      const from = freshAddress()
      const post = (path: string, more: Record<string, string>, body: unknown) =>
        call(subject.url + path, {
          method: 'POST',
          headers: { ...headers, ...more },
          body: JSON.stringify(body),
          from,
        })
      const solution = await subject.client.solved(siteKey, { from })
      assertRefused(await post('/verify', { 'X-Site-Key': siteKey }, solution), 400, 'content-type')
      const passed = await subject.client.verify(siteKey, solution, { from })
      assertPassed(passed)
      const { token } = passed.json
      const redemption = await post('/verify-token', { Authorization: `Bearer ${apiKey}` }, { token })
      assertNotRedeemed(redemption, 400, 'content-type')
      assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }))
    })
  }

  for (const contentType of RIGHT_CONTENT_TYPES) {
    test(`§4.2, §4.3 Content-Type: ${contentType} is application/json`, async () => {
      const { siteKey, apiKey } = subject.site
      const headers = { 'Content-Type': contentType }
      const from = freshAddress()
      const solution = await subject.client.solved(siteKey, { from })
      const passed = await subject.client.verify(siteKey, solution, { from, headers })
      assertPassed(passed)
      const { token } = passed.json
      assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from, headers }))
    })
  }
}

/** For a service that takes bodies of 64 KiB. */
export function deepBodyTests(subject: Subject): void {
  const deep = (field: string) => deepField(field, 10_000)
  verifyRefuses(subject, [...DEEP, ...SOLUTION_FIELDS.map(deep)], LARGE_BODY_BYTES_MAX)
  verifyTokenRefuses(subject, [...DEEP, ...REDEMPTION_FIELDS.map(deep)], LARGE_BODY_BYTES_MAX)

  test('§2.2, decided: an unknown field is ignored, however deep it nests', async () => {
    const { make } = deepUnknownField(5000)
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const body = make(JSON.stringify(solution))
    assertPassed(await subject.client.verify(subject.site.siteKey, body, { from }))
  })
}

function verifyRefuses(subject: Subject, bodies: readonly HostileBody[], bytesMax: number): void {
  refusesAndSpendsNothing(
    subject,
    bodies,
    ({ about }) => `§7 /verify 400, invalid body: ${about}`,
    async ({ make }, solution, from) => {
      const body = make(JSON.stringify(solution))
      assert.ok(Buffer.byteLength(body) <= bytesMax)
      const answer = await subject.client.verify(subject.site.siteKey, body, { from })
      assertRefused(answer, 400, 'invalid-body')
    },
  )
}

function verifyTokenRefuses(subject: Subject, bodies: readonly HostileBody[], bytesMax: number): void {
  const from = freshAddress()
  let token: string | undefined
  const shared = async () => (token ??= await subject.client.token(subject.site.siteKey, { from }))
  for (const { about, make } of bodies) {
    test(`§7 /verify-token 400, failure body: a body ${about}`, async () => {
      const body = make(JSON.stringify({ token: await shared() }))
      assert.ok(Buffer.byteLength(body) <= bytesMax)
      const answer = await subject.client.verifyToken(subject.site.apiKey, body, { from })
      assertNotRedeemed(answer, 400, 'invalid-body')
    })
  }
  test(`§4.3 rule 1: the token that came with these ${bodies.length} is still good`, async () => {
    assertRedeemed(await subject.client.verifyToken(subject.site.apiKey, { token: await shared() }, { from }))
  })
}
