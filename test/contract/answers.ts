/** The forms of answers in the contract (docs/reference/contract.md, § are its sections), and how its tests count admitted requests. */

import assert from 'node:assert/strict'
import type { Answer } from '../harness/http.ts'

export function assertPassed(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.passed, true, answer.text)
}

/** The failed result of §2.3, which is the same whatever the cause. */
export function assertFailedResult(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(answer.json, { token: null, passed: false, expiresAt: null })
}

/** The answer is `{error, code}`, with these other keys; a refused body may also name its field. */
export function assertRefused(answer: Answer, status: number, code: string, ...otherKeys: string[]): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  const present = Object.keys(answer.json).filter(key => key !== 'field')
  assert.deepEqual(present.sort(), ['code', 'error', ...otherKeys].sort())
  const { error } = answer.json
  assert.equal(answer.json.code, code, answer.text)
  assert.ok(typeof error === 'string' && error !== '')
  const validatorsWords = /\bmust (NOT|match pattern|be (string|number|integer|object|boolean|>=))/
  assert.doesNotMatch(error, validatorsWords, 'words of the JSON Schema validator')
  assert.doesNotMatch(error, /undefined/, 'a value that was not set')
}

/** The failure body of §2.4. */
export function assertNotRedeemed(answer: Answer, status: number, code: string): void {
  assertRefused(answer, status, code, 'success')
  assert.equal(answer.json.success, false)
}

export function assertRedeemed(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.success, true)
}

export function assertUnauthorized(answer: Answer, code: string): void {
  assertNotRedeemed(answer, 401, code)
  assert.match(String(answer.headers['www-authenticate']), /^Bearer\b/)
}

/** Every verdict has status 200, as at the hosted CAPTCHAs. */
export function assertSiteverified(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text)
  assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  assert.equal(answer.json?.success, true, answer.text)
  assert.ok(!('error-codes' in answer.json), answer.text)
}

export function assertNotSiteverified(answer: Answer, code: string, status = 200): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  assert.equal(answer.json?.success, false, answer.text)
  assert.deepEqual(answer.json['error-codes'], [code], answer.text)
  assert.deepEqual(Object.keys(answer.json).sort(), ['error-codes', 'messages', 'success'])
  const [message, ...more] = answer.json.messages
  // A sentence, which may begin with the vendors' name of a field.
  assert.match(message, /^[A-Z].*[.a-z]$|^(secret|response|remoteip|sitekey|idempotency_key) /)
  // Messages name no field of /verify-token, unless they quote what was sent.
  assert.doesNotMatch(message.replace(/"\w+"/, ''), /Authorization|X-Site-Key|expectedIp|idempotencyKey/)
  assert.deepEqual(more, [])
}

/** One of several answers is a success; `assertOther` holds for each of the others. */
export function assertOneOf(answers: readonly Answer[], assertOther: (answer: Answer) => void): void {
  const others = answers.filter(({ json }) => json.passed !== true && json.success !== true)
  assert.equal(others.length, answers.length - 1)
  for (const other of others) assertOther(other)
}

const REQUESTS_MAX = 300

/** Asks one after the other until a 429; all before it must have the status given. */
export async function requestsUntilLimited(ask: () => Promise<Answer>, status: number) {
  for (let admitted = 0; admitted < REQUESTS_MAX; admitted++) {
    const answer = await ask()
    if (answer.status === 429) return { admitted, refusal: answer }
    assert.equal(answer.status, status, answer.text)
  }
  throw new Error(`no limit within ${REQUESTS_MAX} requests`)
}

interface Limit {
  /** The name of the policy that is used up. */
  readonly refusedBy: string
  /** Requests a minute of each policy that the request is under, in the order of the header RateLimit-Policy. */
  readonly policies: Readonly<Record<string, number>>
}

/** A 429 with Retry-After in whole seconds and the headers of draft-ietf-httpapi-ratelimit-headers. */
export function assertLimited(answer: Answer, { refusedBy, policies }: Limit): void {
  assert.equal(answer.status, 429, answer.text)
  const retryAfter = String(answer.headers['retry-after'])
  assert.match(retryAfter, /^\d+$/)
  assert.ok(Number(retryAfter) >= 1 && Number(retryAfter) <= 60, `Retry-After is ${retryAfter}`)
  assert.equal(answer.headers.ratelimit, `"${refusedBy}";r=0;t=${retryAfter}`)
  const listed = Object.entries(policies).map(([name, quota]) => `"${name}";q=${quota};w=60`)
  assert.equal(answer.headers['ratelimit-policy'], listed.join(', '))
}

/** Asserts that so many requests get this status, which may be 400, because limits come before the body. Returns the 429 that follows. */
export async function assertAdmits(
  count: number,
  ask: () => Promise<Answer>,
  status: number,
  limit: Limit,
): Promise<Answer> {
  const { admitted, refusal } = await requestsUntilLimited(ask, status)
  assert.equal(admitted, count)
  assertLimited(refusal, limit)
  return refusal
}
