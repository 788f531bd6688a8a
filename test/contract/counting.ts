/** How the tests of limits count, and what a 429 carries. */

import assert from 'node:assert/strict'
import type { Answer } from '../harness/http.ts'

const REQUESTS_MAX = 300

/** Asks one after the other until a 429; all before it must have the status given. */
export async function requestsUntilLimited(
  ask: () => Promise<Answer>,
  status: number,
): Promise<{ admitted: number; refusal: Answer }> {
  for (let admitted = 0; admitted < REQUESTS_MAX; admitted++) {
    const answer = await ask()
    if (answer.status === 429) return { admitted, refusal: answer }
    assert.equal(answer.status, status, answer.text)
  }
  throw new Error(`no limit within ${REQUESTS_MAX} requests`)
}

/** A 429 with Retry-After in whole seconds and the headers of draft-ietf-httpapi-ratelimit-headers. */
export function assertLimited(
  answer: Answer,
  policy: string,
  policies: Readonly<Record<string, number>>,
): void {
  assert.equal(answer.status, 429, answer.text)
  const retryAfter = String(answer.headers['retry-after'])
  assert.match(retryAfter, /^\d+$/)
  assert.ok(Number(retryAfter) >= 1 && Number(retryAfter) <= 60, `Retry-After is ${retryAfter}`)
  assert.equal(answer.headers.ratelimit, `"${policy}";r=0;t=${retryAfter}`)
  const listed = Object.entries(policies).map(([name, quota]) => `"${name}";q=${quota};w=60`)
  assert.equal(answer.headers['ratelimit-policy'], listed.join(', '))
}
