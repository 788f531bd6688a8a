import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { within } from '../support/eventually.ts'
import { startRefusingServer } from '../support/refusing-server.ts'

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
