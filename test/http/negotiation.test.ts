/** Accept-Encoding and If-None-Match, by tables. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CODINGS, type Coding, matchesEtag, preferredCoding } from '../../src/http/content.ts'

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
