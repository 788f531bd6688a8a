/** IP addresses and ranges: what is parsed, how it is written, and which ranges hold which addresses. */

import assert from 'node:assert/strict'
import { BlockList, isIPv4 } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  AddressSet,
  addressFromBytes,
  formatAddress,
  formatNetwork,
  formatVisitor,
  isV4,
  isWide,
  parseAddress,
  parseRange,
} from '../../src/addresses/address.ts'
import { addresses, seeded } from '../harness/arbitraries.ts'
import { words } from '../harness/values.ts'

test('addresses are parsed, and formatted in their canonical form; other text is none', () => {
  // Text, =, and its canonical form.
  const good = words(
    '127.0.0.1=127.0.0.1 ::ffff:10.1.2.3=10.1.2.3 ::FFFF:0a01:0203=10.1.2.3 ::=:: ::1=::1 2001:DB8::1=2001:db8::1',
    '2001:db8:0:0:1:0:0:1=2001:db8::1:0:0:1 2001:db8:0:1:1:1:1:1=2001:db8:0:1:1:1:1:1',
    '1:2:3:4:5:6:7::=1:2:3:4:5:6:7:0 64:ff9b::192.0.2.33=64:ff9b::c000:221',
  )
  const bad = words('1.2.3 1.2.3.256 01.2.3.4 0x7f.0.0.1 1.2.3.4:80 [::1] fe80::1%eth0 ::: 12345::')
  for (const row of ['', '1.2.3.4 ', ...bad, ...good]) {
    const [text = '', canonical] = row.split('=')
    const address = parseAddress(text)
    assert.equal(address && formatAddress(address), canonical, text)
    if (address !== undefined) assert.equal(address.length, 16, 'a character for each byte, also of IPv4')
  }
})

test('property: an IPv6 address in any spelling is parsed as its spelling by the URL parser', () => {
  fc.assert(
    fc.property(fc.ipV6(), text => {
      const viaUrl = new URL(`http://[${text}]/`).hostname.slice(1, -1)
      assert.equal(parseAddress(text), parseAddress(viaUrl))
    }),
    seeded(3000),
  )
})

test('property: dotted text is an IPv4 address exactly if node:net says so', () => {
  const odd = fc.constantFrom('', '0', '00', '01', '255', '256', ' 1', '1e1', '-1')
  const octet = fc.oneof(fc.nat(300).map(String), odd)
  const dotted = fc.array(octet, { minLength: 1, maxLength: 5 }).map(octets => octets.join('.'))
  fc.assert(
    fc.property(fc.oneof(dotted, fc.stringMatching(/^[0-9.]{0,16}$/)), text => {
      const address = parseAddress(text)
      assert.equal(address !== undefined, isIPv4(text), text)
      if (address !== undefined) assert.equal(formatAddress(address), text)
    }),
    seeded(2000),
  )
})

test('property: the network of an address is its /24 or /48, which holds it and tells nothing of the bits below', () => {
  assert.equal(formatNetwork(parseAddress('203.0.113.7')!), '203.0.113.0/24')
  assert.equal(formatNetwork(parseAddress('2001:db8:1:2::3')!), '2001:db8:1::/48')
  fc.assert(
    fc.property(addresses, address => {
      const network = formatNetwork(address)
      assert.ok(new AddressSet([network]).has(address))
      assert.equal(formatNetwork(parseRange(network)!.start), network)
    }),
    seeded(2000),
  )
})

test('bytes of a socket: IPv4 and its mapped form are the same address', () => {
  const plain = addressFromBytes(Buffer.from([10, 1, 2, 3]))
  const mapped = addressFromBytes(Buffer.from('00000000000000000000ffff0a010203', 'hex'))
  assert.equal(plain, mapped)
  assert.equal(addressFromBytes(Buffer.alloc(0)), undefined)
  assert.equal(addressFromBytes(Buffer.alloc(5)), undefined)
})

test('visitors: whole IPv4 addresses, prefixes of IPv6', () => {
  const visitor = (text: string, bits: number) => formatVisitor(parseAddress(text)!, bits)
  assert.equal(visitor('10.1.2.3', 64), '10.1.2.3')
  assert.equal(visitor('2001:db8:1:2:3:4:5:6', 64), '2001:db8:1:2::/64')
  assert.equal(visitor('2001:db8:1:2ff::', 60), '2001:db8:1:2f0::/60')
  assert.equal(visitor('2001:db8::1', 128), '2001:db8::1')
})

test('a set covers each of its own ranges, also one of IPv6 that contains no IPv4', () => {
  for (const range of words('::/0 ::/8 0.0.0.0/0 203.0.113.0/24 2001:db8::/32'))
    assert.ok(new AddressSet([range]).covers(range), range)
  assert.ok(!new AddressSet(['2001:db8::/32']).covers('2001:db8::/31'))
})

test('isWide: a range is larger than an IPv4 /16, or than the IPv6 prefix that the caller names', () => {
  for (const range of words('0.0.0.0/0 10.0.0.0/15 2001:db8::/43 ::/0')) assert.ok(isWide(range, 44), range)
  for (const range of words('10.0.0.0/16 10.0.0.1 2001:db8::/44 ::1')) assert.ok(!isWide(range, 44), range)
})

test('a malformed CIDR is refused', () => {
  const bad = words(
    '/ 1.2.3.4/ 1.2.3.4/33 ::/129 1.2.3.4/-1 1.2.3.4/8/8 a/8 ::ffff:203.0.113.0/24',
    '::ffff:cb00:7100/32 ::ffff:203.0.113.7/95',
  )
  for (const text of ['', '1.2.3.4/ 8', ...bad]) assert.equal(parseRange(text), undefined, text)
})

const ranges = fc.oneof(
  fc.tuple(fc.ipV4(), fc.nat(32)).map(([base, prefix]) => `${base}/${prefix}`),
  fc.tuple(fc.ipV6(), fc.nat(128)).map(([base, prefix]) => `${base}/${prefix}`),
)

/** Two BlockLists: one is asked about IPv6, one about IPv4. A prefix shorter than 96 bits means IPv6 alone, so the second lacks it. */
function blockListsOf(texts: readonly string[]) {
  const [v6, v4] = [new BlockList(), new BlockList()]
  for (const text of texts) {
    const [base = '', prefix] = text.split('/')
    // Inside powgate IPv4 is the mapped form, so ranges are compared on mapped addresses.
    const [network, bits] = isIPv4(base) ? [`::ffff:${base}`, Number(prefix) + 96] : [base, Number(prefix)]
    v6.addSubnet(network, bits, 'ipv6')
    if (bits >= 96) v4.addSubnet(network, bits, 'ipv6')
  }
  return { v6, v4 }
}

const texts = fc.array(ranges, { maxLength: 8 })
const probes = fc.array(addresses, { minLength: 1, maxLength: 8 })

test('property: a set of ranges has the addresses that node:net has in its BlockList, also at the ends of each range', () => {
  fc.assert(
    fc.property(texts, probes, (texts, probes) => {
      const set = new AddressSet(texts)
      const { v6, v4 } = blockListsOf(texts)
      const ends = texts.flatMap(text => Object.values(parseRange(text) ?? {}))
      for (const address of [...probes, ...ends]) {
        const text = isV4(address) ? `::ffff:${formatAddress(address)}` : formatAddress(address)
        assert.equal(set.has(address), (isV4(address) ? v4 : v6).check(text, 'ipv6'), text)
      }
    }),
    seeded(2000),
  )
})

test('a range of IPv6 contains no IPv4, unless it is one of mapped addresses', () => {
  const has = (ranges: string, address: string) => new AddressSet(words(ranges)).has(parseAddress(address)!)
  // The upper half of ::fffe:0:0/95 is all of IPv4, so nothing of it is left above.
  for (const range of words('::/0 ::/3 ::/8 ::/80 ::fffe:0:0/95')) {
    for (const v4 of words('203.0.113.7 0.0.0.0 255.255.255.255')) assert.ok(!has(range, v4), range)
    assert.ok(has(range, '::fffe:ffff:ffff'), `${range}: the last address below IPv4`)
  }
  assert.ok(has('::/8', '::1:0:0:0'), 'the first address above IPv4')
  assert.ok(has('::/8 203.0.113.0/24', '203.0.113.7') && !has('::/8 203.0.113.0/24', '203.0.114.7'))
  for (const range of words('::ffff:0:0/96 ::ffff:203.0.113.0/120 0.0.0.0/0'))
    assert.ok(has(range, '203.0.113.7'), range)
})
