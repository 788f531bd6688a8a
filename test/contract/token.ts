/** Contract, sections 2.3 and 3: the form of a token, that it is opaque and cannot be forged, and how long it lives. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintToken } from '../../src/domain/token.ts'
import { freshAddress } from '../harness/http.ts'
import {
  assertNotRedeemed,
  assertPassed,
  assertRedeemed,
  claimsOf,
  keyring,
  neighbour,
  type Subject,
} from './support.ts'

type Segments = [issuedAtMs: string, nonce: string, counter: string, claims: string, hmac: string]

/** Of the claims: version, key id and lifetime, which `expiresAt` tells anyway. */
const CLEAR_BYTES = 4
const SEGMENT_NAMES = ['timestamp', 'nonce', 'counter', 'claims', 'hmac']

interface Forgery {
  readonly about: string
  /** From a good token's segments, and those of another good token of the same site and address. */
  readonly make: (segments: Segments, other: Segments) => string
}

const FORGERIES: readonly Forgery[] = [
  ...SEGMENT_NAMES.flatMap((name, segment) => [
    { about: `first character of the ${name}`, make: changed(segment, 0) },
    { about: `last character of the ${name}`, make: changed(segment, -1) },
  ]),
  { about: 'a later timestamp', make: ([time, ...rest]) => joined(String(Number(time) + 1), ...rest) },
  { about: 'claims of another token', make: ([a, b, c, , e], other) => joined(a, b, c, other[3], e) },
  { about: 'hmac of another token', make: ([a, b, c, d], other) => joined(a, b, c, d, other[4]) },
  { about: 'header of another token', make: ([, , , d, e], [a, b, c]) => joined(a, b, c, d, e) },
  { about: 'a counter with a leading zero', make: ([a, b, c, d, e]) => joined(a, b, `0${c}`, d, e) },
  { about: 'an upper-case nonce', make: ([a, b, c, d, e]) => joined(a, b.toUpperCase(), c, d, e) },
  { about: 'no hmac', make: ([a, b, c, d]) => joined(a, b, c, d) },
  { about: 'an empty hmac', make: ([a, b, c, d]) => joined(a, b, c, d, '') },
  { about: 'empty claims', make: ([a, b, c, , e]) => joined(a, b, c, '', e) },
  { about: 'a sixth segment', make: segments => joined(...segments, 'x') },
  { about: 'base64 padding', make: segments => `${joined(...segments)}=` },
  { about: 'a line feed at the end', make: segments => `${joined(...segments)}\n` },
  { about: 'a space in front', make: segments => ` ${joined(...segments)}` },
  { about: 'another separator', make: segments => segments.join('.') },
  { about: 'five empty segments', make: () => '||||' },
  { about: 'a word', make: () => 'token' },
]

function joined(...segments: string[]): string {
  return segments.join('|')
}

function changed(segment: number, at: number): Forgery['make'] {
  return segments => {
    const text = segments[segment]!
    const index = at < 0 ? text.length + at : at
    const next = text.slice(0, index) + neighbour(text[index]!) + text.slice(index + 1)
    return joined(...segments.map((old, position) => (position === segment ? next : old)))
  }
}

export function tokenTests(subject: Subject): void {
  test('§2.3 token: <unix_ms_timestamp>|<segment>|<counter>|<segment>|<hmac>', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const before = Date.now()
    const { json } = await subject.client.verify(siteKey, solution, { from })
    const after = Date.now()
    const segments = json.token.split('|')
    assert.equal(segments.length, 5)
    const [timestamp, second, counter, fourth, hmac] = segments
    assert.match(timestamp, /^\d{13}$/)
    assert.ok(Number(timestamp) >= before && Number(timestamp) <= after)
    assert.equal(second, solution.nonce)
    assert.equal(counter, String(solution.counter))
    for (const segment of [fourth, hmac]) assert.match(segment, /^[\w-]+$/)
  })

  test('§2.3 expiresAt: the token lives 5 minutes from its issue', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const { json } = await subject.client.verify(subject.site.siteKey, solution, { from })
    assert.equal(json.expiresAt, Number(json.token.split('|')[0]) + 300_000)
  })

  test('§2.3 token, decided: the claims are opaque but for the lifetime: no byte of score, site or address is in the clear', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    const claims: Buffer[] = []
    for (let count = 0; count < 8; count++) {
      const token = await subject.client.token(siteKey, { from })
      claims.push(Buffer.from(token.split('|')[3]!, 'base64url'))
    }
    // Same score, site and address each time: a byte of theirs in the clear would be the same in all eight.
    for (let index = CLEAR_BYTES; index < claims[0]!.length; index++) {
      const values = new Set(claims.map(bytes => bytes[index]))
      assert.ok(values.size > 1, `byte ${index} is always ${[...values]}`)
    }
    const address = Buffer.from(parseAddress(from)!, 'latin1').subarray(12)
    for (const bytes of claims) assert.ok(!bytes.includes(address))
  })

  test('§7 /verify-token 400, invalid token: whatever is changed in a token, it is refused', async t => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    const token = await subject.client.token(siteKey, { from })
    const other = await subject.client.token(siteKey, { from })
    for (const { about, make } of FORGERIES) {
      await t.test(about, async () => {
        const forged = make(token.split('|') as Segments, other.split('|') as Segments)
        assert.notEqual(forged, token)
        const answer = await subject.client.verifyToken(apiKey, { token: forged }, { from })
        assertNotRedeemed(answer, 400, 'invalid-token')
      })
    }
    for (const good of [token, other]) {
      assertRedeemed(await subject.client.verifyToken(apiKey, { token: good }, { from }))
    }
  })

  test('§7 /verify-token 400, invalid token: one that another secret signed', async () => {
    const { siteKey, apiKey } = subject.site
    const from = freshAddress()
    const token = await subject.client.token(siteKey, { from })
    // With the same key id, so that the id is not what tells.
    const stranger = Array.from(
      { length: 200 },
      (_, n) => new Keyring([`a secret of somebody else, ${n}`]),
    ).find(candidate => candidate.signing.kid === keyring.signing.kid)
    assert.ok(stranger)
    const forged = mintToken(stranger, claimsOf(token))
    const answer = await subject.client.verifyToken(apiKey, { token: forged }, { from })
    assertNotRedeemed(answer, 400, 'invalid-token')
    assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }))
  })

  test('§3 fact 2: a token lives 5 minutes from issue', async () => {
    const aged = await agedToken(subject, 295_000)
    assertRedeemed(await subject.client.verifyToken(subject.site.apiKey, { token: aged }))
    const expired = await agedToken(subject, 300_000)
    const answer = await subject.client.verifyToken(subject.site.apiKey, { token: expired })
    assertNotRedeemed(answer, 400, 'token-expired')
    assert.match(answer.json.error, /expired/i)
  })

  test('§3, decided: a token issued up to 5 s ahead is tolerated, a later one is not', async () => {
    const { apiKey } = subject.site
    assertRedeemed(await subject.client.verifyToken(apiKey, { token: await agedToken(subject, -4000) }))
    const future = await agedToken(subject, -60_000)
    assertNotRedeemed(await subject.client.verifyToken(apiKey, { token: future }), 400, 'invalid-token')
  })

  test('§3 fact 3, decided: of two tokens for one nonce only one is redeemed', async () => {
    const { siteKey, apiKey } = subject.site
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const answer = await subject.client.verify(siteKey, solution, { from })
    assertPassed(answer)
    const { token } = answer.json
    const claims = claimsOf(token)
    const twin = mintToken(keyring, { ...claims, issuedAtMs: claims.issuedAtMs - 1 })
    assert.notEqual(twin, token)
    assertRedeemed(await subject.client.verifyToken(apiKey, { token: twin }, { from }))
    assertNotRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }), 400, 'token-used')
  })

  test('§3 fact 3, decided: a token of a store that has since lost its memory is refused', async () => {
    const { siteKey, apiKey } = subject.site
    const from = freshAddress()
    const claims = claimsOf(await subject.client.token(siteKey, { from }))
    const token = mintToken(keyring, { ...claims, storeEpoch: (claims.storeEpoch + 1) % 2 ** 32 })
    assertNotRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }), 400, 'invalid-token')
  })
}

/** A token that was issued `ageMs` ago and is genuine in every other way. */
async function agedToken(subject: Subject, ageMs: number): Promise<string> {
  const claims = claimsOf(await subject.client.token(subject.site.siteKey, { from: freshAddress() }))
  return mintToken(keyring, { ...claims, issuedAtMs: Date.now() - ageMs })
}
