/** Nonces: what they carry, what makes them forged, and HMAC against node:crypto. */

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hmac, Keyring } from '../../src/domain/keyring.ts'
import { challengeLifetimeMs, mintNonce, nonceMark, nonceTerms, readNonce } from '../../src/domain/nonce.ts'
import type { PuzzleName } from '../../src/protocol/proof.ts'
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
        difficulty: fc.constantFrom(0, 14, 15, 16, 17, 27, 28, 31),
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
      assert.equal(nonceMark(nonce), Number(BigInt(`0x${nonce.slice(22)}`) & 0x7f_ffff_ffffn))
    }),
    seeded(3000),
  )
})

test('to a host that does not know hashwx, its nonces are forged: it takes them for cheap ones of sha256', () => {
  const puzzles = ['sha256', 'hashwx'] as const
  for (let difficulty = 16; difficulty <= 28; difficulty++) {
    // The header of hashwx states 15 bits less.
    const [cheap, own] = puzzles.map(puzzle => {
      const bits = puzzle === 'sha256' ? difficulty - 15 : difficulty
      return mintNonce(keyring, { ...terms, puzzle, difficulty: bits }, binding, 5)
    })
    assert.equal(cheap!.slice(0, 16), own!.slice(0, 16))
    assert.notEqual(cheap!.slice(16, 22), own!.slice(16, 22))
    assert.equal(readNonce(keyring, cheap!, binding, LATEST_MS).status, 'forged')
    assert.equal(readNonce(keyring, own!, binding, LATEST_MS).status, 'genuine')
  }
})

test('nonces and fingerprints of secrets are what they were, so those of hosts with another version are good', () => {
  const minted = (puzzle: PuzzleName) => mintNonce(keyring, { ...terms, puzzle }, binding, 5)
  assert.equal(minted('sha256'), '0a9de4284aca40058e22a4ad211c12f3')
  assert.equal(minted('hashwx'), '0a9de4284a8e40054f3ca2aafb99c66d')
  assert.deepEqual(new Keyring(SECRETS).fingerprints, ['45027b4518df834e', '54292efd5565b9b3'])
})

test('another address is told apart; another site, epoch or secret is forged', () => {
  const nonce = mintNonce(keyring, terms, binding, 5)
  const read = (change: object, ring = keyring) =>
    readNonce(ring, nonce, { ...binding, ...change }, LATEST_MS).status
  assert.equal(read({}), 'genuine')
  assert.equal(read({ address: `${binding.address.slice(0, 15)}\x02` }), 'other-address')
  assert.equal(read({ siteKey: 'site_0123456789ABCDEFabcdeg' }), 'forged')
  assert.equal(read({ storeEpoch: 1 }), 'forged')
  assert.throws(() => read({ siteKey: 'site_0123456789ABCDEFabcde' }), RangeError)
  assert.equal(read({}, new Keyring([SECRETS[1]!])), 'forged')
})

test('a clock that no nonce can carry is named', () => {
  for (const issuedAtMs of [0, Date.UTC(2094, 0, 1)])
    assert.throws(() => mintNonce(keyring, { ...terms, issuedAtMs }, binding, 5), /^Error: the clock is not/)
})

test('a nonce issued in the future, from another address, is forged', () => {
  const other = { ...binding, address: `${binding.address.slice(0, 15)}\x02` }
  for (const [aheadMs, status] of Object.entries({ 0: 'other-address', 1: 'forged' })) {
    const nonce = mintNonce(keyring, { ...terms, issuedAtMs: LATEST_MS + Number(aheadMs) }, binding, 5)
    assert.equal(readNonce(keyring, nonce, binding, LATEST_MS).status, 'genuine')
    assert.equal(readNonce(keyring, nonce, other, LATEST_MS).status, status)
  }
})

test('every byte flipped: refused; the header and the site MAC as forged, the address MAC as another address', () => {
  const nonce = Buffer.from(mintNonce(keyring, terms, binding, 5), 'hex')
  for (let index = 0; index < 16; index++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = Buffer.from(nonce)
      flipped[index]! ^= 1 << bit
      const { status } = readNonce(keyring, flipped.toString('hex'), binding, Number.POSITIVE_INFINITY)
      assert.equal(status, index < 11 ? 'forged' : 'other-address', `byte ${index} bit ${bit}`)
    }
  }
})

test('truncated or extended: forged', () => {
  const nonce = mintNonce(keyring, terms, binding, 5)
  for (const text of [...Array.from(nonce, (_, length) => nonce.slice(0, length)), `${nonce}0`])
    assert.equal(readNonce(keyring, text, binding, LATEST_MS).status, 'forged')
})

test('rotation: the first secret signs, all verify, a removed one no longer does', () => {
  const old = mintNonce(new Keyring([SECRETS[0]!]), terms, binding, 5)
  const rotated = new Keyring([SECRETS[1]!, SECRETS[0]!])
  assert.equal(readNonce(rotated, old, binding, LATEST_MS).status, 'genuine')
  const fresh = mintNonce(rotated, terms, binding, 5)
  assert.equal(readNonce(new Keyring([SECRETS[1]!]), fresh, binding, LATEST_MS).status, 'genuine')
  assert.equal(readNonce(new Keyring([SECRETS[0]!]), fresh, binding, LATEST_MS).status, 'forged')
})

test('two secrets that share a key id both verify', () => {
  const secrets = Array.from({ length: 40 }, (_, index) => `secret ${index}, long enough to be accepted`)
  const kidOf = (secret: string) => new Keyring([secret]).signing.kid
  const first = secrets[0]
  const second = secrets.find(secret => secret !== first && kidOf(secret) === kidOf(first!))
  const both = new Keyring([first!, second!])
  const kids = Array.from({ length: 16 }, (_, kid) => kid).filter(kid => both.candidates(kid).length > 0)
  assert.deepEqual(kids, [kidOf(first!)], 'no other id makes a host try a secret')
  for (const secret of [first!, second!]) {
    const nonce = mintNonce(new Keyring([secret]), terms, binding, 1)
    assert.equal(readNonce(both, nonce, binding, LATEST_MS).status, 'genuine')
  }
})

test('lifetime: the floor, longer for high difficulties, at most ten minutes', () => {
  assert.equal(challengeLifetimeMs(16, 120_000, 'sha256'), 120_000)
  assert.equal(challengeLifetimeMs(26, 120_000, 'sha256'), 120_000)
  assert.equal(challengeLifetimeMs(27, 120_000, 'sha256'), Math.ceil((Math.log(1000) * 2 ** 27) / 4000))
  assert.ok(challengeLifetimeMs(28, 120_000, 'sha256') <= 600_000)
  assert.equal(challengeLifetimeMs(31, 120_000, 'sha256'), 600_000)
  assert.equal(challengeLifetimeMs(17, 120_000, 'hashwx'), 120_000)
  assert.equal(challengeLifetimeMs(24, 120_000, 'hashwx'), Math.ceil((Math.log(1000) * 2 ** 24) / 400))
})

test('property: equals createHmac for any key and message, also when reused', () => {
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

test('bounds: a message longer than the buffer, an empty key, a key beyond one block', () => {
  const hmac = new Hmac(Buffer.alloc(64), 10)
  assert.equal(hmac.sign(10).length, 43)
  assert.throws(() => hmac.sign(11), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(0), 10), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(65), 10), RangeError)
})
