import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { eventually, within } from '../harness/eventually.ts'
import { startRefusingServer } from '../harness/refusing-server.ts'

const BODY = `{"token":"${'x'.repeat(300)}"}`

const post = (path: string) =>
  `POST ${path} HTTP/1.1\r\nHost: powgate\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`

test('refused requests are answered in order on one connection, whose bodies are no requests, whole or in pieces', async () => {
  const server = await startRefusingServer()
  const socket = connect(server.port, '127.0.0.1')
  let received = ''
  socket.setEncoding('latin1').on('data', text => (received += text))
  const requests = [
    'GET /challenge HTTP/1.1\r\nHost: powgate\r\n\r\n',
    post('/verify'),
    post('/verify-token'),
    post('/siteverify'),
  ].join('')
  socket.write(requests)
  for (const piece of requests.match(/[\s\S]{1,100}/g)!) {
    await new Promise(resolve => setTimeout(resolve, 1))
    socket.write(piece)
  }
  const count = () => received.split('HTTP/1.1 503 Service Unavailable\r\n').length - 1
  const all = async () => {
    while (count() < 8) await new Promise(resolve => setTimeout(resolve, 5))
  }
  await within(10_000, all(), () => `only ${count()} of 8 answers:\n${received}`)
  const answers = received.split('HTTP/1.1 ').slice(1)
  socket.destroy()
  server.stop()
  assert.equal(server.refused(), 8)
  assert.equal(answers.length, 8)
  for (const [index, answer] of answers.entries()) {
    const [head, body] = answer.split('\r\n\r\n')
    const isForBrowsers = index % 4 < 2
    assert.match(head!, /\r\nRetry-After: 1\r\n/)
    assert.equal(/\r\nAccess-Control-Allow-Origin: \*\r\n/.test(head!), isForBrowsers)
    assert.equal(/access-control/i.test(head!), isForBrowsers)
    assert.match(head!, /\r\nCache-Control: no-store\r\n/)
    assert.equal(Number(/\r\nContent-Length: (\d+)/.exec(`${head}`)?.[1]), body!.length)
    const json = JSON.parse(body!)
    if (index % 4 === 3) assert.deepEqual(json['error-codes'], ['internal-error'])
    else assert.equal(json.code, 'overloaded')
    assert.equal(json.success, isForBrowsers ? undefined : false)
  }
})

test('the gate is told of requests that are answered all the same, so that a flood of them counts', async t => {
  const server = await startRefusingServer()
  t.after(() => server.stop())
  const others = [
    ['GET', '/nothing', 404],
    ['OPTIONS', '/challenge', 200],
    ['PUT', '/verify', 405],
    ['HEAD', '/file', 200],
  ] as const
  for (const [method, path, status] of others) {
    const before = server.seen()
    assert.equal((await fetch(`${server.url}${path}`, { method })).status, status)
    assert.equal(server.seen(), before + 1, `${method} ${path}`)
  }
  assert.equal((await fetch(`${server.url}/file`)).status, 503)
})

/** Asked for by nobody: it stands in the body of another request. */
const HIDDEN = 'GET /challenge HTTP/1.1\r\nHost: powgate\r\n\r\n'

/** What comes for these bytes until nothing has come for a while, or the connection was closed. */
async function answersTo(port: number, bytes: string): Promise<{ answers: string[]; isClosed: boolean }> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let isClosed = false
  let heardAtMs = performance.now()
  socket.setEncoding('latin1').on('data', text => {
    received += text
    heardAtMs = performance.now()
  })
  socket.once('error', () => {}) // 'close' follows
  socket.once('close', () => (isClosed = true))
  socket.write(bytes)
  // Nothing may come at all, where the connection is closed.
  const isOver = () => isClosed || (received !== '' && performance.now() - heardAtMs > 300)
  await eventually(10_000, 'an answer', isOver)
  socket.destroy()
  return { answers: received.split('HTTP/1.1 ').slice(1), isClosed }
}

test('a refused request in chunks is one request, whatever its chunks contain', async t => {
  const server = await startRefusingServer()
  t.after(() => server.stop())
  const head = 'POST /verify HTTP/1.1\r\nHost: powgate\r\nContent-Type: application/json\r\n'
  const chunk = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n`
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}0\r\n\r\n`
  const { answers, isClosed } = await answersTo(server.port, chunked)
  assert.equal(answers.length, 1, answers.join('\n'))
  assert.match(answers[0]!, /^503 [\s\S]*\r\nRetry-After: 1\r\n[\s\S]*"code":"overloaded"/)
  assert.ok(isClosed)
})

test('where it is not plain to a trusted proxy where a refused request ends, nothing after it is answered', async t => {
  const server = await startRefusingServer(['127.0.0.1'])
  t.after(() => server.stop())
  const twoLengths = (first: number) => {
    const lengths = `Content-Length: ${first}\r\nContent-Length: ${HIDDEN.length}\r\n`
    return `POST /verify-token HTTP/1.1\r\nHost: powgate\r\n${lengths}\r\n${HIDDEN}`
  }
  const equal = await answersTo(server.port, twoLengths(HIDDEN.length) + HIDDEN)
  // More has come than the first length says: no answer at all.
  const shorter = await answersTo(server.port, twoLengths(0))
  assert.ok(equal.isClosed && shorter.isClosed)
  assert.ok(equal.answers.length <= 1)
  assert.deepEqual(shorter.answers, [])
})

test('a client that asks on and reads no refusal is disconnected', async t => {
  const server = await startRefusingServer()
  t.after(() => server.stop())
  const socket = connect(server.port, '127.0.0.1')
  socket.once('error', () => {}) // 'close' follows
  let isClosed = false
  socket.once('close', () => (isClosed = true))
  socket.pause()
  let sent = 0
  await eventually(
    60_000,
    () => `it ends after ${sent} bytes`,
    () => {
      for (let count = 0; count < 1000 && socket.writableLength < 100_000; count++) {
        socket.write(HIDDEN)
        sent += HIDDEN.length
      }
      return isClosed
    },
  )
  t.diagnostic(`${sent} bytes of requests, ${server.refused()} refused`)
})
