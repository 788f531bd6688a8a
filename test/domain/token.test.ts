import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintToken, readToken, type TokenClaims } from '../../src/domain/token.ts'
import { addresses, counters, nonces, seeded } from '../harness/arbitraries.ts'
import { words } from '../harness/values.ts'

const SECRET = 'first secret, long enough to be accepted'
const keyring = new Keyring([SECRET])

const claims: TokenClaims = {
  issuedAtMs: 1_795_235_427_055,
  lifetimes: { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 },
  nonce: '0a9d065f59421fab31a2f57be7591e18',
  counter: 28_643,
  siteTag: '0123456789',
  address: `${'\0'.repeat(10)}\xff\xff\x7f\0\0\x01`,
  score: 0.85,
  storeEpoch: 0xfeedf00d,
}

const wholeSeconds = fc.nat(4095).map(seconds => seconds * 1000)

const allClaims = fc.record({
  issuedAtMs: fc.integer({ min: 1_000_000_000_000, max: 9_999_999_999_999 }),
  lifetimes: fc.record({ challengeLifetimeMs: wholeSeconds, tokenLifetimeMs: wholeSeconds }),
  nonce: nonces,
  counter: counters,
  siteTag: fc
    .uint8Array({ minLength: 10, maxLength: 10 })
    .map(bytes => Buffer.from(bytes).toString('latin1')),
  address: addresses,
  score: fc.integer({ min: 0, max: 1000 }).map(score => score / 1000),
  storeEpoch: fc.nat(0xffffffff),
})

test('property: a token reads back what was minted, in the form of contract §2.3', () => {
  fc.assert(
    fc.property(allClaims, someClaims => {
      const token = mintToken(keyring, someClaims)
      const segments = token.split('|')
      assert.equal(segments.length, 5)
      assert.deepEqual(segments.slice(0, 3), [
        String(someClaims.issuedAtMs),
        someClaims.nonce,
        String(someClaims.counter),
      ])
      assert.deepEqual(readToken(keyring, token), {
        status: 'genuine',
        claims: { ...someClaims, lifetimes: { ...someClaims.lifetimes } },
      })
    }),
    seeded(3000),
  )
})

test('every character changed to every other of its alphabet: refused', () => {
  const token = mintToken(keyring, claims)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_|+/'
  for (let index = 0; index < token.length; index++) {
    for (const character of alphabet) {
      if (character === token[index]) continue
      const changed = token.slice(0, index) + character + token.slice(index + 1)
      assert.notEqual(readToken(keyring, changed).status, 'genuine', `${index} ${character}`)
    }
  }
})

test('every truncation and extension: malformed or forged', () => {
  const token = mintToken(keyring, claims)
  for (let length = 0; length < token.length; length++) {
    assert.notEqual(readToken(keyring, token.slice(0, length)).status, 'genuine')
    assert.notEqual(readToken(keyring, token.slice(length + 1)).status, 'genuine')
  }
  for (const extra of ['A', '0', '+', '=', '|', ' ', '\n', '\0', '\ufeff']) {
    assert.notEqual(readToken(keyring, token + extra).status, 'genuine')
    assert.notEqual(readToken(keyring, extra + token).status, 'genuine')
  }
})

test('other spellings of the counter: malformed or forged', () => {
  const token = mintToken(keyring, claims)
  for (const counter of [' 28643', '', ...words('028643 +28643 28643.0 28643e0 2.8643e4 -28643 -0')]) {
    assert.notEqual(readToken(keyring, token.replace('|28643|', `|${counter}|`)).status, 'genuine', counter)
  }
})

test('the layout of another version, signed by the same key: malformed', () => {
  const [issuedAtMs, nonce, counter, claimsText] = mintToken(keyring, claims).split('|')
  const sealed = Buffer.from(claimsText!, 'base64url')
  sealed[0]! ^= 0x10
  const text = `${issuedAtMs}|${nonce}|${counter}|${sealed.toString('base64url')}|`
  const { tokenMac } = keyring.signing
  tokenMac.message.write(text, 'latin1')
  assert.equal(readToken(keyring, text + tokenMac.sign(text.length, 'base64url')).status, 'malformed')
})

test('another secret does not verify; a rotated keyring does', () => {
  const token = mintToken(keyring, claims)
  const other = 'second secret, long enough to be accepted'
  assert.equal(readToken(new Keyring([other]), token).status, 'forged')
  assert.equal(readToken(new Keyring([other, SECRET]), token).status, 'genuine')
})

test('the claims are opaque: two scores differ in bytes that tell nothing, and neither shows', () => {
  const low = mintToken(keyring, { ...claims, score: 0.5 }).split('|')[3]!
  const high = mintToken(keyring, { ...claims, score: 1, issuedAtMs: claims.issuedAtMs + 1 }).split('|')[3]!
  const bytes = [low, high].map(text => Buffer.from(text, 'base64url').subarray(1))
  const differing = bytes[0]!.filter((byte, index) => byte !== bytes[1]![index]).length
  // Another millisecond is another key stream, so nearly all bytes differ, not just the score's.
  assert.ok(differing > 24, String(differing))
  for (const text of bytes) assert.ok(!text.includes(claims.siteTag))
})
