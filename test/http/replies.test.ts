import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitedReply } from '../../src/http/replies.ts'

test('Retry-After is never too short: parts of a second count as a whole one', () => {
  for (const [retryAfterMs, seconds] of [
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
    [60_000, '60'],
  ] as const) {
    const limited = { status: 'limited', retryAfterMs, policy: 'address' } as const
    const headers = new Map(limitedReply(limited, { address: 30 }, 'plain').headers)
    assert.equal(headers.get('Retry-After'), seconds)
    assert.equal(headers.get('RateLimit'), `"address";r=0;t=${seconds}`)
    assert.equal(headers.get('RateLimit-Policy'), '"address";q=30;w=60')
  }
})
