/** The admin port: accepted and refused hosts and methods, and how much of its time one client can take. */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { pino } from 'pino'
import { isLoopback } from '../../src/addresses/address.ts'
import { type AdminRoute, isLocalName, startAdminServer } from '../../src/admin/admin-server.ts'
import { recordsRoute } from '../../src/admin/records-route.ts'
import { loadConfig } from '../../src/config/config.ts'
import { eventually } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { askAlone } from '../harness/raw-http.ts'
import { words } from '../harness/values.ts'

const logged: string[] = []
const log = pino({}, { write: (line: string) => void logged.push(line) })

const routes: AdminRoute[] = [
  { path: '/echo', handle: (_request, response, query) => void response.end(`query ${query.get('a')}`) },
  { path: '/broken', handle: () => assert.fail('a fault of this route') },
  {
    path: '/half',
    async handle(_request, response) {
      response.write('half an answer')
      throw new Error('a fault in the middle')
    },
  },
]

/** Serves until the test ends, or all tests. @param hosts are given off loopback */
async function serving(
  t: { after(end: () => void): void },
  paths: AdminRoute[] = [],
  hosts?: readonly string[],
  isReady = true,
) {
  const always = { isHealthy: () => true, askStats: async () => {}, workersWanted: () => 1 }
  const supervisor = { ...always, isReady: () => isReady }
  const port = await freePort()
  const adminHost = hosts === undefined ? '127.0.0.1' : '0.0.0.0'
  const place = { adminHost, adminHosts: [...(hosts ?? [])], adminPort: port }
  const server = (await startAdminServer(place, supervisor, paths, log))!
  t.after(() => server.close().closeAllConnections())
  const connected = (count: number) =>
    Array.from({ length: count }, () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      t.after(() => socket.destroy())
      return socket
    })
  const url = `http://127.0.0.1:${port}`
  const statusOf = async (path: string, headers: Record<string, string> = {}) =>
    (await call(url + path, { headers })).status
  return { port, url, statusOf, connected }
}

const { port, url } = await serving({ after }, routes)

describe('the admin port', { concurrency: true }, () => {
  test('answers GET and HEAD with headers that keep it out of caches and from being guessed at', async t => {
    for (const path of ['/healthz', '/readyz', '/echo?a=b%20c', '/nothing', '/broken']) {
      const got = await call(`${url}${path}`)
      assert.equal(got.headers['cache-control'], 'no-store', path)
      assert.equal(got.headers['x-content-type-options'], 'nosniff', path)
      assert.equal(got.headers['access-control-allow-origin'], undefined)
      const head = await call(`${url}${path}`, { method: 'HEAD' })
      assert.deepEqual([head.status, head.text], [got.status, ''], path)
    }
    assert.equal((await call(`${url}/echo?a=b%20c`)).text, 'query b c')
    assert.deepEqual((await call(`${url}/healthz?x`)).json, { ok: true })
    assert.equal((await call(`${url}/nothing`)).json.code, 'not-found')
    const starting = await serving(t, [], undefined, false)
    const unready = await call(`${starting.url}/readyz`)
    assert.deepEqual([unready.status, unready.json], [503, { ok: false }])
  })

  test('refuses other methods, other paths, and says what there is', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE']) {
      const body = /^P/.test(method) ? { body: 'x' } : {}
      const answer = await call(`${url}/healthz`, { method, ...body })
      assert.deepEqual([answer.status, answer.json.code], [405, 'method-not-allowed'], method)
      assert.equal(answer.headers.allow, 'GET, HEAD')
    }
    for (const path of words('/ /health /healthz/ /metrics/../healthz //healthz /HEALTHZ /%68ealthz'))
      assert.equal((await asked(path, 'Host: localhost'))?.status, 404, path)
  })

  test('a fault of a route is a 500 and in the log; one in the middle of an answer breaks it off', async () => {
    const answer = await call(`${url}/broken`)
    assert.deepEqual([answer.status, answer.json.code], [500, 'internal'])
    assert.doesNotMatch(answer.text, /fault of this route/)
    assert.ok(logged.some(line => line.includes('a fault of this route') && line.includes('/broken')))
    await assert.rejects(call(`${url}/half`))
    assert.equal((await call(`${url}/healthz`)).status, 200)
  })

  test('only names that lead here are answered: no web page can point a name of its own at it', async () => {
    const statusFor = async (header: string) => (await asked('/healthz', header))?.status
    const own = words(
      `127.0.0.1 127.0.0.1:${port} 10.1.2.3:1 [::1] [::1]:${port} localhost LOCALHOST:${port}`,
      'a.localhost pow.gate.localhost:80',
    )
    const others = words(
      'evil.example evil.example:80 localhost.evil.example notlocalhost 127.0.0.1.evil.example',
      '0x7f000001 127.1 [::1 [evil] localhost:80:90 127.0.0.1@evil.example 256.0.0.1',
    )
    for (const host of own) assert.equal(await statusFor(`Host: ${host}`), 200, host)
    for (const host of ['', ...others]) assert.equal(await statusFor(`Host: ${host}`), 403, host)
    assert.equal(await statusFor('X-Other: no host'), 400)
  })

  test('Expect: 100-continue is answered at once, before the body; any other with 417', async () => {
    for (const [expect, status] of Object.entries({ '100-Continue': 100, other: 417 })) {
      const head = `Host: localhost\r\nContent-Length: 2\r\nExpect: ${expect}`
      const answer = await askAlone(port, undefined, `POST /healthz HTTP/1.1\r\n${head}\r\n\r\n`)
      assert.equal(answer?.status, status)
    }
  })

  /** The answer to a request with this header. */
  function asked(path: string, header: string) {
    return askAlone(port, undefined, `GET ${path} HTTP/1.1\r\n${header}\r\n\r\n`)
  }
})

test('connections that ask nothing lose their place: a check of health is answered beside 400 of them', async t => {
  const { statusOf, connected } = await serving(t)
  const sockets = connected(400)
  const isHealthy = async () => {
    const startedAtMs = performance.now()
    assert.equal(await statusOf('/healthz'), 200)
    assert.ok(performance.now() - startedAtMs < 4500) // silent connections end after 5 s in any case
  }
  for (let check = 0; check < 5; check++) await isHealthy()
  const closed = () => sockets.filter(({ destroyed }) => destroyed).length
  await eventually(60_000, 'the oldest are closed', () => closed() >= 400 - 64) // so many idle ones stay open
  await isHealthy()
})

test('3,000 pipelined requests wait their turn: a check of health is answered first, then a connection with one request', async t => {
  let answered = 0
  const handle: AdminRoute['handle'] = (_request, response) => {
    const endsAtMs = performance.now() + 2 // as much as /metrics computes, or more
    while (performance.now() < endsAtMs);
    answered++
    response.end('counted')
  }
  const { statusOf, connected } = await serving(t, [{ path: '/slow', handle }])
  const sockets = connected(30)
  for (const socket of sockets) socket.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100))
  await eventually(60_000, 'the first answers', () => answered > 0)
  const before = answered
  // /healthz waits for no other, /slow for one request of each connection. Some more are answered meanwhile.
  for (const [path, othersMax] of Object.entries({ '/healthz': 50, '/slow': 300 })) {
    assert.equal(await statusOf(path), 200)
    assert.ok(answered - before < othersMax, `${answered - before} others were answered before`)
  }
})

test('an answer that does not come holds up no other', async t => {
  let isAsked = false
  const handle = () => new Promise<void>(() => (isAsked = true))
  const { statusOf, connected } = await serving(t, [...routes, { path: '/never', handle }])
  connected(1)[0]!.write('GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await eventually(60_000, 'it is asked', () => isAsked)
  assert.equal(await statusOf('/echo'), 200)
})

test('off loopback, too, only addresses and the names of POWGATE_ADMIN_HOSTS are answered', async t => {
  const config = loadConfig({ POWGATE_ADMIN_HOSTS: 'metrics.example., powgate ,stack_powgate' })
  const { statusOf } = await serving(t, [], config.adminHosts)
  const own = '10.1.2.3:9090 Metrics.Example metrics.example.:9090 powgate:9090 stack_powgate localhost'
  for (const Host of words(own)) assert.equal(await statusOf('/healthz', { Host }), 200, Host)
  for (const Host of words('evil.example a.metrics.example powgate.evil.example:9090 :9090'))
    assert.equal(await statusOf('/healthz', { Host }), 403, Host)
})

test('/sites.json answers a program of this machine, and no proxy or page on it', async t => {
  const siteMemory = { records: async () => ({ sites: [], apiKeys: [] }) }
  const { statusOf } = await serving(t, [recordsRoute(siteMemory, () => 'here')])
  assert.equal(await statusOf('/sites.json', { 'Sec-Fetch-Mode': 'cors' }), 200) // as fetch of Node.js sends it
  const names = words(
    'X-Forwarded-For X-Forwarded-Proto X-Envoy-Peer-Metadata X-Request-Id X-Real-IP X-Client-IP True-Client-IP',
    'CF-Connecting-IP Forwarded Via Origin Referer Sec-Fetch-Site Sec-Fetch-Dest',
  )
  for (const name of names) assert.equal(await statusOf('/sites.json', { [name]: 'x' }), 403, name)
})

test('which addresses are loopback', () => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', 'localhost'])
    assert.ok(isLoopback(host), host)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '::2', '::ffff:10.0.0.1', 'example.com', ''])
    assert.ok(!isLoopback(host), host)
  assert.ok(isLocalName('[::ffff:127.0.0.1]:9000'))
})
