/** One connection gets no more than its share of an event-loop turn and of memory, whatever it asks and whether or not it reads. */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'
import { TestService } from '../harness/service.ts'

/** As many as one read of uWebSockets.js holds. */
const PIPELINED = 4000
const JSON_HEAD = 'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
/** In one turn of the event loop, and one more at its end. */
const ANSWERED_MAX = 65
/** As many of the shortest answers as 16 KiB hold. */
const LAST_MAX = 128
const LONG_ANSWER = 'GET /openapi.json HTTP/1.1\r\n\r\n'
/** More of these answers than any system's buffers hold. */
const REQUESTS_MAX = 2000
/** Head or all of a request, by what answers. */
const REQUESTS = [
  'GET /widget.js HTTP/1.1\r\nIf-None-Match: *\r\n\r\n',
  'GET /widget.js HTTP/1.1\r\n\r\n',
  'HEAD /widget.js HTTP/1.1\r\n\r\n',
  'POST /widget.js HTTP/1.1\r\nContent-Length: 0\r\n\r\n',
  'HEAD /demo HTTP/1.1\r\n\r\n',
  'POST /demo/submit HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}',
  LONG_ANSWER,
  'GET /challenge HTTP/1.1\r\n\r\n',
  'HEAD /challenge HTTP/1.1\r\n\r\n',
  'OPTIONS /challenge HTTP/1.1\r\n\r\n',
  `POST /verify HTTP/1.1\r\n${JSON_HEAD}`,
  'OPTIONS /verify HTTP/1.1\r\n\r\n',
  `POST /verify-token HTTP/1.1\r\n${JSON_HEAD}`,
  `POST /siteverify HTTP/1.1\r\n${JSON_HEAD}`,
  'GET /verify-token HTTP/1.1\r\n\r\n',
  'GET /nothing HTTP/1.1\r\n\r\n',
  'HEAD /nothing HTTP/1.1\r\n\r\n',
]

function withHost(request: string, extra = ''): string {
  return request.replace('\r\n', `\r\nHost: powgate\r\n${extra}`)
}

let service: TestService
before(async () => {
  service = await TestService.start('embedded', { POWGATE_WORKERS: '1', POWGATE_DEMO: 'on' })
})
after(() => service.stop())

/** @returns how many answers came before the connection was closed */
async function answersTo(port: number, requests: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let isClosed = false
  socket.setEncoding('latin1').on('data', text => (received += text))
  socket.once('error', () => {}) // 'close' follows
  socket.once('close', () => (isClosed = true))
  socket.write(requests)
  await eventually(
    60_000,
    () => `the connection is closed, after ${received.length} characters`,
    () => isClosed,
  )
  return received.split('HTTP/1.1 ').length - 1
}

test('of pipelined requests 64 are answered, then the connection is closed, on every route and method', async () => {
  for (const request of REQUESTS) {
    const answers = await answersTo(service.port, withHost(request).repeat(PIPELINED))
    assert.ok(answers <= ANSWERED_MAX, `${answers} answers to ${request}`)
    // Each says that it is the last. The first 16 KiB go out together, and then the connection is closed.
    const last = await answersTo(service.port, withHost(request, 'Connection: close\r\n').repeat(PIPELINED))
    assert.ok(last <= LAST_MAX, `${last} answers to ${request} with Connection: close`)
  }
})

test('whoever pipelines and reads nothing is closed too, and all others are served', async () => {
  const sockets = REQUESTS.map(request => {
    const socket = connect(service.port, '127.0.0.1').on('error', () => {})
    socket.pause().write(withHost(request).repeat(PIPELINED))
    return { request, socket }
  })
  const isServed = await fetch(`${service.url}/nothing`)
  assert.equal(isServed.status, 404)
  for (const { request, socket } of sockets) {
    // A client that reads nothing learns by its writes that it was closed.
    const isGone = () => socket.destroyed || !socket.write(' ') || socket.destroyed
    await eventually(60_000, `the connection of ${request} is closed`, isGone)
    socket.destroy()
  }
})

test('a refusal at full load is no way around: a pipelining connection is closed after 64', async t => {
  const server = await startRefusingServer()
  t.after(() => server.stop())
  for (const request of [REQUESTS[7]!, REQUESTS[10]!, REQUESTS[12]!]) {
    const answers = await answersTo(server.port, withHost(request).repeat(PIPELINED))
    assert.ok(answers <= 64, `${answers} answers to ${request}`)
  }
})

test('answers without a body end their connection now and then, and say so', async () => {
  for (const request of [REQUESTS[0]!, REQUESTS[4]!]) {
    const connection = await RawConnection.open(service.port, '127.0.0.1')
    let answered = 0
    let isLast = false
    // HEAD answers state the length of a body that does not follow, so only heads are counted.
    let text = ''
    connection.socket.removeAllListeners('data').on('data', chunk => (text += chunk))
    while (!connection.isClosed && answered < 2000) {
      await connection.send(withHost(request))
      const next = answered + 1
      const isThere = () => connection.isClosed || text.split('\r\n\r\n').length - 1 >= next
      await eventually(20_000, `answer ${next}`, isThere)
      answered = next
      isLast = /\r\nConnection: close\r\n/i.test(text)
      if (isLast) await eventually(20_000, 'the connection is closed', () => connection.isClosed)
    }
    assert.ok(isLast && connection.isClosed, `${answered} answers, and the connection goes on`)
  }
})

test('a body in tens of thousands of chunks is cut off', async () => {
  const head =
    'POST /verify HTTP/1.1\r\nHost: powgate\r\nX-Site-Key: site_0000000000000000000000\r\nContent-Type: application/json\r\n'
  const chunks = '1\r\n \r\n'.repeat(80_000)
  const answers = await answersTo(service.port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`)
  assert.equal(answers, 0)
})

/** @returns what came after so many requests had been sent one after the other; undefined if the connection was cut */
function askedThenRead(requests: number, answerBody: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect({ port: service.port, host: '127.0.0.1' })
    let text = ''
    let isOver = false
    const end = (result: string | undefined) => {
      isOver = true
      socket.destroy()
      resolve(result)
    }
    socket.on('error', () => {})
    socket.once('close', () => end(undefined))
    socket.setEncoding('latin1')
    socket.once('connect', async () => {
      for (let sent = 0; sent < requests && !isOver; sent++) {
        socket.write(withHost(LONG_ANSWER))
        // So that the server sees them one by one: several that come at once are another matter.
        await new Promise(next => setTimeout(next, 2))
      }
      await new Promise(next => setTimeout(next, 100))
      socket.on('data', chunk => {
        text += chunk
        if (text.split('HTTP/1.1 200 OK').length - 1 === requests && text.endsWith(answerBody.slice(-200)))
          end(text)
      })
    })
  })
}

/** As long as no answer is pending, all arrive. Of a client that goes on asking only one pending answer is ever kept. */
test('answers that are taken late are whole; who asks again while one is pending is cut off', async () => {
  const answerBody = (await call(`${service.url}/openapi.json`)).text
  let [most, cut] = [1, REQUESTS_MAX]
  for (let requests = 8; cut - most > 1; requests = cut === REQUESTS_MAX ? most * 2 : (most + cut) >> 1) {
    const text = await askedThenRead(requests, answerBody)
    if (text === undefined) {
      cut = requests
      continue
    }
    most = requests
    const bodies = text.split(/HTTP\/1\.1 200 OK[\s\S]*?\r\n\r\n/).slice(1)
    assert.equal(bodies.length, requests)
    assert.ok(
      bodies.every(body => body === answerBody),
      `${requests} answers, but not all of them whole`,
    )
  }
  assert.ok(cut < REQUESTS_MAX, 'nobody was cut off')
})
