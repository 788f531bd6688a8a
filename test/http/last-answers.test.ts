/**
 * The last answer of a connection says so, and is complete before the connection closes: also one without a body, one of a stopping
 * service, and one to a client that has closed its sending side. Clients that wait for 100 Continue before they send their body get it.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { listeningPids } from '../harness/processes.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { ALWAYS_EASY, TestService } from '../harness/service.ts'
import { words } from '../harness/values.ts'

/** A path whose answers have a body, a length and an ETag. */
const PATH = '/demo'
const CLOSE = 'Connection: close'
const JSON_TYPE = 'Content-Type: application/json'

interface Case {
  readonly request: string
  readonly answer: RegExp
  /** The client ends its sending side with the request. */
  readonly ends?: true
  readonly times?: number
}

const get = (method: 'GET' | 'HEAD', path: string, ...headers: readonly string[]): string =>
  requestText(`${method} ${path}`, headers)

/** Opens a connection. @returns what sends the request, and resolves with all that comes until the service ends the connection */
async function readyToSend(port: number, request: string, ends = false): Promise<() => Promise<string>> {
  const connection = await RawConnection.open(port)
  return async () => {
    connection.socket[ends ? 'end' : 'write'](request)
    const { text, isClosed } = await connection.rest()
    assert.ok(isClosed, `it does not end after ${request}${text}`)
    return text
  }
}

const NOT_MODIFIED = /^HTTP\/1\.1 304 Not Modified\r\n(?:[^\r]+\r\n)+\r\n$/
const LENGTH = 'Content-Length: 0'
// Answers to HEAD are their headers alone, with the length of the body that GET would get.
const HEAD_ALONE =
  /^HTTP\/1\.1 (?:200 OK|404 Not Found)\r\n(?:[^\r]+\r\n)*Content-Length: [1-9]\d+\r\n(?:[^\r]+\r\n)*\r\n$/
const HEAD_REFUSED =
  /^HTTP\/1\.1 400 Bad Request\r\n(?:[^\r]+\r\n)*Content-Length: [1-9]\d+\r\n(?:[^\r]+\r\n)*\r\n$/
const REFUSAL = /^HTTP\/1\.1 4\d\d [\s\S]+\r\n\r\n\{[\s\S]+\}$/

test('a connection ends with its last answer, and not before', async () => {
  const service = await TestService.start('embedded', {
    POWGATE_WORKERS: '1',
    POWGATE_DEMO: 'on',
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    POWGATE_DRAIN_SECONDS: '60',
  })
  const etag = String((await call(service.url + PATH)).headers.etag)
  assert.match(etag, /"/)
  const { siteKey } = await service.createSite()
  const fresh = `If-None-Match: ${etag}`
  const cases: Readonly<Record<string, Case>> = {
    'HEAD and Connection: close': { request: get('HEAD', PATH, CLOSE), answer: HEAD_ALONE },
    'HEAD of nothing and Connection: close': { request: get('HEAD', '/', CLOSE), answer: HEAD_ALONE },
    '304 and Connection: close': { request: get('GET', PATH, CLOSE, fresh), answer: NOT_MODIFIED },
    'HEAD with two lengths': { request: get('HEAD', '/', LENGTH, LENGTH), answer: HEAD_REFUSED },
    'two lengths': { request: get('GET', '/', LENGTH, LENGTH), answer: REFUSAL },
    'a challenge and Connection: close': {
      request: get('GET', '/challenge', CLOSE, `X-Site-Key: ${siteKey}`),
      answer: /^HTTP\/1\.1 200 OK\r\n[\s\S]+"nonce"/,
    },
    'a refusal to a client that has ended its side': {
      request: requestText('POST /verify-token', [CLOSE], '{}'),
      answer: REFUSAL,
      ends: true,
    },
    'a file for a client that has ended its side': {
      request: get('GET', PATH, CLOSE),
      answer: /^HTTP\/1\.1 200 OK[\s\S]+<\/html>\s*$/,
      ends: true,
    },
    'HEAD from a client that has ended its side': {
      request: get('HEAD', PATH, CLOSE),
      answer: HEAD_ALONE,
      ends: true,
      times: 300, // of other answers without a body, one in 64 ends its connection (BARE_LAST_SHARE of exchange.ts)
    },
  }
  for (const [name, { request, answer, ends, times = 1 }] of Object.entries(cases))
    for (let time = 0; time < times; time++) {
      const send = await readyToSend(service.port, request, ends)
      const received = await send()
      assert.match(received, answer, name)
      assert.equal(received.match(/^Connection: close\r$/gim)?.length, 1, `${name}: ${received}`)
    }

  // A stopping service takes one more request over a connection that was idle, and ends it with the answer.
  const waiting = [get('HEAD', PATH), get('GET', PATH, fresh)]
  const sends = await Promise.all(waiting.map(request => readyToSend(service.port, request)))
  process.kill(service.pid, 'SIGTERM')
  await eventually(PATIENCE_MS, 'it leaves', () => listeningPids(service.port).length === 0)
  const [head, notModified] = await Promise.all(sends.map(send => send()))
  assert.match(head!, HEAD_ALONE, 'HEAD while the service leaves')
  assert.match(notModified!, NOT_MODIFIED, '304 while the service leaves')
})

const PATHS = words(
  '/verify /verify-token /siteverify /recaptcha/api/siteverify /turnstile/v0/siteverify /demo/submit',
)
const WAITING = ['100-continue', '100-Continue', '100-CONTINUE', 'other, 100-Continue']

for (const [how, env] of [
  ['from anybody', {}],
  ['behind a trusted proxy', { POWGATE_TRUSTED_PROXIES: '127.0.0.1' }],
  // With the PROXY protocol the primary process accepts the connections and relays them; this client is no proxy.
  ['through the relay', { POWGATE_TRUSTED_PROXIES: '10.0.0.1', POWGATE_PROXY_PROTOCOL: 'on' }],
] as const)
  describe(how, () => {
    let service: TestService

    before(async () => {
      service = await TestService.start('embedded', { POWGATE_WORKERS: '1', POWGATE_DEMO: 'on', ...env })
      await service.untilReady()
    })
    after(() => service.stop())

    test('Expect: 100-continue, however it is spelled, is answered at once on every POST, before the body', async () => {
      const connection = await RawConnection.open(service.port)
      for (const path of PATHS) {
        const post = (...more: string[]) => requestText(`POST ${path}`, [JSON_TYPE, ...more], '{}')
        const plain = await connection.request(post())
        for (const expect of WAITING) {
          await connection.send(post(`Expect: ${expect}`).slice(0, -'{}'.length))
          const interim = await connection.answer() // by uWebSockets.js itself only where all is in small letters
          assert.equal(interim?.status, 100, `${path} ${expect}`)
          const { status, json } = (await connection.request('{}'))!
          assert.deepEqual([status, json], [plain?.status, plain?.json], `${path} ${expect}`)
        }
        const other = await connection.request(post('Expect: other'))
        assert.equal(other?.status, plain?.status, path)
      }
      connection.close()
    })

    test('a backend that ends its sending side with the request gets its answer, and the same by a retry', async () => {
      const client = new Client(service.url)
      const { siteKey, apiKey } = await service.createSite({ difficulty: ALWAYS_EASY })
      for (let count = 0; count < 8; count++) {
        const body = JSON.stringify({ token: await client.token(siteKey), idempotencyKey: String(count) })
        const fields = [`Authorization: Bearer ${apiKey}`, JSON_TYPE]
        const request = requestText('POST /verify-token', fields, body)
        const send = await readyToSend(service.port, request, true)
        const answer = await send()
        assert.match(answer, /^HTTP\/1\.1 200 OK[\s\S]+"success":true/)
        assert.equal((await client.verifyToken(apiKey, body)).json.success, true)
      }
    })
  })
