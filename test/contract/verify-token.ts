/** The contract (docs/reference/contract.md), §2.4, §3, §4.3 and §5: POST /verify-token and its credentials. Tokens are in token.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyId } from '../../src/domain/site.ts'
import { mintToken } from '../../src/domain/token.ts'
import { createApiKey, updateApiKey } from '../../src/sites/sites.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { words } from '../harness/values.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertRedeemed,
  assertSiteverified,
  assertUnauthorized,
} from './answers.ts'
import { withField } from './bodies.ts'
import { claimsOf, keyring, neighbour, type Subject, withWrongSecret } from './support.ts'

/** JSON text of a wrong value; undefined leaves the field out. */
const WRONG: Readonly<Record<string, readonly (string | undefined)[]>> = {
  token: [undefined, 'null', '5', 'true', '[]', '{}', '""', `"${'1'.repeat(1025)}"`],
  expectedIp: [
    '" 127.0.0.1"',
    ...words(
      '5 [] "" "localhost" "127.0.0" "127.0.0.256" "127.0.0.1/8" "127.0.0.1:x" "[::1" "[::1]:123456"',
      '"fe80::1%" "2130706433"',
    ),
  ],
  idempotencyKey: ['5', '[]', '""', `"${'k'.repeat(65)}"`],
}

const SPELLINGS: readonly ((ip: string) => string)[] = [
  ip => ip,
  ip => `::ffff:${ip}`,
  ip => `::FFFF:${ip}`,
  ip => `0:0:0:0:0:ffff:${ip}`,
  ip => `::ffff:${hexGroups(ip)}`,
  ip => `${ip}:49152`,
  ip => `[::ffff:${ip}]:49152`,
  ip => `::ffff:${ip}%eth0`,
  ip => `"${ip}"`,
]

function hexGroups(ip: string): string {
  const [a, b, c, d] = ip.split('.').map(Number) as [number, number, number, number]
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

export function verifyTokenTests(subject: Subject): void {
  const redeem = (body: unknown) => subject.redeem(body)
  const freshToken = () => subject.visitor().token()

  test('§2.4 on success: success true, score, ip and solvedAt, and no other field', async () => {
    const visitor = subject.visitor()
    const token = await visitor.token()
    const answer = await redeem({ token })
    assertRedeemed(answer)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
    const { success: _, score, ...rest } = answer.json
    assert.ok(score >= 0 && score <= 1)
    assert.deepEqual(rest, { ip: visitor.from, solvedAt: Number(token.split('|')[0]) })
  })

  test('§3 rule 3: a token is single-use: a second validation fails with 400 "Token already used"', async () => {
    const token = await freshToken()
    assertRedeemed(await redeem({ token }))
    for (let attempt = 0; attempt < 3; attempt++) {
      const answer = await redeem({ token })
      assertNotRedeemed(answer, 400, 'token-used')
      assert.equal(answer.json.error, 'Token already used')
    }
  })

  test('§3 rule 4: a token is valid only for its site: 400 "site mismatch"; decided: it is not spent', async () => {
    const other = await subject.createSite()
    const token = await freshToken()
    const answer = await subject.redeem({ token }, other.apiKey)
    assertNotRedeemed(answer, 400, 'site-mismatch')
    assert.match(answer.json.error, /site mismatch/i)
    assertRedeemed(await redeem({ token }))
  })

  test('§4.3 rule 2: expectedIp is matched against the IP that solved the challenge, however it is spelled', async () => {
    for (const spell of SPELLINGS) {
      const visitor = subject.visitor()
      const answer = await redeem({ token: await visitor.token(), expectedIp: spell(visitor.from) })
      assertRedeemed(answer)
      assert.equal(answer.json.ip, visitor.from)
    }
  })

  test('§4.3 rule 2, decided: a mismatch of expectedIp or remoteip is 400 and does not spend the token; the two addresses of localhost are one', async () => {
    const { siteKey, apiKey } = subject.site
    const token = await subject.client.token(siteKey, { from: '127.0.0.1' })
    for (const other of ['127.0.0.2', '192.0.2.1', '::2', '::', '::127.0.0.1']) {
      assertNotRedeemed(await redeem({ token, expectedIp: other }), 400, 'ip-mismatch')
      const asked = { secret: apiKey, response: token, remoteip: other }
      assertNotSiteverified(await subject.client.siteverify(asked), 'remoteip-mismatch')
    }
    const both = { secret: apiKey, response: token, remoteip: '::1', idempotency_key: 'k' }
    assertSiteverified(await subject.client.siteverify(both))
    assertRedeemed(await redeem({ token, expectedIp: '::1', idempotencyKey: 'k' }))
  })

  test('§4.3 an empty token gives 400, and the error says how forms come without one', async () => {
    const answer = await redeem({ token: '' })
    assertNotRedeemed(answer, 400, 'invalid-body')
    assert.match(answer.json.error, /^token is empty: the form was sent without JavaScript, or before /)
  })

  for (const [field, values] of Object.entries(WRONG)) {
    test(`§4.3 ${field} of a wrong form gives 400, names the field and does not spend the token`, async t => {
      const token = await freshToken()
      for (const json of values) {
        await t.test(json === undefined ? 'missing' : json.slice(0, 40), async () => {
          const answer = await redeem(withField({ token }, field, json))
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

  test('§4.3, decided: retries with the same idempotencyKey, also at once, get the first answer again; with another or none the token is used, and a mismatch of expectedIp is one', async () => {
    const body = { token: await freshToken(), idempotencyKey: 'order 17' }
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(body)))
    for (const more of [{ idempotencyKey: 'order 18' }, { idempotencyKey: undefined }]) {
      assertNotRedeemed(await redeem({ ...body, ...more }), 400, 'token-used')
      answers.push(await redeem(body))
    }
    for (const answer of answers) assertRedeemed(answer)
    assert.equal(new Set(answers.map(answer => answer.text)).size, 1)
    assertNotRedeemed(await redeem({ ...body, expectedIp: '192.0.2.1' }), 400, 'ip-mismatch')
    const ofAnother = await redeem({ ...body, token: await freshToken() })
    assertRedeemed(ofAnother)
    assert.notEqual(ofAnother.json.ip, answers[0]!.json.ip, 'one key may be used for many tokens')
    const other = { token: await freshToken() }
    assertRedeemed(await redeem(other))
    assertNotRedeemed(await redeem({ ...other, idempotencyKey: 'late' }), 400, 'token-used')
  })

  test('§4.3, decided: idempotencyKeys that only a lone surrogate tells apart are not the same key', async () => {
    const token = await freshToken()
    // JSON can spell lone surrogates, UTF-8 cannot, so the body is a text.
    const withKey = (key: string) => `{"token":"${token}","idempotencyKey":"${key}"}`
    assertRedeemed(await redeem(withKey('\\ud800')))
    assertNotRedeemed(await redeem(withKey('\\udfff')), 400, 'token-used')
  })

  test('§4.3, decided: the same idempotencyKey with another API key of the site is no retry: the token is used', async () => {
    const { apiKey } = await subject.withSites(store => createApiKey(store, subject.site.siteKey))
    const body = { token: await freshToken(), idempotencyKey: 'shared' }
    assertRedeemed(await redeem(body))
    assertNotRedeemed(await subject.redeem(body, apiKey), 400, 'token-used')
    assertRedeemed(await subject.redeem({ token: await freshToken() }, apiKey))
  })

  test('§4.3, decided: another token for the same nonce with the same idempotencyKey is no retry: it is used', async () => {
    const token = await freshToken()
    const twin = mintToken(keyring, { ...claimsOf(token), score: 0.9 })
    assertRedeemed(await redeem({ token, idempotencyKey: 'constant' }))
    assertNotRedeemed(await redeem({ token: twin, idempotencyKey: 'constant' }), 400, 'token-used')
    assertRedeemed(await redeem({ token, idempotencyKey: 'constant' }))
  })
}

/** API keys of a wrong form or of nobody, made from a good one. */
export const WRONG_KEYS: Readonly<Record<string, (key: string) => string>> = {
  'a word': () => 'secret',
  'cut off': key => key.slice(0, -1),
  'one character more': key => `${key}A`,
  'an id that nobody has': key => `sk_00000000${key.slice(11)}`,
  'a wrong secret': withWrongSecret,
  'the last character of the secret wrong': key => key.slice(0, -1) + neighbour(key.at(-1)!),
}

const WRONG_HEADERS: Record<string, (key: string) => string | undefined> = {
  missing: () => undefined,
  empty: () => '',
  'the key without Bearer': key => key,
  Basic: key => `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
  'another scheme': key => `Token ${key}`,
  'Bearer alone': () => 'Bearer',
  'Bearer without a space': key => `Bearer${key}`,
  'two keys': key => `Bearer ${key} ${key}`,
  'a list of keys': key => `Bearer ${key},${key}`,
  'a key in quotes': key => `Bearer "${key}"`,
}
for (const [about, make] of Object.entries(WRONG_KEYS)) WRONG_HEADERS[about] = key => `Bearer ${make(key)}`

export function credentialTests(subject: Subject): void {
  function redeem(authorization: string | undefined, token: string, more = {}): Promise<Answer> {
    const credentials = authorization === undefined ? {} : { Authorization: authorization }
    const headers = { 'Content-Type': 'application/json', ...credentials, ...more }
    const body = JSON.stringify({ token })
    return call(`${subject.url}/verify-token`, { method: 'POST', headers, body, from: freshAddress() })
  }

  for (const [about, header] of Object.entries(WRONG_HEADERS)) {
    test(`§5 rule 3: a missing or invalid Authorization header gives 401: ${about}`, async () => {
      const token = await subject.visitor().token()
      const sent = header(subject.site.apiKey)
      assertUnauthorized(await redeem(sent, token), sent ? 'invalid-credentials' : 'missing-credentials')
      assertRedeemed(await subject.redeem({ token }))
    })
  }

  test('§5 rule 4: the public site key is no credential', async () => {
    const { siteKey } = subject.site
    const token = await subject.visitor().token()
    assertUnauthorized(await redeem(`Bearer ${siteKey}`, token), 'invalid-credentials')
    assertUnauthorized(await redeem(undefined, token, { 'X-Site-Key': siteKey }), 'missing-credentials')
  })

  test('§5 Bearer: the name of the scheme is case-insensitive (RFC 9110)', async () => {
    for (const scheme of ['bearer', 'BEARER'])
      assertRedeemed(await redeem(`${scheme} ${subject.site.apiKey}`, await subject.visitor().token()))
  })

  test('§5 rule 3, §7: a key that was revoked before its first use, or of an inactive site, gives 401; to /siteverify it is none', async () => {
    const [revoked, inactive] = [await subject.createSite(), await subject.createSite({ active: false })]
    await subject.withSites(store =>
      updateApiKey(store, apiKeyId(revoked.apiKey)!, { revokedAt: Date.now() }),
    )
    for (const { apiKey } of [revoked, inactive]) {
      assertUnauthorized(await subject.redeem({ token: 'none' }, apiKey), 'invalid-credentials')
      const answer = await subject.client.siteverify({ secret: apiKey, response: 'none' })
      assertNotSiteverified(answer, 'invalid-input-secret')
    }
  })

  test('§4.3, decided: credentials come before the body', async () => {
    const headers = { 'Content-Type': 'text/plain' }
    const answer = await subject.client.verifyToken('x', 'not JSON', { headers, from: freshAddress() })
    assertUnauthorized(answer, 'invalid-credentials')
  })
}
