/** Clients that occupy connections: they send slowly, nothing, or requests that cost nothing. Honest clients do not notice. */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { v2Header } from '../harness/proxy-header.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { TestService } from '../harness/service.ts'
import { Visitors } from '../harness/visitors.ts'

const CLIENTS_OF_EACH_KIND = 60
const CONNECTIONS_MAX = 32
const FEW = { POWGATE_WORKERS: '1', POWGATE_CONNECTIONS_MAX: String(CONNECTIONS_MAX) }

const LINE = 'GET /challenge HTTP/1.1\r\nHost: powgate\r\n'
const BODY_HEAD =
  'POST /verify HTTP/1.1\r\nHost: powgate\r\nX-Site-Key: SITE\r\nContent-Type: application/json\r\n'
const UNASKED = 'POST /nothing HTTP/1.1\r\nHost: powgate\r\nContent-Length: 4000\r\n\r\n'
const ANSWERED = 'GET /nothing HTTP/1.1\r\nHost: powgate\r\n\r\n'
const LONG = ANSWERED.replace('nothing', 'widget.js')

/** What is sent at once, and what each second, or at another interval in ms. `SITE` stands for the key of a site. */
const KINDS: Readonly<Record<string, readonly [start: string, drip?: string, everyMs?: number]>> = {
  'header, byte by byte': [`${LINE}X-A: `, 'a'],
  'header, line by line': [LINE, 'X-A: b\r\n', 4000],
  'stops after the request line': ['GET /challenge HTTP/1.1\r\n'],
  'header, byte by byte, after an answer': [`${ANSWERED}${LINE}X-A: `, 'a'],
  'body, byte by byte': [`${BODY_HEAD}Content-Length: 4000\r\n\r\n`, ' '],
  'stops in mid-body': [`${BODY_HEAD}Content-Length: 4000\r\n\r\n{"nonce":`],
  'body in chunks, byte by byte': [`${BODY_HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  'a body that nobody asked for, byte by byte': [UNASKED, ' '],
  'says nothing': [''],
  'says nothing after an answer': [ANSWERED],
}

const [DIRECT, RELAYED] = ['honest visitors are served', 'the same with the PROXY protocol'] as const
const WAYS = {
  [DIRECT]: {},
  [RELAYED]: { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.0.0.1' },
} as const

/** From addresses that are no proxy's, so that no header is expected. */
function honestVisitors({ url }: TestService, siteKey: string): Visitors {
  return new Visitors(async () => {
    const { status, text } = await new Client(url).challenge(siteKey, { from: freshAddress() })
    if (status !== 200) throw new Error(text)
  })
}

describe('slow clients', { concurrency: true }, () => {
  test('while half of all connections are open, a client gets few long answers, which leave theirs open', async () => {
    const { port } = await TestService.start('embedded', FEW)
    const connections = await Promise.all(
      Array.from({ length: 20 }, () => RawConnection.open(port, freshAddress())),
    )
    const statuses: unknown[] = []
    for (let count = 0; count < 4; count++) statuses.push((await connections[0]!.request(LONG))?.status)
    assert.deepEqual(statuses, [200, 200, undefined, undefined])
  })

  for (const [name, env] of Object.entries(WAYS))
    test(`${name}, and slow clients are ended`, async () => {
      const service = await TestService.start('embedded', env)
      const { siteKey } = await service.createSite()
      const header = 'POWGATE_PROXY_PROTOCOL' in env ? v2Header() : ''
      const open = new Map<object, string>()
      for (const [kind, [start, drip, everyMs = 1000]] of Object.entries(KINDS))
        for (let count = 0; count < CLIENTS_OF_EACH_KIND; count++) {
          const socket = connect({ port: service.port, host: '127.0.0.1', noDelay: true }).resume()
          open.set(socket, kind)
          socket.write(header)
          socket.write(start.replace('SITE', siteKey))
          const timer = setInterval(() => drip && socket.write(drip), everyMs)
          socket.on('error', () => {}) // 'close' follows
          socket.once('close', () => {
            clearInterval(timer)
            open.delete(socket)
          })
        }
      const honest = honestVisitors(service, siteKey)
      const meant = () => `${[...new Set(open.values())]}: ended`
      await eventually(60_000, meant, () => open.size === 0) // uWebSockets.js ends them after 8 to 12 s
      await honest.stop()
      assert.ok(honest.served > 10, `${honest.served} served`)
      assert.deepEqual(honest.refused, [])
    })

  for (const way of [DIRECT, RELAYED] as const)
    for (const text of [way === DIRECT ? ANSWERED : '', LINE])
      test(`${way}, while one host takes all connections that it gets, and sends "${text.split('\r')[0]}"`, async t => {
        const service = await TestService.start('embedded', { ...WAYS[way], ...FEW })
        const { siteKey } = await service.createSite()
        const slow = await RawConnection.open(service.port, freshAddress())
        await slow.send(`${BODY_HEAD.replace('SITE', siteKey)}Content-Length: 4000\r\n\r\n`)
        const host = freshAddress()
        let isOn = true
        t.after(() => (isOn = false))
        const hold = async () => {
          while (isOn) {
            const connection = await RawConnection.open(service.port, host).catch(() => undefined)
            for (; isOn && connection?.isClosed === false; await sleep(1000)) await connection.send(text)
            connection?.close()
            await sleep(500)
          }
        }
        const held = Array.from({ length: 2 * CONNECTIONS_MAX }, hold)
        const honest = honestVisitors(service, siteKey)
        await sleep(3900)
        const hesitant = await RawConnection.open(service.port, freshAddress())
        await sleep(100)
        assert.equal((await hesitant.request(ANSWERED))?.status, 404, 'who connects may wait before he asks')
        await slow.send(' '.repeat(4000))
        // Behind the PROXY protocol it is no other than the host's.
        if (way !== RELAYED || text !== LINE)
          assert.equal((await slow.answer())?.status, 400, 'a request in flight is answered')
        await honest.stop()
        isOn = false
        await Promise.all(held)
        assert.ok(honest.served > 10, `${honest.served} served`)
        assert.deepEqual(honest.refused, [])
      })
})
