/** Contract, sections 2.4, 3 and 4.3: POST /verify-token. Credentials are in credentials.test.ts, tokens in token.test.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintToken, readToken } from '../../src/domain/token.ts'
import { createApiKey } from '../../src/sites/sites.ts'
import { freshAddress } from '../harness/http.ts'
import { TEST_SECRET, type TestSite } from '../harness/service.ts'
import { words } from '../harness/words.ts'
import { assertNotRedeemed, assertRedeemed, type Subject } from './support.ts'

/** JSON text of a wrong value; undefined leaves the field out. */
const WRONG: Readonly<Record<string, readonly (string | undefined)[]>> = {
  token: [undefined, 'null', '5', 'true', '[]', '{}', '""', `"${'1'.repeat(1025)}"`],
  expectedIp: [
    '" 127.0.0.1"',
    ...words(
      'null 5 [] "" "localhost" "127.0.0" "127.0.0.256" "127.0.0.1/8" "127.0.0.1:80" "[::1]"',
      '"fe80::1%eth0" "2130706433"',
    ),
  ],
  idempotencyKey: ['null', '5', '[]', '""', `"${'k'.repeat(65)}"`],
}

/** Other spellings of an IPv4 address. */
const SPELLINGS: readonly ((ip: string) => string)[] = [
  ip => ip,
  ip => `::ffff:${ip}`,
  ip => `::FFFF:${ip}`,
  ip => `0:0:0:0:0:ffff:${ip}`,
  ip => `::ffff:${hexGroups(ip)}`,
]

function hexGroups(ip: string): string {
  const [a, b, c, d] = ip.split('.').map(Number) as [number, number, number, number]
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

function withField(token: string, field: string, json: string | undefined): string {
  const members = field === 'token' ? [] : [`"token":${JSON.stringify(token)}`]
  if (json !== undefined) members.push(`"${field}":${json}`)
  return `{${members.join(',')}}`
}

export function verifyTokenTests(subject: Subject): void {
  const redeem = (body: unknown, { apiKey }: TestSite = subject.site, from = freshAddress()) =>
    subject.client.verifyToken(apiKey, body, { from })

  const freshToken = (from = freshAddress()) => subject.client.token(subject.site.siteKey, { from })

  test('§2.4 on success: success true, score, ip and solvedAt, and no other field', async () => {
    const from = freshAddress()
    const token = await freshToken(from)
    const answer = await redeem({ token })
    assertRedeemed(answer)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
    assert.deepEqual(Object.keys(answer.json).sort(), ['ip', 'score', 'solvedAt', 'success'])
    assert.ok(answer.json.score >= 0 && answer.json.score <= 1)
    assert.equal(answer.json.ip, from)
    assert.equal(answer.json.solvedAt, Number(token.split('|')[0]))
  })

  test('§3 fact 3: a token is single-use: a second validation fails with 400 "Token already used"', async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token }))
    for (let attempt = 0; attempt < 3; attempt++) {
      const answer = await redeem({ token })
      assertNotRedeemed(answer, 400, 'token-used')
      assert.equal(answer.json.error, 'Token already used')
    }
  })

  test('§4.3 rule 1: of 20 validations at once, over two workers, one succeeds', async () => {
    const token = await freshToken()
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem({ token })))
    assert.equal(answers.filter(answer => answer.status === 200).length, 1)
    for (const answer of answers) if (answer.status !== 200) assertNotRedeemed(answer, 400, 'token-used')
  })

  test('§3 fact 4: a token is valid only for its site: 400 "site mismatch"; decided: it is not spent', async () => {
    const other = await subject.createSite()
    const token = await freshToken()
    const answer = await redeem({ token }, other)
    assertNotRedeemed(answer, 400, 'site-mismatch')
    assert.match(answer.json.error, /site mismatch/i)
    assertRedeemed(await redeem({ token }))
  })

  test('§4.3 rule 2: expectedIp is matched against the IP that solved the challenge, however it is spelled', async () => {
    for (const spell of SPELLINGS) {
      const from = freshAddress()
      const token = await freshToken(from)
      const answer = await redeem({ token, expectedIp: spell(from) })
      assertRedeemed(answer)
      assert.equal(answer.json.ip, from)
    }
  })

  test('§4.3 rule 2, decided: a mismatch is 400 and does not spend the token', async () => {
    const from = freshAddress()
    const token = await freshToken(from)
    for (const expectedIp of ['192.0.2.1', '::1', `::${from}`, freshAddress()]) {
      assertNotRedeemed(await redeem({ token, expectedIp }), 400, 'ip-mismatch')
    }
    assertRedeemed(await redeem({ token, expectedIp: from }))
  })

  test("§4.3 rule 2: without expectedIp the caller's own address does not matter", async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token }, subject.site, freshAddress()))
  })

  for (const [field, values] of Object.entries(WRONG)) {
    test(`§4.3 ${field} of a wrong form gives 400, names the field and does not spend the token`, async t => {
      const token = await freshToken()
      for (const json of values) {
        await t.test(json === undefined ? 'missing' : json.slice(0, 40), async () => {
          const answer = await redeem(withField(token, field, json))
          assertNotRedeemed(answer, 400, 'invalid-body')
          assert.ok(answer.json.error.includes(field), answer.text)
        })
      }
      assertRedeemed(await redeem({ token }))
    })
  }

  test('§4.3, decided: unknown fields are ignored', async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token, success: false, siteKey: 5, extra: { deep: [1] } }))
  })

  test('§4.3, decided: a retry with the same idempotencyKey gets the first answer again', async () => {
    const token = await freshToken()
    const body = { token, idempotencyKey: 'order 17' }
    const first = await redeem(body)
    assertRedeemed(first)
    for (let attempt = 0; attempt < 3; attempt++) {
      const again = await redeem(body)
      assertRedeemed(again)
      assert.equal(again.text, first.text)
    }
  })

  test('§4.3, decided: with another idempotencyKey or none the token is used', async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token, idempotencyKey: 'one' }))
    assertNotRedeemed(await redeem({ token, idempotencyKey: 'two' }), 400, 'token-used')
    assertNotRedeemed(await redeem({ token }), 400, 'token-used')
    assertRedeemed(await redeem({ token, idempotencyKey: 'one' }))
  })

  test('§4.3, decided: an idempotencyKey does not open a token that was redeemed without', async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token }))
    assertNotRedeemed(await redeem({ token, idempotencyKey: 'late' }), 400, 'token-used')
  })

  test('§4.3, decided: idempotencyKeys that only a lone surrogate tells apart are not the same key', async () => {
    const token = await freshToken()
    // As text: JSON spells them, UTF-8 cannot.
    const withKey = (key: string) => `{"token":"${token}","idempotencyKey":"${key}"}`
    const first = await redeem(withKey('\\ud800'))
    if (first.status === 400) assertNotRedeemed(first, 400, 'invalid-body')
    else assertNotRedeemed(await redeem(withKey('\\udfff')), 400, 'token-used')
  })

  test('§4.3, decided: the same idempotencyKey with another API key of the site does not', async () => {
    const store = await subject.service.openSites()
    const { apiKey } = await createApiKey(store, subject.site.siteKey).finally(() => store.close())
    const token = await freshToken()
    const body = { token, idempotencyKey: 'shared' }
    assertRedeemed(await redeem(body))
    assertNotRedeemed(await redeem(body, { ...subject.site, apiKey }), 400, 'token-used')
    assertRedeemed(await redeem({ token: await freshToken() }, { ...subject.site, apiKey }))
  })

  test('§4.3, decided: an idempotencyKey counts for the token as it is, not for another one of its nonce', async () => {
    const keyring = new Keyring([TEST_SECRET])
    const token = await freshToken()
    const reading = readToken(keyring, token)
    assert(reading.status === 'genuine')
    const other = mintToken(keyring, { ...reading.claims, score: 0.9 })
    assertRedeemed(await redeem({ token, idempotencyKey: 'constant' }))
    assertNotRedeemed(await redeem({ token: other, idempotencyKey: 'constant' }), 400, 'token-used')
    assertRedeemed(await redeem({ token, idempotencyKey: 'constant' }))
  })

  test('§4.3, decided: one idempotencyKey may be used for many tokens', async () => {
    const idempotencyKey = 'k'.repeat(64)
    for (let count = 0; count < 2; count++) {
      const from = freshAddress()
      const answer = await redeem({ token: await freshToken(from), idempotencyKey })
      assertRedeemed(answer)
      assert.equal(answer.json.ip, from)
    }
  })

  test('§4.3, decided: 10 retries with one idempotencyKey at once all get the same answer', async () => {
    const body = { token: await freshToken(), idempotencyKey: 'at once' }
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(body)))
    for (const answer of answers) assertRedeemed(answer)
    assert.equal(new Set(answers.map(answer => answer.text)).size, 1)
  })

  test('§4.3, decided: an idempotencyKey excuses no mismatch of expectedIp', async () => {
    const from = freshAddress()
    const body = { token: await freshToken(from), idempotencyKey: 'again' }
    assertRedeemed(await redeem({ ...body, expectedIp: from }))
    assertNotRedeemed(await redeem({ ...body, expectedIp: '192.0.2.1' }), 400, 'ip-mismatch')
  })
}
