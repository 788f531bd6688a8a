/** Nonces: what they carry, what makes them forged, and how long a challenge lives. Also `Hmac`, by which tokens are signed. */

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hmac, Keyring } from '../../src/domain/keyring.ts'
import { mintNonce, nonceLifetimeMs, nonceMark, nonceTerms, readNonce } from '../../src/domain/nonce.ts'
import { addresses, seeded, siteKeys } from '../harness/arbitraries.ts'

const SECRETS = ['first secret, long enough to be accepted', 'second secret, long enough to be accepted']
const keyring = new Keyring([SECRETS[0]!])
const binding = {
  siteKey: 'site_0123456789ABCDEFabcdef',
  storeEpoch: 0xdeadbeef,
  lifetimes: { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 },
  address: `${'\0'.repeat(10)}\xff\xff\x7f\0\0\x01`, // 127.0.0.1
}
const terms = { issuedAtMs: Date.UTC(2026, 10, 21, 12, 34, 56, 789), difficulty: 18 }
const LATEST_MS = terms.issuedAtMs + 5000
const mint = (ring = keyring, change: object = {}) => mintNonce(ring, { ...terms, ...change }, binding, 5) // random bits, which no reader looks at
const statusOf = (nonce: string, ring = keyring) => readNonce(ring, nonce, binding, LATEST_MS).status

const bindings = fc.record({
  siteKey: siteKeys,
  storeEpoch: fc.nat(0xffffffff),
  lifetimes: fc.record({ challengeLifetimeMs: fc.nat(0x7fffffff), tokenLifetimeMs: fc.nat(0xffffffff) }),
  address: addresses,
})
const allTerms = fc
  .record({
    issuedAtMs: fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2090, 0, 1) }),
    work: fc.oneof(
      fc.record({
        puzzle: fc.constant('sha256' as const),
        difficulty: fc.constantFrom(0, 14, 15, 16, 17, 27, 28, 31), // the header has 1 to 13 for hashwx of 16 to 28
      }),
      fc.record({ puzzle: fc.constant('hashwx' as const), difficulty: fc.integer({ min: 16, max: 28 }) }),
    ),
  })
  .map(({ issuedAtMs, work }) => ({ issuedAtMs, ...work }))

test('property: a nonce reads back what was minted, and is 32 lowercase hex characters', () => {
  fc.assert(
    fc.property(allTerms, bindings, fc.nat(0x3fff), (someTerms, someBinding, random) => {
      const nonce = mintNonce(keyring, someTerms, someBinding, random)
      assert.match(nonce, /^[0-9a-f]{32}$/)
      const reading = readNonce(keyring, nonce, someBinding, someTerms.issuedAtMs)
      assert.deepEqual(reading, { status: 'genuine', ...someTerms })
      assert.deepEqual(nonceTerms(nonce), { ...someTerms })
      // The mark is the address MAC, 40 bits, without the first.
      assert.equal(nonceMark(nonce), Number(BigInt(`0x${nonce.slice(22)}`) & 0x7f_ffff_ffffn))
    }),
    seeded(3000),
  )
})

// The header says hashwx of 16 to 28 bits as sha256 of 1 to 13. A host of before hashwx would read that, and take a cheaper solution.
test('a nonce of hashwx has the header of a sha256 nonce of 15 bits less, but another MAC, so it is not taken for one', () => {
  for (let difficulty = 16; difficulty <= 28; difficulty++) {
    const own = mint(keyring, { puzzle: 'hashwx', difficulty })
    const cheap = mint(keyring, { puzzle: 'sha256', difficulty: difficulty - 15 })
    assert.equal(cheap.slice(0, 16), own.slice(0, 16), 'their headers are the same')
    assert.notEqual(cheap.slice(16, 22), own.slice(16, 22), 'the MACs of the site differ')
    assert.deepEqual([statusOf(cheap), statusOf(own)], ['forged', 'genuine'])
  }
})

test('nonces and fingerprints of secrets are what they were, so those of hosts with another version are good', () => {
  assert.equal(mint(keyring, { puzzle: 'sha256' }), '0a9de4284aca40058e22a4ad211c12f3')
  assert.equal(mint(keyring, { puzzle: 'hashwx' }), '0a9de4284a8e40054f3ca2aafb99c66d')
  assert.deepEqual(new Keyring(SECRETS).fingerprints, ['45027b4518df834e', '54292efd5565b9b3'])
})

test('read for another address, a nonce is of another address; for another site, epoch or secret, it is forged', () => {
  const nonce = mint()
  const read = (change: object, ring = keyring) =>
    readNonce(ring, nonce, { ...binding, ...change }, LATEST_MS).status
  assert.equal(read({}), 'genuine')
  assert.equal(read({ address: `${binding.address.slice(0, 15)}\x02` }), 'other-address')
  assert.equal(read({ siteKey: 'site_0123456789ABCDEFabcdeg' }), 'forged')
  assert.equal(read({ storeEpoch: 1 }), 'forged')
  assert.throws(() => read({ siteKey: 'site_0123456789ABCDEFabcde' }), RangeError)
  assert.equal(read({}, new Keyring([SECRETS[1]!])), 'forged')
})

test('a nonce of before 2024 or after 2093, which its 41 bits of time cannot carry, is not minted: the clock is wrong', () => {
  for (const issuedAtMs of [0, Date.UTC(2094, 0, 1)])
    assert.throws(() => mint(keyring, { issuedAtMs }), /^Error: the clock is not/)
})

test('a nonce from another address is forged if it was issued after the latest time that is possible', () => {
  const other = { ...binding, address: `${binding.address.slice(0, 15)}\x02` }
  for (const [aheadMs, status] of Object.entries({ 0: 'other-address', 1: 'forged' })) {
    const nonce = mint(keyring, { issuedAtMs: LATEST_MS + Number(aheadMs) })
    assert.equal(statusOf(nonce), 'genuine')
    assert.equal(readNonce(keyring, nonce, other, LATEST_MS).status, status)
  }
})

test('a nonce with any bit flipped is refused: in the header or the site MAC as forged, in the address MAC as of another address', () => {
  const nonce = Buffer.from(mint(), 'hex')
  for (let index = 0; index < 16; index++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = Buffer.from(nonce)
      flipped[index]! ^= 1 << bit
      const { status } = readNonce(keyring, flipped.toString('hex'), binding, Number.POSITIVE_INFINITY)
      const isAddressMac = index >= 11 // after 8 bytes of header and 3 of the site MAC
      assert.equal(status, isAddressMac ? 'other-address' : 'forged', `byte ${index} bit ${bit}`)
    }
  }
})

test('a nonce cut short anywhere, or with a character more, is forged', () => {
  const nonce = mint()
  for (const text of [...Array.from(nonce, (_, length) => nonce.slice(0, length)), `${nonce}0`])
    assert.equal(statusOf(text), 'forged')
})

test('rotation: the first secret signs, all verify, a removed one no longer does', () => {
  const [before, after] = [new Keyring([SECRETS[0]!]), new Keyring([SECRETS[1]!])]
  const rotated = new Keyring([SECRETS[1]!, SECRETS[0]!])
  assert.equal(statusOf(mint(before), rotated), 'genuine')
  const fresh = mint(rotated)
  assert.deepEqual([statusOf(fresh, after), statusOf(fresh, before)], ['genuine', 'forged'])
})

test('two secrets that share a key id both verify', () => {
  const secrets = Array.from({ length: 40 }, (_, index) => `secret ${index}, long enough to be accepted`)
  const kidOf = (secret: string) => new Keyring([secret]).signing.kid
  const [first = '', ...others] = secrets
  const second = others.find(secret => kidOf(secret) === kidOf(first))! // key ids are 0 to 15, so one of 40 will do
  const both = new Keyring([first, second])
  const kids = Array.from({ length: 16 }, (_, kid) => kid).filter(kid => both.candidates(kid).length > 0)
  assert.deepEqual(kids, [kidOf(first)], 'no other id makes a host try a secret')
  for (const secret of [first, second]) assert.equal(statusOf(mint(new Keyring([secret])), both), 'genuine')
})

test('lifetime of a challenge: the given floor; longer if the slowest device needs it, at most ten minutes', () => {
  // That device does 4000 hashes of sha256 a millisecond, or 400 of hashwx; 99.9 % are done within ln(1000) times the mean number.
  assert.equal(nonceLifetimeMs(16, 120_000, 'sha256'), 120_000)
  assert.equal(nonceLifetimeMs(26, 120_000, 'sha256'), 120_000)
  assert.equal(nonceLifetimeMs(27, 120_000, 'sha256'), Math.ceil((Math.log(1000) * 2 ** 27) / 4000))
  assert.ok(nonceLifetimeMs(28, 120_000, 'sha256') <= 600_000)
  assert.equal(nonceLifetimeMs(31, 120_000, 'sha256'), 600_000)
  assert.equal(nonceLifetimeMs(17, 120_000, 'hashwx'), 120_000)
  assert.equal(nonceLifetimeMs(24, 120_000, 'hashwx'), Math.ceil((Math.log(1000) * 2 ** 24) / 400))
})

test('property: Hmac signs as createHmac of node:crypto does, any key and message, also one after another', () => {
  const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength })
  fc.assert(
    fc.property(bytes(1, 64), fc.array(bytes(0, 109), { minLength: 1, maxLength: 4 }), (key, messages) => {
      const hmac = new Hmac(key, 109)
      for (const message of messages) {
        hmac.message.set(message)
        const expected = createHmac('sha256', key).update(message).digest('base64url')
        assert.equal(hmac.sign(message.length), expected)
      }
    }),
    seeded(3000),
  )
})

test('Hmac refuses a message longer than its buffer, an empty key, and one of more than a block of 64 bytes', () => {
  const hmac = new Hmac(Buffer.alloc(64), 10)
  assert.equal(hmac.sign(10).length, 43)
  assert.throws(() => hmac.sign(11), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(0), 10), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(65), 10), RangeError)
})
