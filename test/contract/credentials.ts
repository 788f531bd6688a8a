/** Contract, section 5: who may call POST /verify-token. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyId } from '../../src/domain/site.ts'
import { createApiKey, revokeApiKey } from '../../src/sites/sites.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { assertNotRedeemed, assertRedeemed, neighbour, type Subject } from './support.ts'

interface WrongCredentials {
  readonly about: string
  /** From a good API key. */
  readonly header: (apiKey: string) => string | undefined
  readonly code: 'missing-credentials' | 'invalid-credentials'
}

const INVALID = { code: 'invalid-credentials' } as const

const WRONG: readonly WrongCredentials[] = [
  { about: 'missing', header: () => undefined, code: 'missing-credentials' },
  { about: 'empty', header: () => '', code: 'missing-credentials' },
  { about: 'the key without Bearer', header: key => key, ...INVALID },
  { about: 'Basic', header: key => `Basic ${Buffer.from(`${key}:`).toString('base64')}`, ...INVALID },
  { about: 'another scheme', header: key => `Token ${key}`, ...INVALID },
  { about: 'Bearer alone', header: () => 'Bearer', ...INVALID },
  { about: 'Bearer without a space', header: key => `Bearer${key}`, ...INVALID },
  { about: 'a word', header: () => 'Bearer secret', ...INVALID },
  { about: 'two keys', header: key => `Bearer ${key} ${key}`, ...INVALID },
  { about: 'a list of keys', header: key => `Bearer ${key},${key}`, ...INVALID },
  { about: 'a key cut off', header: key => `Bearer ${key.slice(0, -1)}`, ...INVALID },
  { about: 'a key and one character more', header: key => `Bearer ${key}A`, ...INVALID },
  { about: 'a key in quotes', header: key => `Bearer "${key}"`, ...INVALID },
  { about: 'an id that nobody has', header: key => `Bearer sk_00000000${key.slice(11)}`, ...INVALID },
  { about: 'a wrong secret', header: key => `Bearer ${key.slice(0, 12)}${'A'.repeat(43)}`, ...INVALID },
  {
    about: 'the last character of the secret wrong',
    header: key => `Bearer ${lastChanged(key)}`,
    ...INVALID,
  },
]

function lastChanged(key: string): string {
  return key.slice(0, -1) + neighbour(key.at(-1)!)
}

export function credentialTests(subject: Subject): void {
  for (const { about, header, code } of WRONG) {
    test(`§5 rule 3: a missing or invalid Authorization header gives 401: ${about}`, async () => {
      const { siteKey, apiKey } = subject.site
      const from = freshAddress()
      const token = await subject.client.token(siteKey, { from })
      assertUnauthorized(await redeem(header(apiKey), token), code)
      assertRedeemed(await subject.client.verifyToken(apiKey, { token }, { from }))
    })
  }

  test('§5 rule 4: the public site key is no credential', async () => {
    const { siteKey } = subject.site
    const token = await subject.client.token(siteKey, { from: freshAddress() })
    assertUnauthorized(await redeem(`Bearer ${siteKey}`, token), 'invalid-credentials')
    const url = `${subject.url}/verify-token`
    const headers = { 'X-Site-Key': siteKey, 'Content-Type': 'application/json' }
    const answer = await call(url, { method: 'POST', headers, body: JSON.stringify({ token }) })
    assertUnauthorized(answer, 'missing-credentials')
  })

  for (const scheme of ['bearer', 'BEARER']) {
    test(`§5 Bearer: the name of the scheme is case-insensitive (RFC 9110): ${scheme}`, async () => {
      const { siteKey, apiKey } = subject.site
      const token = await subject.client.token(siteKey, { from: freshAddress() })
      assertRedeemed(await redeem(`${scheme} ${apiKey}`, token))
    })
  }

  test('§5, decided: a site has several API keys, each of them revocable while the others go on', async () => {
    const site = await subject.createSite()
    const store = await subject.service.openSites()
    try {
      const second = await createApiKey(store, site.siteKey)
      for (const apiKey of [site.apiKey, second.apiKey]) {
        const token = await subject.client.token(site.siteKey, { from: freshAddress() })
        assertRedeemed(await redeem(`Bearer ${apiKey}`, token))
      }
      await revokeApiKey(store, apiKeyId(site.apiKey)!)
      await eventually(10_000, 'both workers refuse the revoked key', async () => {
        const tries = Array.from({ length: 10 }, () => redeem(`Bearer ${site.apiKey}`, 'none'))
        return (await Promise.all(tries)).every(answer => answer.status === 401)
      })
      const token = await subject.client.token(site.siteKey, { from: freshAddress() })
      assertUnauthorized(await redeem(`Bearer ${site.apiKey}`, token), 'invalid-credentials')
      assertRedeemed(await redeem(`Bearer ${second.apiKey}`, token))
    } finally {
      await store.close()
    }
  })

  test('§5 rule 3: a key that was revoked before its first use gives 401', async () => {
    const site = await subject.createSite()
    const store = await subject.service.openSites()
    await revokeApiKey(store, apiKeyId(site.apiKey)!).finally(() => store.close())
    assertUnauthorized(await redeem(`Bearer ${site.apiKey}`, 'none'), 'invalid-credentials')
  })

  test('§7 /verify-token: the API key of an inactive site gives 401', async () => {
    const site = await subject.createSite({ active: false })
    assertUnauthorized(await redeem(`Bearer ${site.apiKey}`, 'none'), 'invalid-credentials')
  })

  test('§4.3, decided: credentials come before the body', async () => {
    const headers = { 'Content-Type': 'text/plain', Authorization: 'Bearer x' }
    const url = `${subject.url}/verify-token`
    const answer = await call(url, { method: 'POST', headers, body: 'not JSON', from: freshAddress() })
    assertUnauthorized(answer, 'invalid-credentials')
  })

  function redeem(authorization: string | undefined, token: string): Promise<Answer> {
    const headers = {
      'Content-Type': 'application/json',
      ...(authorization === undefined ? {} : { Authorization: authorization }),
    }
    const url = `${subject.url}/verify-token`
    return call(url, { method: 'POST', headers, body: JSON.stringify({ token }), from: freshAddress() })
  }
}

function assertUnauthorized(answer: Answer, code: string): void {
  assertNotRedeemed(answer, 401, code)
  assert.match(String(answer.headers['www-authenticate']), /^Bearer\b/)
}
