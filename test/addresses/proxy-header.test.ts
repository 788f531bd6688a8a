/** PROXY protocol headers, versions 1 and 2: good, wrong and arbitrary ones. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatAddress } from '../../src/addresses/address.ts'
import { readProxyHeader } from '../../src/addresses/proxy-header.ts'
import { seeded } from '../harness/arbitraries.ts'
import { extension, v2Header } from '../harness/proxy-header.ts'

const V6 = '20010db8000000000000000000000007'
const MAPPED = '00000000000000000000ffffcb007102'

const CLOUD = Buffer.concat([extension(0x03, 7), extension(0x04, 65)]) // a CRC-32C and a filler
const CERTIFICATE = extension(0x20, 4000) // of TLS

const GOOD: readonly [about: string, bytes: Buffer | string, source: string | undefined][] = [
  ['IPv4', v2Header(), '203.0.113.1'],
  ['IPv6', v2Header({ family: 0x21, source: V6 }), '2001:db8::7'],
  ['mapped IPv4', v2Header({ family: 0x21, source: MAPPED }), '203.0.113.2'],
  ['datagrams', v2Header({ family: 0x12 }), '203.0.113.1'],
  ['LOCAL', v2Header({ command: 0, family: 0 }), undefined],
  ['LOCAL with an address', v2Header({ command: 0 }), undefined],
  [
    'LOCAL of an unknown family',
    v2Header({ command: 0, family: 0xff, addresses: Buffer.alloc(3) }),
    undefined,
  ],
  ['no family', v2Header({ family: 0 }), undefined],
  ['a Unix socket', v2Header({ family: 0x31 }), undefined],
  ['the extensions of a cloud balancer', v2Header({ extensions: CLOUD }), '203.0.113.1'],
  ['a certificate', v2Header({ family: 0x21, source: V6, extensions: CERTIFICATE }), '2001:db8::7'],
  ['version 1', 'PROXY TCP4 203.0.113.1 10.0.0.1 56324 443\r\n', '203.0.113.1'],
  ['version 1, IPv6', 'PROXY TCP6 2001:db8::7 ::1 56324 443\r\n', '2001:db8::7'],
  ['version 1, unknown', 'PROXY UNKNOWN\r\n', undefined],
  ['version 1, unknown with more', 'PROXY UNKNOWN ::1 ::1 1 2\r\n', undefined],
]

for (const [about, header, source] of GOOD) {
  const bytes = Buffer.from(header)
  test(`a header of ${about}: read when it is whole, and not before; what follows is left`, () => {
    for (let length = 0; length < bytes.length; length++)
      assert.equal(readProxyHeader(bytes.subarray(0, length)).status, 'incomplete', `${length} bytes`)
    for (const rest of ['', 'GET / HTTP/1.1\r\n', bytes]) {
      const read = readProxyHeader(Buffer.concat([bytes, Buffer.from(rest)]))
      assert(read.status === 'complete', JSON.stringify(read))
      assert.equal(read.headerBytes, bytes.length)
      assert.equal(read.source && formatAddress(read.source), source)
    }
  })
}

const WRONG: Readonly<Record<string, Buffer | string>> = {
  HTTP: 'GET / HTTP/1.1\r\n\r\n',
  'one byte of HTTP': 'G',
  'POST, which starts like PROXY': 'POST',
  'an empty line': '\r\n\r\nG',
  'a signature with another last byte': Buffer.from('0d0a0d0a000d0a515549540b', 'hex'),
  'version 1 in the form of 2': v2Header({ version: 1 }),
  'version 3': v2Header({ version: 3 }),
  'command 2': v2Header({ command: 2 }),
  'family 4': v2Header({ family: 0x41 }),
  'transport 3': v2Header({ family: 0x13 }),
  'no address': v2Header({ addresses: Buffer.alloc(0) }),
  'an IPv4 address cut off': v2Header({ addresses: Buffer.alloc(11) }),
  'IPv6 with the length of IPv4': v2Header({ family: 0x21, addresses: Buffer.alloc(12) }),
  'a Unix path cut off': v2Header({ family: 0x31, addresses: Buffer.alloc(100) }),
  'one byte too many': v2Header({ length: 16_384 - 16 + 1 }), // after 16 fixed bytes
  'version 1 without an end': `PROXY UNKNOWN ${'a'.repeat(100)}`,
  'version 1 of an octal address': 'PROXY TCP4 010.0.0.1 10.0.0.1 1 2\r\n',
  'version 1 of the wrong family': 'PROXY TCP4 2001:db8::7 ::1 1 2\r\n',
  'version 1 of the other wrong family': 'PROXY TCP6 203.0.113.1 ::1 1 2\r\n',
  'version 1 without ports': 'PROXY TCP4 203.0.113.1 10.0.0.1\r\n',
  'version 1 of UDP': 'PROXY UDP4 203.0.113.1 10.0.0.1 1 2\r\n',
  'version 1 in small letters': 'proxy TCP4 203.0.113.1 10.0.0.1 1 2\r\n',
}

for (const [about, bytes] of Object.entries(WRONG)) {
  test(`no header: ${about}`, () => {
    const header = readProxyHeader(Buffer.from(bytes))
    assert(header.status === 'wrong', JSON.stringify(header))
    assert.notEqual(header.why, '')
  })
}

const SIGNATURE = '0d0a0d0a000d0a515549540a'
const starts = fc.constantFrom('', '0d0a', SIGNATURE, `${SIGNATURE}21`, '50524f585920')

test('property: any bytes are read without a fault, and none beyond them', () => {
  fc.assert(
    fc.property(starts, fc.uint8Array({ maxLength: 300 }), (start, more) => {
      const bytes = Buffer.concat([Buffer.from(start, 'hex'), more])
      const header = readProxyHeader(bytes)
      if (header.status === 'complete') {
        assert.ok(header.headerBytes <= bytes.length)
        assert.ok(header.source === undefined || header.source.length === 16)
      }
    }),
    seeded(20_000),
  )
})
