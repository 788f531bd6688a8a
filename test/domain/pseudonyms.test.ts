import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Address, isV4, parseAddress } from '../../src/domain/address.ts'
import { isOwnPseudonym, Pseudonyms, parsePseudonym, pseudonymText } from '../../src/domain/pseudonyms.ts'
import { isOperatorsOwn } from '../../src/domain/sources.ts'
import { addresses, seeded } from '../harness/arbitraries.ts'

const hexOf = (address: Address) => Buffer.from(address.slice(0, 16), 'latin1').toString('hex')

/** Leading half bytes that two addresses have in common: all 32 if they are equal. */
function common(one: Address, other: Address): number {
  const [a, b] = [hexOf(one), hexOf(other)]
  const first = [...a].findIndex((digit, index) => digit !== b[index])
  return first < 0 ? 32 : first
}

/** As a pseudonym stands for it: an IPv6 address for its /64. */
const meant = (address: Address) => (isV4(address) ? address : `${address.slice(0, 8)}${'\0'.repeat(8)}`)

const near = fc
  .tuple(addresses, fc.nat(15), fc.nat(255))
  .map(([address, at, code]) => [
    address,
    address.slice(0, at) + String.fromCharCode(code) + address.slice(at + 1),
  ])

test('property: two pseudonyms have in common what their addresses have, and are of the same family', () => {
  fc.assert(
    fc.property(near, fc.uint8Array({ minLength: 16, maxLength: 16 }), ([one, other], key) => {
      const pseudonyms = new Pseudonyms(key)
      const [a, b] = [pseudonyms.of(one!), pseudonyms.of(other!)]
      assert.equal(isV4(a), isV4(one!))
      if (isV4(one!) === isV4(other!)) assert.equal(common(a, b), common(meant(one!), meant(other!)))
      assert.equal(isOwnPseudonym(a), isOperatorsOwn(one!))
      assert.equal(pseudonyms.of(one!), a)
      assert.equal(parsePseudonym(pseudonymText(a)), a)
    }),
    seeded(3000),
  )
})

test('pseudonyms depend on the key in every half byte', () => {
  const address = parseAddress('203.0.113.7')!
  const seen = Array.from({ length: 8 }, () => new Set<string>())
  for (let key = 0; key < 200; key++) {
    const hex = hexOf(new Pseudonyms(Buffer.alloc(16, key)).of(address)).slice(24)
    for (const [at, digit] of [...hex].entries()) seen[at]!.add(digit)
  }
  for (const digits of seen) assert.equal(digits.size, 16)
})

test('what is no pseudonym', () => {
  for (const text of ['', '203.0.113.7', 'AAAAA', 'AAAAAAA', 'AAAAAA!!', 'AAAA A', 'AAAAAAAAAAAA'])
    assert.equal(parsePseudonym(text), undefined, text)
})
