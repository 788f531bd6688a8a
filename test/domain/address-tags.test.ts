/** Names of addresses and their networks' meters in the store. Some are compared whole, because stores of older versions hold them. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, addressFromBytes, parseAddress } from '../../src/addresses/address.ts'
import {
  AddressTags,
  ownerKey,
  shardKey,
  siteMeter,
  windowOfJunk,
  windowOfKnown,
  windowOfRefused,
  windowOfSite,
} from '../../src/domain/address-tags.ts'
import { fnv1a } from '../../src/domain/bytes.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { liveHeapBytes } from '../harness/measure.ts'

const SITE = 'site_0000000000000000000000'
const SECRET = 'a secret of more than 32 characters'
const OTHER_SECRET = 'another secret of more than 32 characters'
const tagsOf = (...secrets: string[]) => new AddressTags(new Keyring(secrets).signing)
const tags = tagsOf(SECRET)
const address = (text: string): Address => parseAddress(text)!
const keyOf = (text: string, bits = 64) => tags.keyOf(address(text), bits)
const networksOf = (text: string) => tags.networkMeters(address(text), keyOf(text), 'sha256')

test('the key of an address is the tag of its owner’s network (/24, /48) and the masked bits within it, the same in every version', () => {
  // Stores hold these two, so they must never change.
  assert.equal(keyOf('203.0.113.7'), 'bDDAOzSleY01')
  assert.equal(keyOf('2001:db8:1:203::1'), 'PwMDPE0nj_d181')
  const endings = (network: string) => Array.from({ length: 256 }, (_, end) => keyOf(network + end).slice(10))
  assert.equal(new Set(endings('203.0.113.')).size, 256)
  assert.notDeepEqual(endings('203.0.113.'), endings('203.0.114.'), 'of each network another mask')
  for (let bits = 48; bits <= 128; bits++)
    for (let bit = 48; bit < 128; bit++) {
      const other = Buffer.from(address('2001:db8:1:203::1'), 'latin1')
      other[bit >> 3]! ^= 0x80 >> (bit & 7)
      const isSame = tags.keyOf(addressFromBytes(other)!, bits) === keyOf('2001:db8:1:203::1', bits)
      assert.equal(isSame, bit >= bits, `/${bits} of IPv6 is one visitor: bit ${bit}`)
    }
})

test('addresses of one /24 or /48 share a tag, also in names of windows, and no two networks share one', () => {
  const owner = (text: string) => ownerKey(keyOf(text))
  assert.equal(owner('203.0.113.7'), owner('203.0.113.250'))
  assert.equal(owner('2001:db8:1:2::1'), owner('2001:db8:1:ffff::1'))
  const key = keyOf('203.0.113.7')
  const windows = [windowOfRefused(key), windowOfJunk(key), windowOfKnown(key, SITE), windowOfSite(key, SITE)]
  for (const window of windows) assert.equal(ownerKey(window), ownerKey(key))
  const owners = Array.from({ length: 65_536 }, (_, index) => [
    owner(`198.${index >> 8}.${index & 0xff}.7`),
    owner(`2001:db8:${index.toString(16)}::1`),
  ])
  assert.equal(new Set(owners.flat()).size, 2 * 65_536)
})

test('the meters of a network are those of its owner and of the /16 or /32 around it', () => {
  for (const [one, neighbour, stranger] of [
    ['203.0.113.7', '203.0.114.7', '203.1.113.7'],
    ['2001:db8:1::1', '2001:db8:2::1', '2001:db9:1::1'],
  ] as const) {
    const [owner, wide] = networksOf(one)
    assert.equal(owner, `e:${ownerKey(keyOf(one))}`)
    assert.notEqual(owner, networksOf(neighbour)[0])
    assert.equal(wide, networksOf(neighbour)[1])
    assert.notEqual(wide, networksOf(stranger)[1])
    const keys = [keyOf(one), windowOfKnown(keyOf(one), SITE), keyOf(neighbour)]
    const meters = [owner, wide, ...tags.networkMeters(address(one), keyOf(one), 'hashwx')]
    assert.equal(new Set(meters).size, 4, 'each puzzle has meters of its own')
    const names = [...meters.map(name => name.slice('e:'.length)), ...keys]
    assert.equal(new Set(names.map(shardKey)).size, 1, 'all on one shard, and the neighbour’s too')
  }
  assert.equal(new Set([...networksOf('0.0.0.0'), ...networksOf('::')]).size, 4, 'of equal bits, apart')
})

test('hosts agree on the shard of a key: its hash is FNV-1a, folded', () => {
  for (const [text, fnv] of Object.entries({ '': 0x811c9dc5, a: 0xe40c292c, foobar: 0xbf9cf968 }))
    assert.equal(fnv1a(text), (fnv ^ (fnv >>> 15)) >>> 0)
})

test('a worker remembers the names of 200,000 wide networks at most (WIDE_MAX), however many come', () => {
  const heapAfter = (from: number, to: number) => {
    for (let network = from; network < to; network++) {
      const bytes = Buffer.alloc(16, 0x20)
      bytes.writeUInt32BE(network) // a /32 of IPv6
      tags.networkMeters(addressFromBytes(bytes)!, 'an owner', 'sha256')
    }
    return liveHeapBytes()
  }
  const more = -heapAfter(0, 200_000) + heapAfter(200_000, 400_000)
  // 20 bytes for each of the further ones: an entry of a Map takes more.
  assert.ok(more < 4_000_000, `${more} bytes more`)
})

test('the first secret alone decides on keys; a key by another secret is translated into the one by this', () => {
  for (const text of ['203.0.113.7', '2001:db8:1:203::1']) {
    assert.equal(tagsOf(SECRET, OTHER_SECRET).keyOf(address(text), 64), keyOf(text))
    const other = tagsOf(OTHER_SECRET, SECRET).keyOf(address(text), 64)
    assert.notEqual(other, keyOf(text))
    const translated = tags.translated(windowOfKnown(other, SITE), address(text), 64)
    assert.equal(translated, windowOfKnown(keyOf(text), SITE))
  }
})

// Stores keep these names. A version with other names would take each store for a new one, and trust none of its usual rates.
test('names of the first proof: that for networks depends on the secret; that for sites, and names of their meters, do not', () => {
  assert.deepEqual(tags.firstProofNames, ['e:born', 'e:born:q5xV0JSs'])
  const [ofSites, ofNetworks] = tagsOf(OTHER_SECRET).firstProofNames
  assert.equal(ofSites, 'e:born')
  assert.notEqual(ofNetworks, 'e:born:q5xV0JSs')
  assert.equal(siteMeter(SITE), `e:${SITE}`)
})
