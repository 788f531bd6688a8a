import { App, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js'
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { readHead, readProxyHead } from '../../src/http/request-headers.ts'
import { seeded } from '../harness/arbitraries.ts'
import { words } from '../harness/values.ts'

const NAMES = words('X-Site-Key Origin Sec-Fetch-Site Authorization Content-Type Connection X-Other')
const FIELDS = ['siteKey', 'origin', 'fetchSite', 'authorization', 'contentType', 'connection'] as const

/** What both ways read of a request, of the fields that both have. */
interface Heads {
  readonly byName: Partial<Record<string, string>>
  readonly inOnePass: Partial<Record<string, string>>
  readonly framing: string
}

/** A server that tells what it has read of each request. */
async function startServer(isCrossOrigin: boolean) {
  let heads: Heads = { byName: {}, inOnePass: {}, framing: '' }
  const fieldsOf = (head: object) =>
    Object.fromEntries(
      FIELDS.map(field => [field, (head as Record<string, string | undefined>)[field] ?? '']),
    )
  const app = App().any('/*', (response, request) => {
    const inOnePass = readProxyHead(request)
    heads = {
      byName: fieldsOf(readHead(request, isCrossOrigin)),
      inOnePass: fieldsOf(inOnePass),
      framing: inOnePass.framing,
    }
    response.end('read')
  })
  const socket = await new Promise<object | false>(resolve => app.listen('127.0.0.1', 0, resolve))
  assert.ok(socket)
  return {
    port: us_socket_local_port(socket),
    heads: () => heads,
    stop: () => {
      us_listen_socket_close(socket)
      app.close()
    },
  }
}

test('property: headers read by name and in one pass are the same, whatever comes twice, empty or spelled oddly', async () => {
  for (const isCrossOrigin of [true, false]) {
    const server = await startServer(isCrossOrigin)
    const socket = connect(server.port, '127.0.0.1')
    const ask = (lines: readonly string[]) =>
      new Promise<Heads>(resolve => {
        socket.once('data', () => resolve(server.heads()))
        socket.write(`GET / HTTP/1.1\r\nHost: powgate\r\n${lines.join('')}\r\n`, 'latin1')
      })
    const spelled = fc.constantFrom(
      ...NAMES,
      ...NAMES.map(name => name.toLowerCase()),
      ...NAMES.map(name => name.toUpperCase()),
    )
    const value = fc.constantFrom('', ' ', ' a ', 'a, b', ...words('a keep-alive same-origin \xe9\xff " \t.'))
    const line = fc.tuple(spelled, value).map(([name, text]) => `${name}:${text}\r\n`)
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 12 }), async lines => {
        const { byName, inOnePass } = await ask(lines)
        const asked = isCrossOrigin ? FIELDS.filter(field => field !== 'authorization') : FIELDS.slice(3)
        for (const field of asked) assert.equal(inOnePass[field], byName[field], field)
      }),
      seeded(2000),
    )
    socket.destroy()
    server.stop()
  }
})

test('two lengths of one body are ambiguous behind a proxy', async () => {
  const server = await startServer(true)
  const socket = connect(server.port, '127.0.0.1')
  for (const [lines, framing] of [
    ['Content-Length: 0', 'length'],
    ['Content-Length: 0\r\nContent-Length: 0', 'ambiguous'],
  ]) {
    await new Promise(resolve => {
      socket.once('data', resolve)
      socket.write(`POST / HTTP/1.1\r\nHost: powgate\r\n${lines}\r\n\r\n`)
    })
    assert.equal(server.heads().framing, framing, lines)
  }
  socket.destroy()
  server.stop()
})
