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

test('addresses are parsed and formatted', () => {
  const canonicals = words(
    '127.0.0.1=127.0.0.1 ::ffff:10.1.2.3=10.1.2.3 ::FFFF:0a01:0203=10.1.2.3 ::=:: ::1=::1 2001:DB8::1=2001:db8::1',
    '2001:db8:0:0:1:0:0:1=2001:db8::1:0:0:1 2001:db8:0:1:1:1:1:1=2001:db8:0:1:1:1:1:1',
    '1:2:3:4:5:6:7::=1:2:3:4:5:6:7:0 64:ff9b::192.0.2.33=64:ff9b::c000:221',
  )
  const none = words('1.2.3 1.2.3.256 01.2.3.4 0x7f.0.0.1 1.2.3.4:80 [::1] fe80::1%eth0 ::: 12345::')
  for (const row of ['', '1.2.3.4 ', ...none, ...canonicals]) {
    const [text = '', canonical] = row.split('=')
    const address = parseAddress(text)
    assert.equal(address && formatAddress(address), canonical, text)
    assert.equal(address?.length ?? 16, 16)
  }
})

test('property: parsing agrees with the bytes that a URL parser sees', () => {
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

test('property: the network of an address holds it, and is all that is told of it', () => {
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

test('a range is wide beyond an IPv4 /16, or a prefix of IPv6', () => {
  const isWideOf = (range: string) => isWide(range, 44)
  const wide = words('0.0.0.0/0 10.0.0.0/15 2001:db8::/43 ::/0')
  assert.deepEqual([...wide, ...words('10.0.0.0/16 10.0.0.1 2001:db8::/44 ::1')].filter(isWideOf), wide)
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

test('property: a set of ranges agrees with node:net BlockList', () => {
  fc.assert(
    fc.property(
      fc.array(ranges, { maxLength: 8 }),
      fc.array(addresses, { minLength: 1, maxLength: 8 }),
      (texts, probes) => {
        const set = new AddressSet(texts)
        // Inside powgate IPv4 is the mapped form, so ranges are compared on mapped addresses.
        const list = new BlockList()
        for (const text of texts) {
          const [base = '', prefix] = text.split('/')
          if (isIPv4(base)) list.addSubnet(`::ffff:${base}`, Number(prefix) + 96, 'ipv6')
          else list.addSubnet(base, Number(prefix), 'ipv6')
        }
        const v4 = texts.filter(text => isIPv4(text.split('/')[0]!) || Number(text.split('/')[1]) >= 96)
        const listOfV4 = new AddressSet(v4)
        const edges = texts.flatMap(text => Object.values(parseRange(text) ?? {}))
        for (const address of [...probes, ...edges]) {
          const text = isV4(address) ? `::ffff:${formatAddress(address)}` : formatAddress(address)
          const isIn = isV4(address) ? listOfV4.has(address) : list.check(text, 'ipv6')
          assert.equal(set.has(address), isIn, text)
        }
      },
    ),
    seeded(2000),
  )
})

test('a range of IPv6 contains no IPv4, unless it is one of mapped addresses', () => {
  const has = (ranges: string, address: string) => new AddressSet(words(ranges)).has(parseAddress(address)!)
  for (const range of words('::/0 ::/3 ::/8 ::/80 ::fffe:0:0/95')) {
    for (const v4 of words('203.0.113.7 0.0.0.0 255.255.255.255')) assert.ok(!has(range, v4), range)
    assert.ok(has(range, '::fffe:ffff:ffff'), range)
  }
  assert.ok(has('::/8', '::1:0:0:0'))
  assert.ok(has('::/8 203.0.113.0/24', '203.0.113.7') && !has('::/8 203.0.113.0/24', '203.0.114.7'))
  for (const range of words('::ffff:0:0/96 ::ffff:203.0.113.0/120 0.0.0.0/0'))
    assert.ok(has(range, '203.0.113.7'), range)
})
