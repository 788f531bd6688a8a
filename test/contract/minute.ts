/**
 * Contract, section 8: limits are counted per minute, and a client that waits for Retry-After is admitted. Takes a
 * minute for each test, and they all wait at once.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, freshAddress } from '../harness/http.ts'
import { requestsUntilLimited } from './counting.ts'
import type { Subject } from './support.ts'

const WINDOW_MS = 60_000
const POLL_MS = 3000

export function minuteTests(subject: Subject): void {
  test('§8 /challenge: limits are counted per minute; who waits for Retry-After is admitted', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    await waitsAMinute(() => subject.client.challenge(siteKey, { from }), 30, 200)
  })

  test('§8 /verify: limits are counted per minute; who waits for Retry-After is admitted', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    await waitsAMinute(() => subject.client.verify(siteKey, '{}', { from }), 20, 400)
  })

  test('§8 /verify-token: limits are counted per minute; who waits for Retry-After is admitted', async () => {
    const { apiKey } = await subject.createSite()
    const from = freshAddress()
    await waitsAMinute(() => subject.client.verifyToken(apiKey, '{}', { from }), 100, 400)
  })
}

/** Goes on asking while it is refused, which must not put the end off. */
async function waitsAMinute(ask: () => Promise<Answer>, limit: number, status: number): Promise<void> {
  const startedAt = performance.now()
  const { admitted, refusal } = await requestsUntilLimited(ask, status)
  const mayReturnAt = performance.now() + Number(refusal.headers['retry-after']) * 1000
  assert.equal(admitted, limit)
  while (performance.now() + POLL_MS < mayReturnAt) {
    await sleep(POLL_MS)
    const answer = await ask()
    const elapsedMs = performance.now() - startedAt
    if (elapsedMs < WINDOW_MS) assert.equal(answer.status, 429, `admitted after ${elapsedMs} ms`)
  }
  await sleep(mayReturnAt - performance.now())
  const answer = await ask()
  assert.equal(answer.status, status, answer.text)
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, Math.max(0, ms)))
}
