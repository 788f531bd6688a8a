/** One connection gets a bounded share of a tick and of memory, whether it pipelines or reads no answers, also under overload. */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findWidget } from '../../src/http/assets.ts'
import { eventually } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'
import { TestService } from '../harness/service.ts'
import { numbers, words } from '../harness/values.ts'

/** One read of uWebSockets.js holds as many requests. */
const PIPELINED = 4000
/** 64 answers in one tick of the event loop, and one more at its end. */
const ANSWERED_MAX = 65
/** Every 64th refusal comes a tick later, and uWebSockets.js ends a connection that has sent more before it (`unlessOverloaded`, routes.ts). */
const REFUSED_MAX = 64
/** 16 KiB hold as many of the shortest answers. */
const LAST_MAX = 128

interface Parts {
  readonly fields?: readonly string[]
  /** JSON, with the header fields that tell so. */
  readonly body?: string
}

const JSON_TYPE = 'Content-Type: application/json'

/** @returns the bytes of a request, such as `GET /widget.js` */
const request = (methodAndPath: string, { fields = [], body }: Parts = {}): string =>
  requestText(methodAndPath, body === undefined ? fields : [...fields, JSON_TYPE], body)

const ENDPOINT_POSTS = ['POST /verify', 'POST /verify-token', 'POST /siteverify']
const LONG_ANSWER = 'GET /openapi.json'
/** Their answers are more than any system's buffers hold. */
const REQUESTS_MAX = 2000
const withoutBody = (methodAndPath: string) => [methodAndPath, {}] as const
/** Requests that different code answers. */
const REQUESTS: readonly (readonly [methodAndPath: string, parts: Parts])[] = [
  ['GET /widget.js', { fields: ['If-None-Match: *'] }],
  ['POST /widget.js', { body: '' }],
  ...['POST /demo/submit', ...ENDPOINT_POSTS].map(post => [post, { body: '{}' }] as const),
  ...[LONG_ANSWER, 'GET /widget.js', 'HEAD /widget.js', 'HEAD /demo', 'GET /challenge'].map(withoutBody),
  ...['HEAD /challenge', 'OPTIONS /challenge', 'OPTIONS /verify'].map(withoutBody),
  ...['GET /verify-token', 'GET /nothing', 'HEAD /nothing'].map(withoutBody),
]

const service = await TestService.start('embedded', { POWGATE_WORKERS: '1', POWGATE_DEMO: 'on' })

/** @returns what comes for these bytes until the connection is closed, or nothing has come for some seconds */
async function answersTo(port: number, bytes: string) {
  const connection = await RawConnection.open(port)
  await connection.send(bytes)
  const { text, isClosed } = await connection.rest()
  return { answers: text.split('HTTP/1.1 ').slice(1), isClosed }
}

async function countOf(port: number, requests: string): Promise<number> {
  const { answers, isClosed } = await answersTo(port, requests)
  assert.ok(isClosed, `the connection stands after ${answers.length} answers`)
  return answers.length
}

test('64 pipelined requests are answered, then the connection is closed, on every route and method', async () => {
  for (const [what, parts] of REQUESTS) {
    const answers = await countOf(service.port, request(what, parts).repeat(PIPELINED))
    assert.ok(answers <= ANSWERED_MAX, `${answers} answers to ${what}`)
    // Each answer says that it is the last. The first 16 KiB go out together, and then the connection is closed.
    const fields = [...(parts.fields ?? []), 'Connection: close']
    const last = await countOf(service.port, request(what, { ...parts, fields }).repeat(PIPELINED))
    assert.ok(last <= LAST_MAX, `${last} answers to ${what} with Connection: close`)
  }
})

test('a client that pipelines and reads no answer is disconnected, and all others are served', async () => {
  const sockets = REQUESTS.map(([what, parts]) => {
    const socket = connect(service.port, '127.0.0.1').on('error', () => {})
    socket.pause().write(request(what, parts).repeat(PIPELINED))
    return { what, socket }
  })
  const isServed = await fetch(`${service.url}/nothing`)
  assert.equal(isServed.status, 404)
  for (const { what, socket } of sockets)
    await eventually(60_000, `the connection of ${what} is closed`, () => {
      socket.write(' ') // a client that reads nothing learns by its writes that it was closed
      return socket.destroyed
    })
})

test('while requests are refused for overload, too, a connection that pipelines is closed after 64', async t => {
  const server = await startRefusingServer(t)
  for (const what of ['GET /challenge', ...ENDPOINT_POSTS]) {
    const parts = what.startsWith('POST') ? { body: '{}' } : {}
    const answers = await countOf(server.port, request(what, parts).repeat(PIPELINED))
    assert.ok(answers <= REFUSED_MAX, `${answers} answers to ${what}`)
  }
})

const CHUNKED = ['X-Site-Key: site_0000000000000000000000', JSON_TYPE, 'Transfer-Encoding: chunked']

test('a body in tens of thousands of chunks is cut off', async () => {
  const chunks = '1\r\n \r\n'.repeat(80_000)
  const answers = await countOf(service.port, request('POST /verify', { fields: CHUNKED }) + chunks)
  assert.equal(answers, 0)
})

/** @returns what came after so many requests had been sent one after the other; undefined if the connection was cut */
async function askedThenRead(requests: number): Promise<string | undefined> {
  const socket = connect(service.port, '127.0.0.1').on('error', () => {})
  let text = ''
  socket.setEncoding('latin1').pause()
  for (let sent = 0; sent < requests && !socket.destroyed; sent++) {
    socket.write(request(LONG_ANSWER))
    await sleep(2) // so that the server sees them one by one: several that come at once are another matter
  }
  socket.on('data', chunk => (text += chunk)).resume()
  const isWhole = () => text.split('HTTP/1.1 200 OK').length - 1 === requests && text.endsWith('}')
  await eventually(60_000, 'all answers, or an end', () => socket.destroyed || isWhole())
  const isCut = socket.destroyed
  socket.destroy()
  return isCut ? undefined : text
}

/** The system's buffers hold eight answers. Once they are full the service keeps one, and ends the connection at the next request. */
test('a client that reads its answers late gets them whole; one that sends further requests meanwhile is disconnected', async () => {
  const answerBody = (await call(`${service.url}/openapi.json`)).text
  const bodies = (await askedThenRead(8))!.split(/HTTP\/1\.1 200 OK[\s\S]*?\r\n\r\n/).slice(1)
  assert.deepEqual(bodies, Array(8).fill(answerBody), 'whole answers')
  assert.equal(await askedThenRead(REQUESTS_MAX), undefined, 'nobody was cut off')
})

/** Stands in the body of another request, so nobody asks for it. */
const HIDDEN = request('GET /challenge')

test('refused requests of one connection are answered in order, and no body is taken for a request, however it is cut', async t => {
  const server = await startRefusingServer(t)
  const connection = await RawConnection.open(server.port)
  const body = `{"token":"${'x'.repeat(300)}"}`
  const requests = [HIDDEN, ...ENDPOINT_POSTS.map(post => request(post, { body }))].join('')
  await connection.send(requests, ...requests.match(/[\s\S]{1,100}/g)!) // whole, and again in pieces
  const asked = ['GET /challenge', ...ENDPOINT_POSTS]
  for (const what of [...asked, ...asked]) {
    const { status, headers, json } = (await connection.answer())!
    const isForBrowsers = what === 'GET /challenge' || what === 'POST /verify'
    assert.deepEqual([status, headers['retry-after'], headers['cache-control']], [503, '1', 'no-store'])
    assert.equal(headers['access-control-allow-origin'], isForBrowsers ? '*' : undefined)
    assert.equal(/access-control/i.test(Object.keys(headers).join()), isForBrowsers)
    if (what === 'POST /siteverify') assert.deepEqual(json['error-codes'], ['internal-error'])
    else assert.equal(json.code, 'overloaded')
    assert.equal(json.success, isForBrowsers ? undefined : false)
  }
  const last = await connection.request(request('GET /challenge', { fields: ['Connection: close'] }))
  assert.deepEqual([last?.status, last?.headers.connection], [503, 'close'])
  connection.close()
  assert.equal(server.refused(), 9)
})

/** `seen` counts what was reported to the gate (http/overload.ts) without asking it for admission. */
test('the gate counts requests that are answered even under overload, so that a flood of them is seen', async t => {
  const server = await startRefusingServer(t)
  const statuses = numbers('GET /nothing: 404, OPTIONS /challenge: 200, PUT /verify: 405, HEAD /file: 200')
  for (const [what, status] of Object.entries(statuses)) {
    const [method = '', path] = what.split(' ')
    const before = server.seen()
    assert.equal((await fetch(`${server.url}${path}`, { method })).status, status)
    assert.equal(server.seen(), before + 1, what)
  }
  assert.equal((await fetch(`${server.url}/file`)).status, 503)
})

/** Of a visitor's work the first request is new, and what follows is begun: under overload, new work is refused first. */
test('scripts that a page loads are refused as late as begun work, because no browser asks again; what the widget asks for again is not', async t => {
  const { url } = await startRefusingServer(t, { admits: work => work === 'begun' })
  const statusOf = async (path: string) => (await fetch(url + path)).status
  // `//1/api.js`: hCaptcha's script, at an address with a slash at its end.
  for (const path of words('/widget.js /compat/hcaptcha.js /recaptcha/api.js //1/api.js'))
    assert.equal(await statusOf(path), 200, path)
  for (const { name, fileName } of findWidget()!.files)
    for (const file of [name, fileName])
      assert.equal(await statusOf(`/widget/${file}`), name === 'widget.js' ? 200 : 503, file)
})

test('a refused request in chunks is one request, whatever its chunks contain', async t => {
  const server = await startRefusingServer(t)
  const chunk = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n`
  const chunked = `${request('POST /verify', { fields: CHUNKED })}${chunk}${chunk}0\r\n\r\n`
  const { answers, isClosed } = await answersTo(server.port, chunked)
  assert.equal(answers.length, 1, answers.join('\n'))
  assert.match(answers[0]!, /^503 [\s\S]*\r\nRetry-After: 1\r\n[\s\S]*"code":"overloaded"/)
  assert.ok(isClosed)
})

test('a trusted proxy sends a refused request with two Content-Length headers: nothing after it is answered', async t => {
  const server = await startRefusingServer(t, { trustedProxies: ['127.0.0.1'] })
  const twoLengths = (first: number) => {
    const fields = [first, HIDDEN.length].map(length => `Content-Length: ${length}`)
    return request('POST /verify-token', { fields }) + HIDDEN
  }
  // The one request that may be answered is refused; HIDDEN, which follows it, is not answered.
  const equal = await answersTo(server.port, twoLengths(HIDDEN.length) + HIDDEN)
  // More has come than the first length says, so nothing is answered.
  const shorter = await answersTo(server.port, twoLengths(0))
  assert.ok(equal.isClosed && shorter.isClosed)
  assert.ok(equal.answers.length <= 1)
  assert.deepEqual(shorter.answers, [])
})
