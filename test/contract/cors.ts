/** Contract, section 4.4: CORS for any origin on /challenge and /verify, on every status; never on /verify-token. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, type Call, call, freshAddress } from '../harness/http.ts'
import { type Subject, UNKNOWN_SITE_KEY, wrongCounter } from './support.ts'

const ORIGIN = { Origin: 'https://any.example' }
const EXPOSED = ['Retry-After', 'RateLimit', 'RateLimit-Policy']

type Ask = (subject: Subject) => Promise<Answer>

const challenge =
  (siteKey: string | undefined, more: Call = {}): Ask =>
  subject =>
    call(`${subject.url}/challenge`, {
      headers: { ...ORIGIN, 'X-Site-Key': siteKey ?? subject.site.siteKey },
      from: freshAddress(),
      ...more,
    })

const verify =
  (body: string, more: { siteKey?: string; headers?: Record<string, string> } = {}): Ask =>
  subject =>
    subject.client.verify(more.siteKey ?? subject.site.siteKey, body, {
      from: freshAddress(),
      headers: { ...ORIGIN, ...more.headers },
    })

const redeem =
  (body: string, headers: Record<string, string> = {}): Ask =>
  subject =>
    subject.client.verifyToken(subject.site.apiKey, body, {
      from: freshAddress(),
      headers: { ...ORIGIN, ...headers },
    })

const CROSS_ORIGIN: readonly { about: string; status: number; ask: Ask }[] = [
  { about: '/challenge', status: 200, ask: challenge(undefined) },
  { about: '/challenge without a site key', status: 400, ask: challenge('') },
  { about: '/challenge of an unknown site', status: 403, ask: challenge(UNKNOWN_SITE_KEY) },
  { about: 'DELETE /challenge', status: 405, ask: challenge(undefined, { method: 'DELETE' }) },
  { about: '/challenge over the limit', status: 429, ask: limitedChallenge },
  { about: '/verify, passed', status: 200, ask: passedVerify },
  { about: '/verify, failed', status: 200, ask: failedVerify },
  { about: '/verify with a wrong body', status: 400, ask: verify('{}') },
  { about: '/verify without a site key', status: 400, ask: verify('{}', { siteKey: '' }) },
  { about: '/verify of an unknown site', status: 403, ask: verify('{}', { siteKey: UNKNOWN_SITE_KEY }) },
  { about: '/verify from another address', status: 403, ask: verifyElsewhere },
  { about: '/verify with a body too large', status: 413, ask: verify(' '.repeat(8193)) },
  { about: '/verify over the limit', status: 429, ask: limitedVerify },
  { about: 'GET /verify', status: 405, ask: subject => call(`${subject.url}/verify`) },
]

const SAME_ORIGIN: readonly { about: string; status: number; ask: Ask }[] = [
  { about: 'a good token', status: 200, ask: redeemGood },
  { about: 'a bad token', status: 400, ask: redeem('{"token":"x"}') },
  { about: 'wrong credentials', status: 401, ask: redeem('{}', { Authorization: 'Bearer x' }) },
  { about: 'a body too large', status: 413, ask: redeem(' '.repeat(8193)) },
  { about: 'over the limit', status: 429, ask: limitedRedeem },
  {
    about: 'GET',
    status: 405,
    ask: subject => call(`${subject.url}/verify-token`, { headers: ORIGIN }),
  },
  {
    about: 'a preflight',
    status: 405,
    ask: preflight('/verify-token', 'POST', 'Authorization, Content-Type'),
  },
]

function preflight(path: string, method: string, headers: string): Ask {
  return subject =>
    call(subject.url + path, {
      method: 'OPTIONS',
      headers: {
        ...ORIGIN,
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': headers,
      },
      from: freshAddress(),
    })
}

async function limitedChallenge(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const { siteKey } = subject.site
  for (let count = 0; count < 30; count++) await subject.client.challenge(siteKey, { from })
  return subject.client.challenge(siteKey, { from, headers: ORIGIN })
}

async function limitedVerify(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const { siteKey } = subject.site
  for (let count = 0; count < 20; count++) await subject.client.verify(siteKey, '{}', { from })
  return subject.client.verify(siteKey, '{}', { from, headers: ORIGIN })
}

async function limitedRedeem(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const { apiKey } = subject.site
  for (let count = 0; count < 100; count++) await subject.client.verifyToken(apiKey, '{}', { from })
  return subject.client.verifyToken(apiKey, '{}', { from, headers: ORIGIN })
}

async function passedVerify(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const solution = await subject.client.solved(subject.site.siteKey, { from })
  return subject.client.verify(subject.site.siteKey, solution, { from, headers: ORIGIN })
}

async function failedVerify(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const { nonce, ...rest } = await subject.client.solved(subject.site.siteKey, { from })
  const body = { ...rest, nonce, counter: wrongCounter(nonce) }
  return subject.client.verify(subject.site.siteKey, body, { from, headers: ORIGIN })
}

async function verifyElsewhere(subject: Subject): Promise<Answer> {
  const solution = await subject.client.solved(subject.site.siteKey, { from: freshAddress() })
  return subject.client.verify(subject.site.siteKey, solution, { from: freshAddress(), headers: ORIGIN })
}

async function redeemGood(subject: Subject): Promise<Answer> {
  const from = freshAddress()
  const token = await subject.client.token(subject.site.siteKey, { from })
  return subject.client.verifyToken(subject.site.apiKey, { token }, { from, headers: ORIGIN })
}

function words(header: unknown): string[] {
  return String(header)
    .split(',')
    .map(word => word.trim().toLowerCase())
}

export function corsTests(subject: Subject): void {
  for (const { about, status, ask } of CROSS_ORIGIN) {
    test(`§4.4: any origin (*) on ${status} of ${about}`, async () => {
      const answer = await ask(subject)
      assert.equal(answer.status, status, answer.text)
      assert.equal(answer.headers['access-control-allow-origin'], '*')
      const exposed = words(answer.headers['access-control-expose-headers'])
      for (const name of EXPOSED) assert.ok(exposed.includes(name.toLowerCase()), `${name} is not exposed`)
    })
  }

  for (const [path, method] of [
    ['/challenge', 'GET'],
    ['/verify', 'POST'],
  ] as const) {
    test(`§4.4: the preflight of ${method} ${path} is answered`, async () => {
      const answer = await preflight(path, method, 'x-site-key, content-type')(subject)
      assert.equal(answer.status, 200)
      assert.equal(answer.text, '{}')
      assert.equal(answer.headers['access-control-allow-origin'], '*')
      assert.ok(words(answer.headers['access-control-allow-methods']).includes(method.toLowerCase()))
      const allowed = words(answer.headers['access-control-allow-headers'])
      for (const name of ['x-site-key', 'content-type']) assert.ok(allowed.includes(name))
      assert.equal(answer.headers['access-control-allow-credentials'], undefined)
    })
  }

  for (const { about, status, ask } of SAME_ORIGIN) {
    test(`§4.4: CORS headers are not sent on ${status} of /verify-token: ${about}`, async () => {
      const answer = await ask(subject)
      assert.equal(answer.status, status, answer.text)
      const sent = Object.keys(answer.headers).filter(name => name.startsWith('access-control-'))
      assert.deepEqual(sent, [])
    })
  }
}
