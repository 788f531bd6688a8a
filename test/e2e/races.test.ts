/** Single use under concurrency, over HTTP, with two workers, on each store; and tampering. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { compileSite } from '../../src/domain/site.ts'
import { mintToken, readToken } from '../../src/domain/token.ts'
import { defaultSettings } from '../../src/sites/sites.ts'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { STORE_KINDS, TEST_SECRET, TestService, type TestSite, UNLIMITED } from '../harness/service.ts'

const keyring = new Keyring([TEST_SECRET])

for (const kind of STORE_KINDS) {
  describe(`single use over HTTP: ${kind}`, () => {
    let service: TestService
    let client: Client
    let site: TestSite
    let token: string
    before(async () => {
      service = await TestService.start(kind, UNLIMITED)
      client = new Client(service.url)
      site = await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
      token = await client.token(site.siteKey, { from: '127.0.0.1' })
    })
    after(() => service.stop())

    /** Tokens as the service mints them, without solving each. */
    function mintTokens(count: number): string[] {
      const reading = readToken(keyring, token)
      assert.equal(reading.status, 'genuine')
      const { storeEpoch, lifetimes } = (reading as Extract<typeof reading, { status: 'genuine' }>).claims
      const siteTag = tagOf(site.siteKey)
      const issuedAtMs = Date.now()
      const high = Math.floor((issuedAtMs - Date.UTC(2024, 0, 1)) / 512)
      return Array.from({ length: count }, (_, index) =>
        mintToken(keyring, {
          issuedAtMs,
          lifetimes,
          nonce: high.toString(16).padStart(8, '0') + index.toString(16).padStart(24, '0'),
          counter: index,
          siteTag,
          address: parseAddress('127.0.0.1')!,
          score: 1,
          storeEpoch,
        }),
      )
    }

    test('500 tokens, each redeemed by 32 concurrent requests: exactly 500 successes', async () => {
      let successes = 0
      const tokens = mintTokens(500)
      for (let start = 0; start < tokens.length; start += 8) {
        const counts = await Promise.all(
          tokens.slice(start, start + 8).map(async one => {
            const answers = await Promise.all(
              Array.from({ length: 32 }, () => client.verifyToken(site.apiKey, { token: one })),
            )
            for (const { status, json } of answers) {
              assert.ok(
                status === 200 || (status === 400 && json.code === 'token-used'),
                `${status} ${json.code}`,
              )
            }
            return answers.filter(({ status }) => status === 200).length
          }),
        )
        assert.deepEqual(
          counts,
          counts.map(() => 1),
        )
        successes += counts.length
      }
      assert.equal(successes, 500)
    })

    test('one solution submitted by 32 concurrent requests: one token', async () => {
      for (let round = 0; round < 5; round++) {
        const from = freshAddress()
        const solution = await client.solved(site.siteKey, { from })
        const answers = await Promise.all(
          Array.from({ length: 32 }, () => client.verify(site.siteKey, solution, { from })),
        )
        assert.equal(answers.filter(({ json }) => json.passed === true).length, 1)
        assert.equal(
          answers.filter(({ status, json }) => status === 400 && json.code === 'nonce-used').length,
          31,
        )
      }
    })

    test('a token with any byte flipped, truncated or extended: 400, and the token still redeems', async () => {
      const [genuine] = mintTokens(501).slice(500)
      const bytes = Buffer.from(genuine!)
      const changed = [
        ...Array.from(bytes, (_, index) => {
          const flipped = Buffer.from(bytes)
          flipped[index]! ^= 1
          return flipped.toString('latin1')
        }),
        ...Array.from(bytes, (_, length) => genuine!.slice(0, length)),
        `${genuine}A`,
        `${genuine}|`,
        ` ${genuine}`,
      ]
      await inBatches(changed, 32, async one => {
        const { status, json } = await client.verifyToken(site.apiKey, { token: one })
        assert.equal(status, 400, one)
        assert.equal(json.success, false)
      })
      assert.equal((await client.verifyToken(site.apiKey, { token: genuine })).status, 200)
    })

    test('a nonce with any byte flipped, truncated or extended: 400 or 403, and the nonce is not spent', async () => {
      const from = freshAddress()
      const solution = await client.solved(site.siteKey, { from })
      const bytes = Buffer.from(solution.nonce, 'hex')
      const flipped = Array.from(bytes, (_, index) => {
        const copy = Buffer.from(bytes)
        copy[index]! ^= 1
        return { nonce: copy.toString('hex'), status: index < 11 ? 400 : 403 }
      })
      const resized = Array.from(solution.nonce, (_, length) => ({
        nonce: solution.nonce.slice(0, length),
        status: 400,
      }))
      await inBatches(
        [...flipped, ...resized, { nonce: `${solution.nonce}0`, status: 400 }],
        32,
        async ({ nonce, status }) => {
          const answer = await client.verify(site.siteKey, { ...solution, nonce }, { from })
          assert.equal(answer.status, status, nonce)
        },
      )
      assert.equal((await client.verify(site.siteKey, solution, { from })).json.passed, true)
    })
  })
}

function tagOf(siteKey: string): string {
  return compileSite({ ...defaultSettings(''), siteKey, createdAt: 0, updatedAt: 0 }).tag
}

async function inBatches<T>(
  items: readonly T[],
  size: number,
  action: (item: T) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < items.length; start += size) {
    await Promise.all(items.slice(start, start + size).map(action))
  }
}
