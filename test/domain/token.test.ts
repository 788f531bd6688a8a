/** Tokens: what they carry, what they say of the visitor's page (src/domain/page.ts), and what makes them malformed or forged. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Keyring } from '../../src/domain/keyring.ts'
import { OriginList } from '../../src/domain/origin.ts'
import { pageOf, pageText } from '../../src/domain/page.ts'
import { mintToken, readToken, statedNonce, type TokenClaims } from '../../src/domain/token.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { addresses, counters, nonces, seeded } from '../harness/arbitraries.ts'
import { liveHeapBytes } from '../harness/measure.ts'

const keyring = new Keyring(['first secret, long enough to be accepted'])

const claims: TokenClaims = {
  issuedAtMs: 1_795_235_427_055,
  lifetimes: { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 },
  nonce: '0a9d065f59421fab31a2f57be7591e18',
  counter: 28_643,
  siteTag: '0123456789',
  address: `${'\0'.repeat(10)}\xff\xff\x7f\0\0\x01`, // 127.0.0.1
  score: 0.85,
  storeEpoch: 0xfeedf00d,
}

/** Claims with the longest possible counter and page. */
const longest: TokenClaims = {
  ...claims,
  counter: Number.MAX_SAFE_INTEGER,
  page: { host: 'h'.repeat(253), action: 'a'.repeat(100), cdata: 'c'.repeat(255) },
}

const textUpTo = (maxLength: number) => fc.stringMatching(new RegExp(`^[a-z0-9/.-]{0,${maxLength}}$`))
const pages = fc
  .record(
    { host: textUpTo(253), action: textUpTo(100), cdata: textUpTo(255) },
    { requiredKeys: [], noNullPrototype: true },
  )
  .filter(some => Object.keys(some).length > 0)

const wholeSeconds = fc.nat(4095).map(seconds => seconds * 1000)

const claimsWithoutPage = fc.record({
  issuedAtMs: fc.integer({ min: 1_000_000_000_000, max: 9_999_999_999_999 }),
  lifetimes: fc.record({ challengeLifetimeMs: wholeSeconds, tokenLifetimeMs: wholeSeconds }),
  nonce: nonces,
  counter: counters,
  siteTag: fc.uint8Array({ minLength: 10, maxLength: 10 }).map(tag => Buffer.from(tag).toString('latin1')),
  address: addresses,
  score: fc.integer({ min: 0, max: 1000 }).map(score => score / 1000),
  storeEpoch: fc.nat(0xffffffff),
})
const allClaims: fc.Arbitrary<TokenClaims> = fc.oneof(
  claimsWithoutPage.map(some => ({ ...some, page: undefined })),
  fc.tuple(claimsWithoutPage, pages).map(([some, page]) => ({ ...some, page })),
)

test('a token without a page is what it was before tokens had pages, so hosts of either version redeem it', () => {
  const token =
    '1795235427055|0a9d065f59421fab31a2f57be7591e18|28643|OQeBLI5NRLWgoxK2Fj--tvvivWIawLcdWT0p36x4uJZVepvJ|JbOblM6Koe098L-LRWdbNNsOReluvY051xFsu5RATD8'
  assert.equal(mintToken(keyring, claims), token)
})

test('statedNonce: the nonce of a text in the form of a token, also of a forged one', () => {
  const forged = mintToken(new Keyring(['second secret, long enough to be accepted']), claims)
  assert.equal(readToken(keyring, forged).status, 'forged')
  assert.equal(statedNonce(forged), claims.nonce)
  assert.equal(statedNonce(forged.slice(1)), undefined, 'a time of 12 digits')
})

test('the longest token is one that /verify-token takes', () => {
  assert.equal(readToken(keyring, mintToken(keyring, longest)).status, 'genuine')
  assert.ok(mintToken(keyring, longest).length < 1024, 'the longest that /verify-token takes')
})

test('property: a token reads back what was minted, in the form of contract §2.3', () => {
  fc.assert(
    fc.property(allClaims, someClaims => {
      const token = mintToken(keyring, someClaims)
      const { issuedAtMs, nonce, counter } = someClaims
      assert.ok(token.startsWith(`${issuedAtMs}|${nonce}|${counter}|`))
      assert.equal(token.split('|').length, 5)
      const lifetimes = { ...someClaims.lifetimes } // fast-check's object has no prototype
      assert.deepEqual(readToken(keyring, token), { status: 'genuine', claims: { ...someClaims, lifetimes } })
    }),
    seeded(3000),
  )
})

test('a token tells the host of its page, unless the site allows one origin alone, or the host is longer than any real one', () => {
  const hostOf = (host: string, origins: OriginList) =>
    pageOf({} as Solution, `https://${host}`, origins)?.host
  const some = new OriginList(['https://shop.example', 'https://*.shop.example'])
  for (const host of ['www.shop.example', 'h'.repeat(253)]) assert.equal(hostOf(host, some), host)
  assert.equal(hostOf('h'.repeat(254), some), undefined)
  const onlyOne = new OriginList(['https://new.example'])
  assert.equal(hostOf('new.example', onlyOne), undefined)
  const [action, cdata] = ['login', 'basket-17']
  for (const given of [{ action }, { cdata }] as Partial<Solution>[]) {
    const all = { host: undefined, action: undefined, cdata: undefined, ...given }
    assert.deepEqual(pageOf(given as Solution, 'https://new.example', onlyOne), all)
  }
})

test('a worker does not remember the hosts of pages: 50,000 take less than 2 MiB', () => {
  const before = liveHeapBytes()
  for (let index = 0; index < 50_000; index++) pageText({ host: `h${index}.example` })
  const more = liveHeapBytes() - before
  assert.ok(more < 2 * 2 ** 20, `${more} bytes more`)
})

test('a token in which any one character is another is refused', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_|+/'
  for (const some of [claims, { ...claims, page: { host: 'a.example', action: '', cdata: '1' } }]) {
    const token = mintToken(keyring, some)
    for (let index = 0; index < token.length; index++)
      for (const character of alphabet.replace(token[index]!, '')) {
        const changed = token.slice(0, index) + character + token.slice(index + 1)
        assert.notEqual(readToken(keyring, changed).status, 'genuine', `${index} ${character}`)
      }
  }
})

test('a token that lacks a character or all from it on, or has one more, is malformed or forged', () => {
  const extras = ['A', '0', '+', '=', '|', ' ', '\n', '\0', '\ufeff']
  for (const token of [claims, longest].map(some => mintToken(keyring, some))) {
    const cut = Array.from(token, (_, length) => [
      token.slice(0, length),
      token.slice(0, length) + token.slice(length + 1),
    ])
    for (const text of [...cut, ...extras.map(extra => [token + extra, extra + token])].flat())
      assert.notEqual(readToken(keyring, text).status, 'genuine')
  }
  const tooLong = mintToken(keyring, longest).replace(/(?=\|[^|]*$)/, 'A') // at the end of the claims
  assert.equal(readToken(keyring, tooLong).status, 'malformed')
})

test('a token with any part of another one of the same site and address is forged', () => {
  const later = { ...claims, issuedAtMs: claims.issuedAtMs + 1, counter: 7 }
  const [one, other] = [claims, later].map(some => mintToken(keyring, some).split('|'))
  for (const [index, segment] of one!.entries())
    if (segment !== other![index]) {
      const mixed = one!.with(index, other![index]!).join('|')
      assert.equal(readToken(keyring, mixed).status, 'forged', `${index}`)
    }
})

test('a token that states another version, though signed by the same key, is malformed', () => {
  // A version is the upper half of the first sealed byte: 3 without a page, 4 with one.
  for (const [some, version] of [
    [claims, 2],
    [claims, 4],
    [longest, 3],
    [longest, 5],
  ] as const) {
    const [issuedAtMs, nonce, counter, sealedText] = mintToken(keyring, some).split('|')
    const sealed = Buffer.from(sealedText!, 'base64url')
    sealed[0] = (version << 4) | (sealed[0]! & 0x0f) // the lower half, a key id, stays
    const text = `${issuedAtMs}|${nonce}|${counter}|${sealed.toString('base64url')}|`
    const { tokenMac } = keyring.signing
    tokenMac.message.write(text, 'latin1')
    assert.equal(readToken(keyring, text + tokenMac.sign(text.length)).status, 'malformed')
  }
})
