/** POST /siteverify: /verify-token for backends of the large hosted CAPTCHAs, with their field names. Its limits are in limits.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, freshAddress } from '../harness/http.ts'
import { CONNECTIONS } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertOneOf,
  assertRedeemed,
  assertSiteverified,
} from './answers.ts'
import { PER_ADDRESS } from './limits.ts'
import { type Subject, UNKNOWN_SITE_KEY } from './support.ts'
import { WRONG_KEYS } from './verify-token.ts'

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

const URLENCODED = 'application/x-www-form-urlencoded'

const WRONG_TYPES = words('text/plain application/jsonp multipart/mixed;boundary=b multipart/form-data')

const ONE = ['https://shop.example']
const TWO = ['https://shop.example', 'https://www.shop.example']
const PATTERN = ['https://*.shop.example']
const EXTENSION = 'chrome-extension://abcdefghijklmnop'

/** `told` is the hostname that the backend of a site with these `origins` gets, if a page of `origin` sends the solution. */
const HOSTNAMES = [
  { about: 'no Origin header, and one origin', origins: ONE, origin: undefined, told: 'shop.example' },
  { about: 'no Origin header, and two origins', origins: TWO, origin: undefined, told: undefined },
  { about: 'the second of two', origins: TWO, origin: 'https://www.shop.example', told: 'www.shop.example' },
  { about: 'by a pattern', origins: PATTERN, origin: 'https://a.b.shop.example', told: 'a.b.shop.example' },
  { about: 'any page, without its port', origins: [], origin: 'http://[::1]:8080', told: '[::1]' },
  { about: 'any page, but an extension', origins: [], origin: EXTENSION, told: undefined },
]

const pageFieldsOf = (json: object) =>
  Object.fromEntries(Object.entries(json).filter(([name]) => name === 'action' || name === 'cdata'))

export function siteverifyTests(subject: Subject): void {
  const ask = (body: string | object, headers: Record<string, string> = {}) =>
    subject.client.siteverify(body, { from: freshAddress(), headers })
  const freshToken = () => subject.visitor().token()

  for (const [encoding, encode] of Object.entries(ENCODINGS)) {
    test(`/siteverify ${encoding}: success, score, challenge_ts and no other field, above all no error-codes`, async () => {
      const visitor = subject.visitor()
      const token = await visitor.token()
      const { apiKey: secret, siteKey: sitekey } = visitor.site
      const fields = { secret, response: token, remoteip: visitor.from, sitekey }
      const answer = await ask(encode(fields))
      assertSiteverified(answer)
      assert.deepEqual(Object.keys(answer.json).sort(), ['action', 'challenge_ts', 'score', 'success'])
      assert.ok(answer.json.score > 0 && answer.json.score <= 1)
      assert.equal(answer.json.challenge_ts, new Date(Number(token.split('|')[0])).toISOString())
      assertNotSiteverified(await ask(encode(fields)), 'timeout-or-duplicate')
    })
  }

  const FORM_TYPE = { 'Content-Type': URLENCODED }
  const inQuery = async (fields: Fields, body: string | object = '', headers = {}) => {
    const path = `/siteverify?${new URLSearchParams(fields)}`
    return subject.client.siteverify(body, { from: freshAddress(), headers, path })
  }

  test('/siteverify: the Authorization header brings no secret, and query and body together bring one, once', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    const header = { Authorization: `Bearer ${secret}` }
    assertNotSiteverified(await inQuery({ response }, '', header), 'missing-input-secret')
    // Two secrets that differ may be one of the backend and one that a visitor has added.
    const { apiKey: other } = await subject.createSite()
    for (const body of ['secret=x', `response=x&secret=${other}`])
      assertNotSiteverified(await inQuery({ secret, response }, body, FORM_TYPE), 'bad-request')
    const twice = { path: `/siteverify?secret=${secret}&secret=${secret}` }
    assertNotSiteverified(await subject.client.siteverify('', twice), 'bad-request')
    // form.test.ts has all forms that are refused.
    assertNotSiteverified(await inQuery({}, 'secret=x&se%63ret=x', FORM_TYPE), 'bad-request')
  })

  test('/siteverify merges the fields of query and body, and the body comes first, but for what it leaves out', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    assertNotSiteverified(await inQuery({ secret, response }, { response: 'x' }), 'invalid-input-response')
    assertSiteverified(await inQuery({ secret, response }, '', FORM_TYPE))
    // What is unknown, empty, null or the same in the body leaves the fields of the query as they are, so the token is found used.
    for (const body of ['a=b', 'response=', `secret=${secret}`])
      assertNotSiteverified(await inQuery({ secret, response }, body, FORM_TYPE), 'timeout-or-duplicate')
    for (const body of [{}, { response: null }, { secret }])
      assertNotSiteverified(await inQuery({ secret, response }, body), 'timeout-or-duplicate')
  })

  for (const path of ['/recaptcha/api/siteverify', '/turnstile/v0/siteverify']) {
    test(`${path}: the vendor's path, with its shape`, async () => {
      const visitor = subject.visitor()
      const fields = { secret: visitor.site.apiKey, response: await visitor.token() }
      const askThere = (body: object) => subject.client.siteverify(body, { from: freshAddress(), path })
      assertNotSiteverified(await askThere({ ...fields, remoteip: '192.0.2.1' }), 'remoteip-mismatch')
      const { json } = await askThere(new URLSearchParams(fields))
      assert.equal(json.success, true)
      assert.deepEqual(json['error-codes'], path.startsWith('/turnstile') ? [] : undefined)
      assertNotSiteverified(await askThere(fields), 'timeout-or-duplicate')
      const takesGet = path.startsWith('/recaptcha')
      const { status, headers } = await call(subject.url + path, { method: takesGet ? 'PUT' : 'GET' })
      assert.deepEqual([status, headers.allow], [405, takesGet ? 'POST, GET' : 'POST'])
    })
  }

  test('GET /recaptcha/api/siteverify: redeems by its query, once, and refuses what a page sends', async () => {
    const fields = { secret: subject.site.apiKey, response: await freshToken() }
    const get = (headers = {}) => {
      const url = `${subject.url}/recaptcha/api/siteverify?${new URLSearchParams(fields)}`
      return call(url, { from: freshAddress(), headers })
    }
    for (const site of ['cross-site', 'same-site', 'same-origin']) {
      const { status, json } = await get({ 'Sec-Fetch-Site': site })
      assert.deepEqual([status, json['error-codes']], [400, ['bad-request']])
    }
    const answer = await get()
    assertSiteverified(answer)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.match(answer.text, /"success": true,/) // as Perl's Captcha::reCAPTCHA looks for it
    assertNotSiteverified(await get(), 'timeout-or-duplicate')
  })

  test(`§4.3 rule 1: of ${CONNECTIONS} redemptions at once, which reach both workers, at /verify-token and /siteverify, one succeeds; then the token is used at both`, async () => {
    const fields = { secret: subject.site.apiKey, response: await freshToken() }
    const siteverify = () => ask(fields)
    const verifyToken = () => subject.redeem({ token: fields.response })
    const tries = Array.from({ length: CONNECTIONS }, (_, index) =>
      index % 2 ? verifyToken() : siteverify(),
    )
    assertOneOf(await Promise.all(tries), ({ text }) => assert.match(text, /token-used|timeout-or-duplicate/))
    assertNotSiteverified(await siteverify(), 'timeout-or-duplicate')
    assertNotRedeemed(await verifyToken(), 400, 'token-used')
  })

  test('/siteverify: a retry with the same idempotency_key gets the first answer again, at both endpoints', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    const fields = { secret, response, idempotency_key: 'order 17' }
    const first = await ask(fields)
    assertSiteverified(first)
    for (let attempt = 0; attempt < 3; attempt++) assert.equal((await ask(fields)).text, first.text)
    assertRedeemed(await subject.redeem({ token: response, idempotencyKey: 'order 17' }))
    for (const idempotency_key of ['order 18', undefined])
      assertNotSiteverified(await ask({ ...fields, idempotency_key }), 'timeout-or-duplicate')
  })

  test('/siteverify: what a visitor appends to a token that the backend does not encode makes no second use of it', async () => {
    const response = await freshToken()
    const form = `secret=${subject.site.apiKey}&response=${response}&idempotency_key=bot`
    const send = (path: string, body: string) => subject.client.siteverify(body, { path, headers: FORM_TYPE })
    for (const path of ['/siteverify', '/recaptcha/api/siteverify']) {
      assertNotSiteverified(await send(path, form), 'bad-request')
      assertNotSiteverified(await send(`${path}?${form}`, ''), 'bad-request')
    }
    // Turnstile has an idempotency_key.
    for (let attempt = 0; attempt < 2; attempt++)
      assert.equal((await send('/turnstile/v0/siteverify', form)).json.success, true)
  })

  test('/siteverify: another remoteip, site key or secret does not spend the token', async () => {
    const { siteKey, apiKey: secret } = subject.site
    const other = await subject.createSite()
    const visitor = subject.visitor()
    const response = await visitor.token()
    const good = { secret, response }
    assertNotSiteverified(await ask({ ...good, remoteip: '192.0.2.1' }), 'remoteip-mismatch')
    for (const sitekey of [other.siteKey, UNKNOWN_SITE_KEY, 'site_short', siteKey.toLowerCase()])
      assertNotSiteverified(await ask({ ...good, sitekey }), 'sitekey-secret-mismatch')
    assertNotSiteverified(await ask({ secret: other.apiKey, response }), 'sitekey-secret-mismatch')
    assertSiteverified(await ask({ ...good, remoteip: `::ffff:${visitor.from}`, sitekey: siteKey }))
  })

  test('/siteverify: a field that is empty or null counts as left out, unknown ones are ignored', async () => {
    const { apiKey: secret } = subject.site
    const [first, second] = [await freshToken(), await freshToken()]
    const empty = { remoteip: '', sitekey: '', idempotency_key: '' }
    const unknown = { action: 'login', cdata: '1', success: 'false' } // action and cdata count only from the page
    const form = new URLSearchParams({ secret, response: first, ...empty, ...unknown })
    form.append('__proto__', 'x') // refused in JSON alone
    assertSiteverified(await ask(form))
    const none = { remoteip: null, sitekey: null, idempotency_key: null }
    assertSiteverified(await ask({ secret, response: second, ...none }))
    for (const missing of ['', null, undefined]) {
      assertNotSiteverified(await ask({ secret: missing, response: first }), 'missing-input-secret')
      assertNotSiteverified(await ask({ secret, response: missing }), 'missing-input-response')
    }
  })

  test('/siteverify: a field that checks something, mistyped, is refused and named; the token is not spent', async () => {
    const { apiKey: secret } = subject.site
    const response = await freshToken()
    for (const [field, meant] of Object.entries({
      remoteIP: 'remoteip',
      remote_ip: 'remoteip',
      idempotencyKey: 'idempotency_key',
    })) {
      // Beside an empty one of the right name, which counts as left out, it would be skipped just the same.
      for (const empty of [{}, { [meant]: '' }]) {
        const answer = await ask({ secret, response, ...empty, [field]: '192.0.2.1' })
        assertNotSiteverified(answer, 'bad-request')
        assert.match(answer.json.messages[0], new RegExp(`${field}.*: ${meant} is expected`))
      }
    }
    assertSiteverified(await ask(new URLSearchParams({ secret, response })))
  })

  for (const { about, origins, origin, told } of HOSTNAMES) {
    test(`/siteverify hostname: ${about}`, async () => {
      const visitor = await subject.visitorOf({ origins })
      const headers: Record<string, string> = origin === undefined ? {} : { Origin: origin }
      const { token } = (await visitor.verify(await visitor.solved(), headers)).json
      const { json, text } = await ask({ secret: visitor.site.apiKey, response: token })
      assert.equal(json.success, true, text)
      assert.equal(json.hostname, told)
      assert.equal('hostname' in json, told !== undefined)
    })
  }

  test('/siteverify: action and cdata come back as the page gave them; /verify-token knows neither', async () => {
    const visitor = subject.visitor()
    const secret = visitor.site.apiKey
    for (const page of [
      { action: 'login', cdata: 'basket-17' },
      { action: 'cart/add_1' },
      { cdata: '1' },
      {}, // the answer has an action all the same, so a visitor who sends none skips no check of the backend
      { action: 'a'.repeat(100), cdata: '-'.repeat(255) },
    ]) {
      const told = { action: '', ...page }
      const { json } = await ask({ secret, response: await visitor.token(page) })
      assert.deepEqual(pageFieldsOf(json), told)
      const path = '/turnstile/v0/siteverify'
      const there = await subject.client.siteverify({ secret, response: await visitor.token(page) }, { path })
      assert.deepEqual(pageFieldsOf(there.json), { cdata: '', ...told })
      const redeemed = await visitor.redeem({ token: await visitor.token(page) })
      assertRedeemed(redeemed)
      assert.deepEqual(Object.keys(redeemed.json), ['success', 'score', 'ip', 'solvedAt'])
    }
  })

  test('/siteverify refuses what a page in a browser sends, and charges nobody for it', async () => {
    const visitor = await subject.visitorOf()
    const fields = { secret: visitor.site.apiKey, response: await visitor.token() }
    const send = (headers: Record<string, string>) =>
      subject.client.siteverify(fields, { from: visitor.from, headers })
    const marks = [{ Origin: 'https://shop.example' }, { 'Sec-Fetch-Site': 'cross-site' }]
    for (let count = 0; count < PER_ADDRESS + 10; count++) {
      const answer = await send(marks[count % 2]!)
      assert.equal(answer.status, 400, answer.text)
      assert.deepEqual(answer.json['error-codes'], ['bad-request'])
    }
    assertSiteverified(await send({ 'Sec-Fetch-Site': 'none' }))
  })

  const wrongKeys: Readonly<Record<string, (key: string) => unknown>> = {
    ...WRONG_KEYS,
    'with Bearer': key => `Bearer ${key}`,
    'a number': () => 5,
    'a list': key => [key],
    'the site key': () => subject.site.siteKey,
  }
  for (const [about, make] of Object.entries(wrongKeys)) {
    test(`/siteverify invalid-input-secret: ${about}; the token is not spent`, async () => {
      const { apiKey } = subject.site
      const response = await subject.visitor().token()
      assertNotSiteverified(await ask({ secret: make(apiKey), response }), 'invalid-input-secret')
      assertSiteverified(await ask({ secret: apiKey, response }))
    })
  }

  test('/siteverify invalid-input-response: no token of ours', async () => {
    const { apiKey: secret } = subject.site
    for (const response of ['x', '1'.repeat(1024), '1'.repeat(1025), 5, true, ['a'], {}, ' ', 'é|é|é|é|é'])
      assertNotSiteverified(await ask({ secret, response }), 'invalid-input-response')
  })

  test('/siteverify: remoteip and idempotency_key of a wrong form; the token is not spent', async () => {
    const visitor = subject.visitor()
    const good = { secret: visitor.site.apiKey, response: await visitor.token() }
    const addresses = words('localhost 127.0.0.1:x [::1 fe80::1%')
    for (const remoteip of [...addresses, ' 127.0.0.1', 5, [], '1'.repeat(65)])
      assertNotSiteverified(await ask({ ...good, remoteip }), 'invalid-remoteip')
    for (const idempotency_key of ['k'.repeat(65), 5, {}])
      assertNotSiteverified(await ask({ ...good, idempotency_key }), 'bad-request')
    assertSiteverified(await ask({ ...good, remoteip: visitor.from }))
  })

  test('/siteverify: another Content-Type or none is bad-request; an empty form has no secret', async () => {
    const send = (body: string, contentType?: string) =>
      ask(body, contentType === undefined ? {} : { 'Content-Type': contentType })
    for (const contentType of [undefined, ...WRONG_TYPES])
      assertNotSiteverified(await send('secret=x', contentType), 'bad-request')
    for (const contentType of [`${URLENCODED};charset=UTF-8`, 'Application/X-WWW-Form-Urlencoded'])
      assertNotSiteverified(await send('', contentType), 'missing-input-secret')
    assertNotSiteverified(await send('{}', 'application/json'), 'missing-input-secret')
  })
}
