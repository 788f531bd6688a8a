/**
 * The contract (docs/reference/contract.md), §2.3 and §3: the form of a token, that it is opaque and cannot be forged, and how long it
 * lives. "Decided" is what the contract leaves open and powgate has chosen.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/addresses/address.ts'
import { mintToken } from '../../src/domain/token.ts'
import { assertNotRedeemed, assertRedeemed } from './answers.ts'
import { claimsOf, keyring, type Subject } from './support.ts'

export function tokenTests(subject: Subject): void {
  test('§2.3 token: <unix_ms_timestamp>|<segment>|<counter>|<segment>|<hmac>; it lives 5 minutes from its issue', async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    const before = Date.now()
    const { json } = await visitor.verify(solution)
    const after = Date.now()
    const [timestamp, second, counter, ...rest] = json.token.split('|')
    assert.match(timestamp, /^\d{13}$/)
    assert.ok(Number(timestamp) >= before && Number(timestamp) <= after)
    assert.deepEqual([second, counter], [solution.nonce, String(solution.counter)])
    assert.equal(rest.length, 2)
    for (const segment of rest) assert.match(segment, /^[\w-]+$/)
    assert.equal(json.expiresAt, Number(timestamp) + 300_000)
  })

  test('§2.3 token, decided: the claims are opaque but for the lifetime: no byte of score, site or address is in the clear', async () => {
    const visitor = await subject.visitorOf()
    const claims: Buffer[] = []
    while (claims.length < 8) claims.push(Buffer.from((await visitor.token()).split('|')[3]!, 'base64url'))
    // Score, site and address are the same in all eight, so a byte of theirs in the clear would be too.
    // The first four are version, key id and lifetimes in the clear: `expiresAt` shows the lifetime anyway.
    for (let index = 4; index < claims[0]!.length; index++) {
      const values = new Set(claims.map(bytes => bytes[index]))
      assert.ok(values.size > 1, `byte ${index} is always ${[...values]}`)
    }
    const address = Buffer.from(parseAddress(visitor.from)!, 'latin1').subarray(12)
    for (const bytes of claims) assert.ok(!bytes.includes(address))
  })

  test('§3 rule 2: a token lives 5 minutes from issue', async () => {
    assertRedeemed(await subject.redeem({ token: await agedToken(subject, 270_000) }))
    const answer = await subject.redeem({ token: await agedToken(subject, 300_000) })
    assertNotRedeemed(answer, 400, 'token-expired')
    assert.match(answer.json.error, /expired/i)
  })

  // test/domain/token.test.ts has all forgeries, test/client/client.test.ts what is no token at all.
  test('§3, decided: a token issued up to 5 s ahead is tolerated; §7 a later one is an invalid token', async () => {
    assertRedeemed(await subject.redeem({ token: await agedToken(subject, -4000) }))
    const future = await subject.redeem({ token: await agedToken(subject, -60_000) })
    assertNotRedeemed(future, 400, 'invalid-token')
  })

  test('§3 rule 3, decided: of two tokens for one nonce only one is redeemed', async () => {
    const token = await subject.visitor().token()
    const claims = claimsOf(token)
    const twin = mintToken(keyring, { ...claims, issuedAtMs: claims.issuedAtMs - 1 })
    assert.notEqual(twin, token)
    assertRedeemed(await subject.redeem({ token: twin }))
    assertNotRedeemed(await subject.redeem({ token }), 400, 'token-used')
  })

  test('§3 rule 3, decided: a token of a store that has since lost its memory is refused', async () => {
    const claims = claimsOf(await subject.visitor().token())
    const token = mintToken(keyring, { ...claims, storeEpoch: (claims.storeEpoch + 1) % 2 ** 32 })
    assertNotRedeemed(await subject.redeem({ token }), 400, 'token-forgotten')
  })
}

async function agedToken(subject: Subject, ageMs: number): Promise<string> {
  const claims = claimsOf(await subject.visitor().token())
  return mintToken(keyring, { ...claims, issuedAtMs: Date.now() - ageMs })
}
