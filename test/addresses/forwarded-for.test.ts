/** The client address by X-Forwarded-For: a table of forms, and arbitrary headers. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressSet, formatAddress, parseAddress } from '../../src/addresses/address.ts'
import { seeded } from '../harness/arbitraries.ts'
import { clientAddress } from '../harness/proxy-header.ts'
import { words } from '../harness/values.ts'

const RUNS = 30_000
const TRUSTED = new AddressSet(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
const PROXY = parseAddress('10.0.0.1')!
const STRANGER = parseAddress('203.0.113.9')!
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
  const PEER = '10.0.0.1' // a malformed header makes the peer the client
  const rows = Object.entries({
    '': PEER,
    '198.51.100.1': '198.51.100.1',
    '1.1.1.1, 198.51.100.1': '198.51.100.1',
    '1.1.1.1, 198.51.100.1, 10.9.9.9': '198.51.100.1',
    '1.1.1.1,198.51.100.1 ,\t10.9.9.9': '198.51.100.1',
    '10.5.5.5, 10.6.6.6': '10.5.5.5',
    '::ffff:198.51.100.1': '198.51.100.1',
    '2001:db8::7': '2001:db8::7',
    '[2001:db8::7]:443': '2001:db8::7',
    '198.51.100.1:1234': '198.51.100.1',
    '198.51.100.1, unknown': PEER,
    '198.51.100.1,': '198.51.100.1',
    ',,198.51.100.1 , ,10.9.9.9,': '198.51.100.1',
    ',': PEER,
    '198.51.100.1, 0x0a.1.1.1': PEER,
    'fe80::1%eth0': 'fe80::1',
    '[fe80::1%eth0]:443': 'fe80::1',
    '"198.51.100.1:443"': '198.51.100.1',
    '"198.51.100.1': PEER,
    'fe80::1%': PEER,
    '198.51.100.001': PEER,
    '[2001:DB8::7]': '2001:db8::7',
    '2001:db8::7:443': '2001:db8::7:443', // without brackets no port
    '[fe80::1%25eth0]:80': 'fe80::1',
    '198.51.100.1/32': PEER,
    localhost: PEER,
    '198.51.100. 1': PEER,
    '1.1.1.1 198.51.100.1': PEER,
    '1.1.1.1; 198.51.100.1': PEER,
    '      ': PEER,
    [`198.51.100.1${',10.1.1.1'.repeat(HOPS_MAX - 1)}`]: '198.51.100.1',
    [`198.51.100.1${',10.1.1.1'.repeat(HOPS_MAX)}`]: PEER,
    [`${'::,'.repeat(999)}::1`]: '::1',
    'garbage, 198.51.100.1': '198.51.100.1', // left of the first untrusted address nothing is read
  })
  for (const [forwardedFor, client] of rows) {
    assert.equal(formatAddress(clientAddress(PROXY, forwardedFor, TRUSTED)), client, forwardedFor)
  }
})

test(`property: of ${RUNS} headers none changes the address of an untrusted peer`, () => {
  fc.assert(
    fc.property(headers, header => clientAddress(STRANGER, header, TRUSTED) === STRANGER),
    seeded(RUNS),
  )
})

test(`property: whatever ${RUNS} clients send, behind a proxy that adds its line they are who it saw`, () => {
  fc.assert(
    fc.property(headers, fc.constantFrom(',', ', '), (header, comma) => {
      assert.equal(clientAddress(PROXY, `${header}${comma}203.0.113.9`, TRUSTED), STRANGER)
    }),
    seeded(RUNS),
  )
})
