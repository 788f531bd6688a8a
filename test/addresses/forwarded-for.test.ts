/** The client address by X-Forwarded-For: a table of forms, and arbitrary headers. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressSet, formatAddress, parseAddress } from '../../src/addresses/address.ts'
import { forwardedAddress } from '../../src/addresses/forwarded-for.ts'
import { seeded } from '../harness/arbitraries.ts'
import { words } from '../harness/values.ts'

const RUNS = 30_000
const TRUSTED = new AddressSet(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
const VISITOR = parseAddress('203.0.113.9')!
const HOPS_MAX = 32

const proxies = fc.oneof(
  fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map(octets => `10.${octets.join('.')}`),
  fc.constantFrom('127.0.0.1', 'fd00::1', '::ffff:10.1.1.1'),
)
const garbage = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.stringMatching(/^[0-9a-fA-FxX.:[\]%/ \t"]{0,40}$/),
  fc.constantFrom('', ' ', ...words('unknown 0x7f.1 010.0.0.1 127.1 fe80::1%eth0 [::1 1.2.3.4: ::ffff:')),
)
const entries = fc.oneof(proxies, fc.ipV4(), fc.ipV6(), garbage)
const lists = fc
  .tuple(fc.array(entries, { maxLength: 12 }), fc.constantFrom(',', ', ', ' ,\t', ',,'))
  .map(([list, comma]) => list.join(comma))
const headers = fc.oneof({ weight: 1, arbitrary: garbage }, { weight: 6, arbitrary: lists })

test('X-Forwarded-For behind trusted proxies gives the client address', () => {
  const NONE = undefined // a malformed header names nobody, so that the proxy itself counts as the client
  const rows = Object.entries({
    '': NONE,
    '198.51.100.1': '198.51.100.1',
    '1.1.1.1, 198.51.100.1': '198.51.100.1',
    '1.1.1.1, 198.51.100.1, 10.9.9.9': '198.51.100.1',
    '1.1.1.1,198.51.100.1 ,\t10.9.9.9': '198.51.100.1',
    '10.5.5.5, 10.6.6.6': '10.5.5.5',
    '::ffff:198.51.100.1': '198.51.100.1',
    '2001:db8::7': '2001:db8::7',
    '[2001:db8::7]:443': '2001:db8::7',
    '198.51.100.1:1234': '198.51.100.1',
    '198.51.100.1, unknown': NONE,
    '198.51.100.1,': '198.51.100.1',
    ',,198.51.100.1 , ,10.9.9.9,': '198.51.100.1',
    ',': NONE,
    '198.51.100.1, 0x0a.1.1.1': NONE,
    'fe80::1%eth0': 'fe80::1',
    '[fe80::1%eth0]:443': 'fe80::1',
    '"198.51.100.1:443"': '198.51.100.1',
    '"198.51.100.1': NONE,
    'fe80::1%': NONE,
    '198.51.100.001': NONE,
    '[2001:DB8::7]': '2001:db8::7',
    '2001:db8::7:443': '2001:db8::7:443', // without brackets no port
    '[fe80::1%25eth0]:80': 'fe80::1',
    '198.51.100.1/32': NONE,
    localhost: NONE,
    '198.51.100. 1': NONE,
    '1.1.1.1 198.51.100.1': NONE,
    '1.1.1.1; 198.51.100.1': NONE,
    '      ': NONE,
    [`198.51.100.1${',10.1.1.1'.repeat(HOPS_MAX - 1)}`]: '198.51.100.1',
    [`198.51.100.1${',10.1.1.1'.repeat(HOPS_MAX)}`]: NONE,
    [`${'::,'.repeat(999)}::1`]: '::1',
    'garbage, 198.51.100.1': '198.51.100.1', // left of the first untrusted address nothing is read
  })
  for (const [forwardedFor, client] of rows) {
    const found = forwardedAddress(forwardedFor, TRUSTED)
    assert.equal(found && formatAddress(found), client, forwardedFor)
  }
})

test(`property: whatever ${RUNS} clients send, behind a proxy that adds its line they are who it saw`, () => {
  fc.assert(
    fc.property(headers, fc.constantFrom(',', ', '), (header, comma) => {
      assert.equal(forwardedAddress(`${header}${comma}203.0.113.9`, TRUSTED), VISITOR)
    }),
    seeded(RUNS),
  )
})
