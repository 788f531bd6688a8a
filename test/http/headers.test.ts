/** Headers by tables: Accept-Encoding and If-None-Match of requests, Retry-After of answers. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CODINGS, type Coding, matchesEtag, preferredCoding } from '../../src/http/content.ts'
import { limitedReply } from '../../src/http/replies.ts'

const PREFERENCES: readonly [acceptEncoding: string, coding: Coding][] = [
  ['', 'identity'],
  ['br', 'br'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP, BR', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip, deflate', 'gzip'],
  ['deflate', 'identity'],
  ['identity', 'identity'],
  ['*', 'br'],
  ['br;q=0, *', 'gzip'],
  ['gzip;q=1.0, br;q=0.9', 'gzip'],
  ['gzip;q=0.5, br;q=0.5', 'br'],
  ['br ; q=0.1 , gzip ; Q=0.2', 'gzip'],
  ['br;q=0', 'identity'],
  ['br;q=0.000, gzip;q=0', 'identity'],
  ['br;q=0.001', 'br'],
  ['identity;q=1, br;q=0.5', 'identity'],
  ['identity;q=0.5, br;q=0.5', 'br'],
  ['identity;q=0', 'identity'],
  ['*;q=0', 'identity'],
  ['identity;q=0, gzip', 'gzip'],
  ['br;q=2', 'identity'],
  ['br;q=much', 'identity'],
  ['br;q=', 'identity'],
  [',,;;,', 'identity'],
]

test('the coding with the greatest weight, the shortest of equals', () => {
  for (const [header, coding] of PREFERENCES) assert.equal(preferredCoding(header, CODINGS), coding, header)
})

test('only codings that there are', () => {
  assert.equal(preferredCoding('br, gzip', ['gzip', 'identity']), 'gzip')
  assert.equal(preferredCoding('*', ['identity']), 'identity')
})

const MATCHES: readonly [ifNoneMatch: string, isMatch: boolean][] = [
  ['', false],
  ['*', true],
  [' * ', true],
  ['"a,b"', true],
  ['W/"a,b"', true],
  ['"x", "a,b"', true],
  ['"x",W/"a,b" , "y"', true],
  ['"x"', false],
  ['"a"', false],
  ['"x,"a,b""', false],
  ['a,b', false],
  ['"a,b', false],
  ['"A,B"', false],
  ['"x*"', false],
]

test('an entity tag in a list, by weak comparison', () => {
  for (const [header, isMatch] of MATCHES) assert.equal(matchesEtag(header, '"a,b"'), isMatch, header)
})

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
