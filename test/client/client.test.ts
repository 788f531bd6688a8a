/** The client for backends (client/) against a running service, and against networks and gateways that fail. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import {
  AuthError,
  Powgate,
  PowgateError,
  type PowgateOptions,
  RateLimitError,
  TimeoutError,
  UnavailableError,
} from '../../client/src/powgate.ts'
import { FakePowgate, TEST_API_KEYS } from '../../client/src/testing.ts'
import { mintToken } from '../../src/domain/token.ts'
import { claimsOf, keyring, neighbour } from '../contract/support.ts'
import { type Fault, FaultyProxy } from '../harness/browser-proxy.ts'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { leftovers } from '../harness/processes.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'
import { EASY, TestService } from '../harness/service.ts'
import { type Illness, SickProxy } from '../harness/sick-proxy.ts'

const VERIFY_TOKEN = 'POST /verify-token'
/** A deadline that no test reaches, though an attempt that may be repeated waits for only half of what is left. */
const PATIENT_MS = 60_000
/** A deadline shorter than the minute that a limit may ask callers to wait. */
const SHORT_MS = 20_000

const settings = { POWGATE_TEST_KEYS: 'on', POWGATE_TRUSTED_PROXIES: '127.0.0.0/8' }
const service = await TestService.start('embedded', settings)
const client = new Client(service.url)
const site = await service.createSite({ difficulty: EASY, threshold: 0 })

describe('client for backends', { concurrency: true }, () => {
  const open = (options: Partial<PowgateOptions> = {}) =>
    new Powgate({ url: service.url, apiKey: site.apiKey, timeoutMs: PATIENT_MS, ...options })
  const freshToken = () => client.token(site.siteKey, { from: freshAddress() })
  /** The code of a refusal, which has a message too. */
  const codeOf = async (gate: Powgate, ...args: Parameters<Powgate['verify']>) => {
    const result = await gate.verify(...args)
    assert.ok(!result.ok && result.message !== '', JSON.stringify(result))
    return result.code
  }

  /** A client behind a proxy that disturbs the first requests; `asked` counts all that it has sent. */
  async function behind(faults: readonly Omit<Fault, 'path'>[], options: Partial<PowgateOptions> = {}) {
    const proxy = await FaultyProxy.start(service.port)
    proxy.clientAddress = freshAddress()
    for (const fault of faults) proxy.fail({ path: '/verify-token', ...fault })
    return { gate: open({ url: proxy.origin(), ...options }), asked: () => proxy.count(VERIFY_TOKEN) }
  }

  /** A service beyond a TCP connection that is ill. */
  async function beyond(illness: Illness) {
    const proxy = await SickProxy.start(service.port)
    leftovers.add(proxy)
    proxy.fall(illness)
    return { url: `http://127.0.0.1:${proxy.port}`, proxy }
  }

  test('a good token is accepted, a second time refused', async () => {
    const ip = freshAddress()
    const token = await client.token(site.siteKey, { from: ip })
    const { issuedAtMs, score } = claimsOf(token)
    const gate = open({ url: `${service.url}//` }) // slashes at the end are dropped
    assert.deepEqual(await gate.verify(token, { ip }), { ok: true, score, ip, solvedAt: issuedAtMs })
    const again = await gate.verify(token, { ip })
    assert.deepEqual(again, { ok: false, code: 'token-used', message: 'Token already used' })
  })

  test('what is no good token is refused with a code, and a token of another address stays good', async () => {
    const gate = open()
    const token = await freshToken()
    const issuedAtMs = Date.now() - 400_000 // a token lives for 300 s
    const old = mintToken(keyring, { ...claimsOf(token), issuedAtMs })
    const other = await service.createSite()
    assert.equal(await codeOf(gate, old), 'token-expired')
    assert.equal(await codeOf(gate, 'x'), 'invalid-token')
    assert.equal(await codeOf(gate, 'x'.repeat(2000)), 'invalid-body')
    assert.equal(await codeOf(gate, 'x'.repeat(1_000_000)), 'body-too-large')
    assert.equal(await codeOf(gate, token, { ip: 'here' }), 'invalid-body')
    assert.equal(await codeOf(gate, token, { ip: '192.0.2.1' }), 'ip-mismatch')
    for (const missing of [undefined, null, '', [token], { token }, 1])
      assert.equal(await codeOf(gate, missing), 'token-missing')
    assert.equal(await codeOf(open({ apiKey: other.apiKey }), token), 'site-mismatch')
    assert.equal((await gate.verify(token)).ok, true)
  })

  test('a score below minScore is refused', async () => {
    const from = freshAddress()
    const environment = { webdriver: true, chromeAbsent: true, swiftShader: true, noPlugins: true }
    const solution = await client.solved(site.siteKey, { from }, { environment })
    const { token } = (await client.verify(site.siteKey, solution, { from })).json
    const { score } = claimsOf(token)
    assert.ok(score < 0.5, String(score))
    assert.deepEqual(await open({ minScore: 0.5 }).verify(token), {
      ok: false,
      code: 'score-too-low',
      message: `The score ${score} is below 0.5.`,
    })
    assert.equal((await open({ minScore: 1 }).verify(await freshToken())).ok, true)
  })

  test('an answer that is lost on the way costs no visitor: the retries are the same redemption', async () => {
    for (const times of [1, 2]) {
      const { gate, asked } = await behind([{ isAnswerLost: true, times }])
      const token = await freshToken()
      assert.equal((await gate.verify(token)).ok, true)
      assert.equal(asked(), times + 1)
      assert.equal(await codeOf(gate, token), 'token-used', 'another call is another redemption')
    }
  })

  test('lost answers without end are thrown, after maxRetries', async () => {
    for (const maxRetries of [0, 2]) {
      const { gate, asked } = await behind([{ isAnswerLost: true, times: 9 }], { maxRetries })
      await assert.rejects(gate.verify(await freshToken()), UnavailableError)
      assert.equal(asked(), maxRetries + 1)
    }
    const url = `http://127.0.0.1:${await freePort()}`
    await assert.rejects(open({ url, maxRetries: 1 }).verify('x'), {
      name: 'UnavailableError',
      message: 'no answer: ECONNREFUSED',
    })
  })

  test('429, 502, 503 and 504 are repeated, after the time of Retry-After', async () => {
    const soon = new Date(Date.now() + 1000).toUTCString()
    const repeats = async (status: number, headers: Record<string, string> = {}, pauseMsMin = 0) => {
      const { gate, asked } = await behind([{ answer: { status, headers } }])
      const token = await freshToken()
      const start = performance.now()
      assert.equal((await gate.verify(token)).ok, true)
      assert.equal(asked(), 2)
      const ms = performance.now() - start
      assert.ok(ms >= pauseMsMin - 5, `${status} after ${ms} ms`) // timers may be some ms early
    }
    await Promise.all([
      repeats(502),
      repeats(504),
      repeats(503, { 'Retry-After': '1' }, 1000),
      repeats(429, { 'Retry-After': '1' }, 1000),
      repeats(503, { 'Retry-After': soon }),
    ])
  })

  test('a limit whose time does not fit the deadline is thrown at once', async context => {
    const options = { difficulty: EASY, limits: { redeem: 1 } }
    const { siteKey, apiKey } = await service.createSite(options)
    const gate = open({ apiKey, timeoutMs: SHORT_MS })
    const newToken = () => client.token(siteKey, { from: freshAddress() })
    assert.equal((await gate.verify(await newToken())).ok, true)
    await assert.rejects(gate.verify(await newToken()), (error: unknown) => {
      assert.ok(error instanceof RateLimitError, String(error))
      assert.ok(error.retryAfterMs > SHORT_MS && error.retryAfterMs <= 60_000, String(error.retryAfterMs))
      return true
    })
    const minute = { status: 503, headers: { 'Retry-After': '60' } }
    const away = await behind([{ answer: minute }], { timeoutMs: SHORT_MS })
    await assert.rejects(away.gate.verify('x'), { name: 'UnavailableError', retryAfterMs: 60_000 })
    assert.equal(away.asked(), 1)
    const overloaded = await startRefusingServer(context)
    const busy = open({ url: overloaded.url, maxRetries: 0 }).verify('x')
    await assert.rejects(busy, { name: 'UnavailableError', retryAfterMs: 1000 })
    assert.equal(overloaded.refused(), 1)
  })

  test('one deadline holds for the whole call', async () => {
    const { url } = await beyond({ kind: 'black-hole' })
    for (const maxRetries of [0, 2]) {
      const start = performance.now()
      await assert.rejects(open({ url, timeoutMs: 400, maxRetries }).verify('x'), TimeoutError)
      const ms = performance.now() - start
      // With retries it may end after the first attempt, which takes half of the time: the next pause may not fit.
      assert.ok(ms > (maxRetries === 0 ? 395 : 195), `after ${ms} ms`)
    }
  })

  test('a connection that is silent, or is cut within the answer, leaves time for another', async () => {
    for (const [illness, options] of [
      [{ kind: 'black-hole' }, { timeoutMs: 16_000 }],
      [{ kind: 'cut', keep: bytes => bytes >> 1 }, { maxRetries: 9 }],
    ] as [Illness, Partial<PowgateOptions>][]) {
      const { url, proxy } = await beyond(illness)
      const [gate, token] = [open({ url, ...options }), await freshToken()]
      setTimeout(() => proxy.heal(), 300)
      assert.equal((await gate.verify(token)).ok, true, illness.kind)
      assert.equal(await codeOf(gate, token), 'token-used')
    }
  })

  test('an aborted signal ends the call with its reason: before, during and between requests', async () => {
    const reason = new Error('the visitor is gone')
    const early = await behind([])
    await assert.rejects(early.gate.verify('x', { signal: AbortSignal.abort(reason) }), reason)
    const started = new AbortController()
    const call = early.gate.verify('x', { signal: started.signal })
    started.abort(reason)
    await assert.rejects(call, reason)
    assert.equal(early.asked(), 0)
    const silent = await beyond({ kind: 'black-hole' })
    const pausing = await behind([{ answer: { status: 503, headers: { 'Retry-After': '15' } } }])
    for (const gate of [open({ url: silent.url }), pausing.gate]) {
      const controller = new AbortController()
      setTimeout(() => controller.abort(reason), 300)
      await assert.rejects(gate.verify('x', { signal: controller.signal }), reason)
    }
  })

  test('what is no verdict is thrown, not repeated, and never a pass', async () => {
    const page = '<html>success: true</html>'
    const pass = { success: true, score: 1, ip: '192.0.2.1', solvedAt: 1 }
    const { solvedAt: _, ...partial } = pass
    const wrong = ['', 'null', {}, partial, { ...pass, score: '1' }, { ...pass, success: 'true' }]
    for (const [status, body] of [
      ...wrong.map(body => [200, body] as const),
      ...[200, 400, 404].map(status => [status, page] as const),
      ...[201, 302, 400, 500].map(status => [status, pass] as const),
      [403, { success: false, code: 'blocked', error: 'by a firewall' }],
    ] as const) {
      const headers = status === 302 ? { Location: `${service.url}/verify-token` } : {}
      const { gate, asked } = await behind([{ answer: { status, headers, body } }])
      const message = `status ${status} without a verdict`
      const error = { name: 'UnavailableError', message, retryAfterMs: undefined }
      await assert.rejects(gate.verify('x'), error, JSON.stringify(body))
      assert.equal(asked(), 1)
    }
  })

  test('a wrong key is thrown, not repeated; and no error or printed client holds a key or a token', async () => {
    const secret = site.apiKey.slice(3, -1) // without sk_, and without the last character, which differs in the wrong key
    const token = await freshToken()
    const wrong = site.apiKey.slice(0, -1) + neighbour(site.apiKey.at(-1)!)
    const { gate, asked } = await behind([], { apiKey: wrong })
    const errors = [await thrown(gate.verify(token))]
    assert.ok(errors[0] instanceof AuthError && errors[0] instanceof PowgateError, String(errors[0]))
    assert.equal(asked(), 1)
    const lost = await behind([{ isDropped: true }, { answer: { status: 500 } }], { maxRetries: 0 })
    for (let call = 0; call < 2; call++) errors.push(await thrown(lost.gate.verify(token)))
    const nobody = open({ url: `http://127.0.0.1:${await freePort()}`, maxRetries: 0 })
    errors.push(await thrown(nobody.verify(token)))
    for (const apiKey of [`${site.apiKey}\n`, ` ${site.apiKey}`, `key ${site.apiKey}`])
      errors.push(await thrown(Promise.resolve({ apiKey }).then(open)))
    for (const shown of [...errors, gate, lost.gate]) {
      const text = inspect(shown, { depth: 20, showHidden: true, getters: true })
      for (const part of [secret, token]) assert.ok(!text.includes(part), text)
    }
  })

  test('an option that is wrong or unknown is named', async () => {
    const wrong = {
      url: ['powgate:8080', 'http://user:password@powgate', 'http://powgate/?query', undefined],
      apiKey: [site.siteKey, undefined],
      timeoutMs: [0, Number.POSITIVE_INFINITY],
      maxRetries: [0.5, -1],
      minScore: [50, Number.NaN],
      minscore: [1],
    }
    for (const [name, values] of Object.entries(wrong))
      for (const value of values) {
        const told = new RegExp(`^TypeError: powgate-client: .*\\b${name}\\b`)
        assert.throws(() => open({ [name]: value }), told, `${name}: ${value}`)
      }
    for (const options of [{ ip: undefined }, { ip: '' }, { Ip: '192.0.2.1' }])
      await assert.rejects(open().verify('x', options as object), TypeError, JSON.stringify(options))
    Reflect.set(Object.prototype, 'contains', () => false) // as an old library does
    assert.ok(open())
    Reflect.deleteProperty(Object.prototype, 'contains')
  })

  test('the fake answers as a service does with the published test keys, and lets no real key pass', async () => {
    const from = freshAddress()
    for (const apiKey of Object.values(TEST_API_KEYS)) {
      for (const options of [{}, { minScore: 1 }]) {
        const [real, fake] = [open({ apiKey, ...options }), new FakePowgate({ apiKey, ...options })]
        for (const token of ['x', '', null]) {
          const ask = token === '' ? {} : { ip: from }
          const answers = await Promise.all([real, fake].map(gate => gate.verify(token, ask)))
          const [expected, answer] = answers.map(one => (one.ok ? { ...one, solvedAt: 0 } : one))
          assert.deepEqual(answer, expected)
        }
      }
    }
    await assert.rejects(new FakePowgate({ apiKey: site.apiKey }).verify('x'), AuthError)
  })
})

const thrown = (call: Promise<unknown>) =>
  call.then(
    () => assert.fail('nothing was thrown'),
    (error: unknown) => error,
  )
