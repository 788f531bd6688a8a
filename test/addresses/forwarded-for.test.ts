/** The client's address by X-Forwarded-For, behind proxies that are trusted: a table of good and bad headers, and arbitrary ones. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressSet, formatAddress, parseAddress } from '../../src/addresses/address.ts'
import { forwardedAddress } from '../../src/addresses/forwarded-for.ts'
import { seeded } from '../harness/arbitraries.ts'
import { words } from '../harness/values.ts'

const RUNS = 10_000
const TRUSTED = new AddressSet(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
const VISITOR = parseAddress('203.0.113.9')!
/** Entries that are read at most, the client's and empty ones included: a header that needs more names nobody. */
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

test('the client is the last address that is no trusted proxy; a malformed header names none', () => {
  /** @param headers several, with ` | ` between them */
  const assertClient = (client: string | undefined, headers: string) => {
    for (const header of headers.split(' | ')) {
      const found = forwardedAddress(header, TRUSTED)
      assert.equal(found && formatAddress(found), client, header)
    }
  }
  const [one, trustedHop] = ['198.51.100.1', ',10.1.1.1']
  assertClient(one, `${one} | 1.1.1.1, ${one} | 1.1.1.1, ${one}, 10.9.9.9 | 1.1.1.1,${one} ,\t10.9.9.9`)
  assertClient(one, `::ffff:${one} | ${one}:1234 | "${one}:443"`)
  assertClient(one, `${one}, | ,,${one} , ,10.9.9.9,`) // empty entries are skipped
  assertClient(one, one + trustedHop.repeat(HOPS_MAX - 1))
  assertClient(one, `garbage, ${one}`) // left of the first untrusted address nothing is read
  assertClient('10.5.5.5', '10.5.5.5, 10.6.6.6') // all are trusted, so the first
  assertClient('2001:db8::7', '2001:db8::7 | [2001:db8::7]:443 | [2001:DB8::7]')
  assertClient('2001:db8::7:443', '2001:db8::7:443') // without brackets no port
  assertClient('fe80::1', 'fe80::1%eth0 | [fe80::1%eth0]:443 | [fe80::1%25eth0]:80')
  assertClient('::1', `${'::,'.repeat(999)}::1`)
  // A header that names nobody leaves the proxy itself as the client.
  for (const blank of ['', ' '.repeat(6)]) assertClient(undefined, blank)
  assertClient(undefined, `${one}, 0x0a.1.1.1 | 198.51.100.001 | 198.51.100. 1 | ${one}/32`)
  assertClient(undefined, one + trustedHop.repeat(HOPS_MAX))
  assertClient(
    undefined,
    `${one}, unknown | , | "${one} | fe80::1% | localhost | 1.1.1.1 ${one} | 1.1.1.1; ${one}`,
  )
})

test(`property: whatever ${RUNS} clients send, behind a proxy that adds its line they are who it saw`, () => {
  fc.assert(
    fc.property(headers, fc.constantFrom(',', ', '), (header, comma) => {
      assert.equal(forwardedAddress(`${header}${comma}203.0.113.9`, TRUSTED), VISITOR)
    }),
    seeded(RUNS),
  )
})
