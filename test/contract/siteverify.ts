/** POST /siteverify: /verify-token for backends of the large hosted CAPTCHAs, with their field names. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyId } from '../../src/domain/site.ts'
import { createApiKey, revokeApiKey } from '../../src/sites/sites.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import type { TestSite } from '../harness/service.ts'
import { assertLimited, requestsUntilLimited } from './counting.ts'
import { HOSTILE } from './malformed.ts'
import { assertNotRedeemed, assertRedeemed, neighbour, type Subject, UNKNOWN_SITE_KEY } from './support.ts'

/** Every verdict is 200, as those services have it. */
export function assertSiteverified(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text)
  assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  assert.equal(answer.json?.success, true, answer.text)
  assert.deepEqual(answer.json['error-codes'], [])
}

export function assertNotSiteverified(answer: Answer, code: string, status = 200): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  assert.equal(answer.json?.success, false, answer.text)
  assert.deepEqual(answer.json['error-codes'], [code], answer.text)
  assert.deepEqual(Object.keys(answer.json).sort(), ['error-codes', 'messages', 'success'])
  assert.equal(answer.json.messages.length, 1)
  assert.match(
    answer.json.messages[0],
    /^[A-Z].*[.a-z]$|^(secret|response|remoteip|sitekey|idempotency_key) /,
  )
}

type Fields = Record<string, string>

const ENCODINGS = {
  urlencoded: (fields: Fields) => new URLSearchParams(fields),
  JSON: (fields: Fields) => fields,
  multipart: (fields: Fields) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    return form
  },
} as const

const URLENCODED = { 'Content-Type': 'application/x-www-form-urlencoded' }

/** Text of a form after a good one, of which nothing may be believed. */
const HOSTILE_FORMS: readonly { about: string; make: (good: string) => string | Buffer }[] = [
  { about: 'a stray percent sign', make: good => `${good}&extra=%` },
  { about: 'an escape that is not hexadecimal', make: good => `${good}&extra=%zz` },
  { about: 'an escaped byte that is not UTF-8', make: good => `${good}&extra=%ff` },
  {
    about: 'a raw byte that is not UTF-8',
    make: good => Buffer.concat([Buffer.from(`${good}&extra=`), Buffer.from([0xff])]),
  },
  { about: 'the secret twice', make: good => `${good}&${good.split('&')[0]}` },
  { about: 'the response twice, once escaped', make: good => `${good}&re%73ponse=other` },
  { about: 'remoteip twice, both empty', make: good => `${good}&remoteip=&remoteip=` },
  { about: 'an unknown field twice', make: good => `${good}&extra=1&extra=1` },
  {
    about: '33 fields',
    make: good => good + Array.from({ length: 31 }, (_, index) => `&f${index}=`).join(''),
  },
]

const WRONG_TYPES = [
  undefined,
  'text/plain',
  'application/jsonp',
  'multipart/mixed; boundary=b',
  'multipart/form-data',
]

export function siteverifyTests(subject: Subject): void {
  const ask = (fields: Fields | object, from = freshAddress()) => subject.client.siteverify(fields, { from })
  const freshToken = (site = subject.site, from = freshAddress()) =>
    subject.client.token(site.siteKey, { from })
  const redeem = (token: string, { apiKey }: TestSite = subject.site) =>
    subject.client.verifyToken(apiKey, { token }, { from: freshAddress() })

  for (const [encoding, encode] of Object.entries(ENCODINGS)) {
    test(`/siteverify ${encoding}: success, score, challenge_ts and no other field but error-codes`, async () => {
      const from = freshAddress()
      const token = await freshToken(subject.site, from)
      const fields = {
        secret: subject.site.apiKey,
        response: token,
        remoteip: from,
        sitekey: subject.site.siteKey,
      }
      const answer = await ask(encode(fields))
      assertSiteverified(answer)
      assert.deepEqual(Object.keys(answer.json).sort(), ['challenge_ts', 'error-codes', 'score', 'success'])
      assert.ok(answer.json.score > 0 && answer.json.score <= 1)
      assert.equal(answer.json.challenge_ts, new Date(Number(token.split('|')[0])).toISOString())
      assertNotSiteverified(await ask(encode(fields)), 'timeout-or-duplicate')
    })
  }

  test('/siteverify: a token redeemed at one endpoint is used at the other', async () => {
    const { apiKey: secret } = subject.site
    const [first, second] = [await freshToken(), await freshToken()]
    assertSiteverified(await ask({ secret, response: first }))
    assertNotRedeemed(await redeem(first), 400, 'token-used')
    assertRedeemed(await redeem(second))
    assertNotSiteverified(await ask({ secret, response: second }), 'timeout-or-duplicate')
  })

  test('/siteverify: of 20 redemptions at once at both endpoints, over two workers, one succeeds', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 === 0 ? ask({ secret, response }) : redeem(response),
      ),
    )
    assert.equal(answers.filter(answer => answer.json.success === true).length, 1)
  })

  test('/siteverify: a retry with the same idempotency_key gets the first answer again, at both endpoints', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    const fields = { secret, response, idempotency_key: 'order 17' }
    const first = await ask(new URLSearchParams(fields))
    assertSiteverified(first)
    for (let attempt = 0; attempt < 3; attempt++) assert.equal((await ask(fields)).text, first.text)
    const body = { token: response, idempotencyKey: 'order 17' }
    assertRedeemed(await subject.client.verifyToken(secret, body, { from: freshAddress() }))
    assertNotSiteverified(await ask({ ...fields, idempotency_key: 'order 18' }), 'timeout-or-duplicate')
    assertNotSiteverified(await ask({ secret, response }), 'timeout-or-duplicate')
  })

  test('/siteverify: another remoteip, site key or secret does not spend the token', async () => {
    const { siteKey, apiKey: secret } = subject.site
    const other = await subject.createSite()
    const from = freshAddress()
    const response = await freshToken(subject.site, from)
    const good = { secret, response }
    assertNotSiteverified(await ask({ ...good, remoteip: '192.0.2.1' }), 'remoteip-mismatch')
    for (const sitekey of [other.siteKey, UNKNOWN_SITE_KEY, 'site_short', siteKey.toLowerCase()])
      assertNotSiteverified(await ask({ ...good, sitekey }), 'sitekey-secret-mismatch')
    assertNotSiteverified(await ask({ secret: other.apiKey, response }), 'sitekey-secret-mismatch')
    assertSiteverified(await ask({ ...good, remoteip: `::ffff:${from}`, sitekey: siteKey }))
  })

  test('/siteverify: a field that is empty or null counts as left out', async () => {
    const { apiKey: secret } = subject.site
    const [first, second] = [await freshToken(), await freshToken()]
    const empty = { remoteip: '', sitekey: '', idempotency_key: '' }
    assertSiteverified(await ask(new URLSearchParams({ secret, response: first, ...empty })))
    const none = { remoteip: null, sitekey: null, idempotency_key: null }
    assertSiteverified(await ask({ secret, response: second, ...none }))
    for (const missing of ['', null, undefined]) {
      assertNotSiteverified(await ask({ secret: missing, response: first }), 'missing-input-secret')
      assertNotSiteverified(await ask({ secret, response: missing }), 'missing-input-response')
    }
  })

  test('/siteverify: unknown fields are ignored', async () => {
    const form = new URLSearchParams({ secret: subject.site.apiKey, response: await freshToken() })
    for (const [name, value] of Object.entries({
      action: 'login',
      cdata: '1',
      success: 'false',
      __proto__x: '',
    }))
      form.append(name, value)
    assertSiteverified(await ask(form))
  })

  secretTests(subject)
  responseTests(subject)
  bodyTests(subject)

  for (const [about, origins, hostname] of [
    ['its host', ['https://shop.example'], 'shop.example'],
    ['its host without the port', ['http://localhost:3000'], 'localhost'],
    ['none for two origins', ['https://shop.example', 'https://other.example'], undefined],
    ['none for a pattern', ['https://*.shop.example'], undefined],
  ] as const) {
    test(`/siteverify hostname of the site's one exact origin: ${about}`, async () => {
      const site = await subject.createSite({ origins: [...origins] })
      const answer = await ask({ secret: site.apiKey, response: await freshToken(site) })
      assertSiteverified(answer)
      assert.equal(answer.json.hostname, hostname)
      assert.equal('hostname' in answer.json, hostname !== undefined)
    })
  }

  test('/siteverify refuses what a page in a browser sends, and charges nobody for it', async () => {
    const { siteKey, apiKey } = await subject.createSite()
    const from = freshAddress()
    const fields = { secret: apiKey, response: await subject.client.token(siteKey, { from }) }
    const marks = [{ Origin: 'https://shop.example' }, { 'Sec-Fetch-Site': 'cross-site' }]
    for (let count = 0; count < 110; count++) {
      const answer = await subject.client.siteverify(fields, { from, headers: marks[count % 2]! })
      assert.equal(answer.status, 400, answer.text)
      assert.deepEqual(answer.json['error-codes'], ['bad-request'])
    }
    assertSiteverified(
      await subject.client.siteverify(fields, { from, headers: { 'Sec-Fetch-Site': 'none' } }),
    )
  })

  test('/siteverify has no CORS, and its preflight is a wrong method', async () => {
    const headers = { Origin: 'https://any.example', 'Access-Control-Request-Method': 'POST' }
    const answers = [
      await subject.client.siteverify({ secret: subject.site.apiKey, response: 'x' }, { headers }),
      await call(`${subject.service.url}/siteverify`, { method: 'OPTIONS', headers }),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [400, 405],
    )
    for (const answer of answers) {
      const names = Object.keys(answer.headers)
      assert.deepEqual(
        names.filter(name => name.startsWith('access-control-')),
        [],
      )
    }
  })

  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'OPTIONS', 'HEAD']) {
    test(`${method} /siteverify gives 405 with Allow`, async () => {
      const answer = await call(`${subject.service.url}/siteverify`, { method, from: freshAddress() })
      assert.equal(answer.status, 405)
      assert.equal(answer.headers.allow, 'POST')
      if (method === 'HEAD') assert.equal(answer.text, '')
      else assertNotSiteverified(answer, 'bad-request', 405)
    })
  }
}

function secretTests(subject: Subject): void {
  const wrong: readonly { about: string; make: (key: string) => unknown }[] = [
    { about: 'a word', make: () => 'secret' },
    { about: 'with Bearer', make: key => `Bearer ${key}` },
    { about: 'cut off', make: key => key.slice(0, -1) },
    { about: 'a character too long', make: key => `${key}A` },
    { about: 'an id that nobody has', make: key => `sk_00000000${key.slice(11)}` },
    { about: 'its last character wrong', make: key => key.slice(0, -1) + neighbour(key.at(-1)!) },
    { about: 'a number', make: () => 5 },
    { about: 'a list', make: key => [key] },
    { about: 'the site key', make: () => subject.site.siteKey },
  ]
  for (const { about, make } of wrong) {
    test(`/siteverify invalid-input-secret: ${about}; the token is not spent`, async () => {
      const { siteKey, apiKey } = subject.site
      const from = freshAddress()
      const response = await subject.client.token(siteKey, { from })
      assertNotSiteverified(
        await subject.client.siteverify({ secret: make(apiKey), response }, { from }),
        'invalid-input-secret',
      )
      assertSiteverified(await subject.client.siteverify({ secret: apiKey, response }, { from }))
    })
  }

  test('/siteverify invalid-input-secret: revoked, or of an inactive site', async () => {
    const [revoked, inactive] = [await subject.createSite(), await subject.createSite({ active: false })]
    const store = await subject.service.openSites()
    await revokeApiKey(store, apiKeyId(revoked.apiKey)!).finally(() => store.close())
    for (const { apiKey: secret } of [revoked, inactive]) {
      const answer = await subject.client.siteverify({ secret, response: 'x' }, { from: freshAddress() })
      assertNotSiteverified(answer, 'invalid-input-secret')
    }
  })

  test('/siteverify does not take the API key from the Authorization header', async () => {
    const headers = { Authorization: `Bearer ${subject.site.apiKey}` }
    const answer = await subject.client.siteverify({ response: 'x' }, { from: freshAddress(), headers })
    assertNotSiteverified(answer, 'missing-input-secret')
  })
}

function responseTests(subject: Subject): void {
  const tokens: readonly unknown[] = [
    'x',
    '1'.repeat(1024),
    '1'.repeat(1025),
    5,
    true,
    ['a'],
    {},
    ' ',
    'é|é|é|é|é',
  ]
  test('/siteverify invalid-input-response: no token of ours', async () => {
    const from = freshAddress()
    for (const response of tokens) {
      const answer = await subject.client.siteverify({ secret: subject.site.apiKey, response }, { from })
      assertNotSiteverified(answer, 'invalid-input-response')
    }
  })

  test('/siteverify: remoteip and idempotency_key of a wrong form; the token is not spent', async () => {
    const from = freshAddress()
    const good = {
      secret: subject.site.apiKey,
      response: await subject.client.token(subject.site.siteKey, { from }),
    }
    const ask = (more: object) => subject.client.siteverify({ ...good, ...more }, { from })
    for (const remoteip of [
      'localhost',
      '127.0.0.1:80',
      '[::1]',
      'fe80::1%eth0',
      ' 127.0.0.1',
      5,
      [],
      '1'.repeat(65),
    ])
      assertNotSiteverified(await ask({ remoteip }), 'invalid-remoteip')
    for (const idempotency_key of ['k'.repeat(65), 5, {}])
      assertNotSiteverified(await ask({ idempotency_key }), 'bad-request')
    assertSiteverified(await ask({ remoteip: from }))
  })
}

/** Objects without fields of ours: forms as good as any. */
const FIELDLESS = ['an empty object', 'objects as deep as fit']

function bodyTests(subject: Subject): void {
  const from = freshAddress()
  let token: string | undefined
  const goodFields = async () => ({
    secret: subject.site.apiKey,
    response: (token ??= await subject.client.token(subject.site.siteKey, { from })),
  })

  for (const { about, make } of HOSTILE.filter(body => !FIELDLESS.includes(body.about))) {
    test(`/siteverify bad-request: JSON, a body ${about}`, async () => {
      const body = make(JSON.stringify(await goodFields()))
      const headers = { 'Content-Type': 'application/json' }
      assertNotSiteverified(await subject.client.siteverify(body, { from, headers }), 'bad-request')
    })
  }

  for (const { about, make } of HOSTILE_FORMS) {
    test(`/siteverify bad-request: a form with ${about}`, async () => {
      const body = make(new URLSearchParams(await goodFields()).toString())
      assertNotSiteverified(
        await subject.client.siteverify(body, { from, headers: URLENCODED }),
        'bad-request',
      )
    })
  }

  test('/siteverify: the token that came with these bodies is still good', async () => {
    assertSiteverified(await subject.client.siteverify(await goodFields(), { from }))
  })

  for (const contentType of WRONG_TYPES) {
    test(`/siteverify bad-request: Content-Type ${contentType ?? 'missing'}`, async () => {
      const headers = contentType === undefined ? {} : { 'Content-Type': contentType }
      const answer = await subject.client.siteverify('secret=x', { from: freshAddress(), headers })
      assertNotSiteverified(answer, 'bad-request')
    })
  }

  test('/siteverify: an empty form has no secret', async () => {
    for (const contentType of [
      'application/x-www-form-urlencoded;charset=UTF-8',
      'Application/X-WWW-Form-Urlencoded',
    ]) {
      const headers = { 'Content-Type': contentType }
      const answer = await subject.client.siteverify('', { from: freshAddress(), headers })
      assertNotSiteverified(answer, 'missing-input-secret')
    }
    assertNotSiteverified(
      await subject.client.siteverify({}, { from: freshAddress() }),
      'missing-input-secret',
    )
  })

  test('/siteverify: 8192 bytes are taken, 8193 give 413 and spend nothing', async () => {
    const from = freshAddress()
    const { siteKey, apiKey: secret } = subject.site
    const response = await subject.client.token(siteKey, { from })
    const start = `${new URLSearchParams({ secret, response })}&padding=`
    const ask = (bytes: number) =>
      subject.client.siteverify(start.padEnd(bytes, 'x'), { from, headers: URLENCODED })
    assertNotSiteverified(await ask(8193), 'bad-request', 413)
    assertSiteverified(await ask(8192))
  })
}

const PER_ADDRESS = 100
const POLICIES = { address: PER_ADDRESS, 'api-key': 200 }

/** The limits of /verify-token: one budget for both. */
export function siteverifyLimitTests(subject: Subject): void {
  test('/siteverify and /verify-token draw on the same limits, then 429; the token is not spent', async () => {
    const { siteKey, apiKey: secret } = await subject.createSite()
    const from = freshAddress()
    const response = await subject.client.token(siteKey, { from: freshAddress() })
    for (let count = 0; count < PER_ADDRESS / 2; count++)
      assertNotRedeemed(await subject.client.verifyToken(secret, '{}', { from }), 400, 'invalid-body')
    const ask = () => subject.client.siteverify({ secret }, { from })
    const { admitted, refusal } = await requestsUntilLimited(ask, 200)
    assert.equal(admitted, PER_ADDRESS / 2)
    assertLimited(refusal, 'address', POLICIES)
    assertNotSiteverified(refusal, 'rate-limited', 429)
    assertNotSiteverified(
      await subject.client.siteverify({ secret, response }, { from }),
      'rate-limited',
      429,
    )
    assertNotRedeemed(await subject.client.verifyToken(secret, '{}', { from }), 429, 'rate-limited')
    assertSiteverified(await subject.client.siteverify({ secret, response }, { from: freshAddress() }))
  })

  test('/siteverify: 200 requests/min per API key, over both endpoints and all IPs', async () => {
    const { siteKey, apiKey: secret } = await subject.createSite()
    const store = await subject.service.openSites()
    const second = await createApiKey(store, siteKey).finally(() => store.close())
    const [first, last] = [freshAddress(), freshAddress()]
    for (let count = 0; count < PER_ADDRESS; count++) {
      assertNotSiteverified(
        await subject.client.siteverify({ secret }, { from: first }),
        'missing-input-response',
      )
    }
    const ask = () => subject.client.verifyToken(secret, '{}', { from: freshAddress() })
    assert.equal((await requestsUntilLimited(ask, 400)).admitted, PER_ADDRESS)
    const refusal = await subject.client.siteverify({ secret }, { from: last })
    assertLimited(refusal, 'api-key', POLICIES)
    assertNotSiteverified(
      await subject.client.siteverify({ secret: second.apiKey }, { from: last }),
      'missing-input-response',
    )
  })

  test('/siteverify: an API key that nobody has costs its address; none, or no API key, costs nothing', async () => {
    const from = freshAddress()
    const free = [{}, { secret: 'malformed' }, '{', new URLSearchParams('secret=%')] as const
    for (let count = 0; count < 30; count++)
      for (const body of free) assert.equal((await subject.client.siteverify(body, { from })).status, 200)
    const secret = `sk_00000000_${'A'.repeat(43)}`
    const ask = () => subject.client.siteverify({ secret }, { from })
    assert.equal((await requestsUntilLimited(ask, 200)).admitted, PER_ADDRESS)
  })
}
