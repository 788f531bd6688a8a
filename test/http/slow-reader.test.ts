/**
 * Who asks on without taking the answers: as long as no answer is pending all of them arrive, however late they are taken;
 * whoever asks again while one is pending is cut off, so that only one is ever kept.
 */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { call } from '../harness/http.ts'
import { TestService } from '../harness/service.ts'

const PATH = '/openapi.json'
/** More than any system's buffers hold. */
const REQUESTS_MAX = 2000

let service: TestService
let answerBody: string

before(async () => {
  service = await TestService.start('embedded', { POWGATE_WORKERS: '1' })
  answerBody = (await call(service.url + PATH)).text
})
after(() => service.stop())

/** @returns what came after so many requests had been sent one after the other; undefined if the connection was cut */
function askedThenRead(requests: number): Promise<string | undefined> {
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
        socket.write(`GET ${PATH} HTTP/1.1\r\nHost: powgate\r\n\r\n`)
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

test('answers that are taken late are whole; who asks again while one is pending is cut off', async () => {
  let [most, cut] = [1, REQUESTS_MAX]
  for (let requests = 8; cut - most > 1; requests = cut === REQUESTS_MAX ? most * 2 : (most + cut) >> 1) {
    const text = await askedThenRead(requests)
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
