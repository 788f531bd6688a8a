/** The client address: compared with a second implementation of the same rules, on arbitrary headers. */

import assert from 'node:assert/strict'
import { isIPv4, isIPv6 } from 'node:net'
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
const entries = fc.oneof(
  { weight: 4, arbitrary: proxies },
  { weight: 2, arbitrary: fc.ipV4() },
  { weight: 2, arbitrary: fc.ipV6() },
  { weight: 1, arbitrary: fc.tuple(fc.ipV6(), fc.nat(99_999)).map(([ip, port]) => `[${ip}]:${port}`) },
  { weight: 1, arbitrary: fc.tuple(fc.oneof(fc.ipV4(), proxies), fc.nat(99_999)).map(all => all.join(':')) },
  { weight: 2, arbitrary: garbage },
)
const lists = fc
  .tuple(fc.array(entries, { maxLength: 12 }), fc.constantFrom(',', ', ', ' ,\t', ',,'))
  .map(([list, comma]) => list.join(comma))
const longLists = fc
  .tuple(entries, proxies, fc.integer({ min: HOPS_MAX - 3, max: HOPS_MAX + 3 }))
  .map(([first, proxy, count]) => [first, ...Array<string>(count).fill(proxy)].join(','))
const headers = fc.oneof(
  { weight: 1, arbitrary: garbage },
  { weight: 6, arbitrary: lists },
  { weight: 1, arbitrary: longLists },
)

/** IP addresses as a URL's host writes them, which is canonical; undefined for what is none. */
function canonical(entry: string): string | undefined {
  const text = entry
    .replace(/^[ \t]+|[ \t]+$/g, '')
    .replace(/^("+)(.*?)\1$/, '$2')
    .replace(/^(\[?[\da-fA-F:.]+)%[\w.-]+(?=$|\]|:\d{1,5}$)/, '$1')
  const bare = /^\[(.*)\](?::\d{1,5})?$/s.exec(text)?.[1] ?? /^([0-9.]+):\d{1,5}$/.exec(text)?.[1] ?? text
  if (isIPv4(bare)) return bare
  if (!isIPv6(bare) || bare.includes('%')) return undefined
  const host = new URL(`http://[${bare}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(host)
  if (mapped === null) return host
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

const isTrusted = (ip: string): boolean =>
  ip === '127.0.0.1' || /^10(\.\d+){3}$/.test(ip) || /^fd[0-9a-f]{2}:/.test(ip)

/** From the right, the first that is no proxy's; all proxies: the last that was read. */
function clientByTheBook(peer: string, header: string): string {
  if (header === '') return peer
  let client = peer
  for (const [hops, entry] of header.split(',').reverse().entries()) {
    if (hops === HOPS_MAX) return peer
    if (/^[ \t]*$/.test(entry)) continue
    const ip = canonical(entry)
    if (ip === undefined) return peer
    client = ip
    if (!isTrusted(ip)) break
  }
  return client
}

test('X-Forwarded-For behind trusted proxies gives the client address', () => {
  const PEER = '10.0.0.1' // what is malformed is not believed
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
    'garbage, 198.51.100.1': '198.51.100.1', // left of the first untrusted address nothing is read
  })
  for (const [forwardedFor, client] of rows) {
    assert.equal(formatAddress(clientAddress(PROXY, forwardedFor, TRUSTED)), client, forwardedFor)
    assert.equal(client, clientByTheBook('10.0.0.1', forwardedFor), 'the second reading')
  }
})

test(`property: of ${RUNS} headers none changes the address of an untrusted peer`, () => {
  fc.assert(
    fc.property(headers, header => clientAddress(STRANGER, header, TRUSTED) === STRANGER),
    seeded(RUNS),
  )
})

test(`property: of ${RUNS} headers from a trusted proxy each gives the address that the rules give`, () => {
  const found = { peer: 0, proxy: 0, stranger: 0 }
  fc.assert(
    fc.property(headers, header => {
      const client = formatAddress(clientAddress(PROXY, header, TRUSTED))
      assert.equal(client, clientByTheBook('10.0.0.1', header))
      if (client === '10.0.0.1') found.peer++
      else if (isTrusted(client)) found.proxy++
      else found.stranger++
    }),
    seeded(RUNS),
  )
  for (const [kind, count] of Object.entries(found)) assert.ok(count > RUNS / 50, `${kind}: only ${count}`)
})

test(`property: whatever ${RUNS} clients send, behind a proxy that adds its line they are who it saw`, () => {
  fc.assert(
    fc.property(headers, fc.constantFrom(',', ', '), (header, comma) => {
      assert.equal(clientAddress(PROXY, `${header}${comma}203.0.113.9`, TRUSTED), STRANGER)
    }),
    seeded(RUNS),
  )
})

test('of 400 proxies in an X-Forwarded-For, 32 are read', t => {
  const trusted = new AddressSet(['10.0.0.0/8'])
  const { mock } = t.mock.method(trusted, 'has')
  const header = `203.0.113.9${',10.0.0.2'.repeat(400)}`
  assert.equal(formatAddress(clientAddress(PROXY, header, trusted)), '10.0.0.1')
  assert.ok(mock.callCount() <= HOPS_MAX + 1, `${mock.callCount()}`)
})
