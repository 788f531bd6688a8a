/** How the service ends: in order, without losing what is under way; and how it does not stay behind. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { call, closeIdleConnections } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { childPids, isAlive, listeningPids } from '../harness/processes.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { TestService } from '../harness/service.ts'

/** A busy machine is slow. */
const PATIENCE_MS = 30_000

const GET = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n'
const open = ({ port }: TestService) => RawConnection.open(port, '127.0.0.1')

/** The status of the answer, and what it says of the connection. */
async function asked(connection: RawConnection, text: string) {
  const answer = await connection.request(text)
  return [answer?.status, answer?.headers.connection]
}

const PREFLIGHT = 'OPTIONS /challenge HTTP/1.1\r\nHost: a\r\n\r\n'

test('SIGTERM: first not ready, then no listeners, then connections end by their next answer, then exit 0', async () => {
  const adminPort = await freePort()
  const service = await TestService.start('embedded', {
    POWGATE_ADMIN_PORT: String(adminPort),
    POWGATE_UNREADY_SECONDS: '3',
    POWGATE_DRAIN_SECONDS: '60',
  })
  const { siteKey } = await service.createSite()
  const status = async (path: string) => (await call(`http://127.0.0.1:${adminPort}${path}`)).status
  await eventually(PATIENCE_MS, 'ready', async () => (await status('/readyz')) === 200)
  const [used, unused, preflighted, slow] = await Promise.all([1, 2, 3, 4].map(() => open(service)))
  for (const connection of [used!, preflighted!])
    assert.deepEqual(await asked(connection, GET), [404, undefined])
  const head = `POST /verify HTTP/1.1\r\nHost: a\r\nX-Site-Key: ${siteKey}\r\nContent-Type: application/json\r\n`
  await slow!.send(`${head}Content-Length: 2\r\n\r\n{`)
  await call(`${service.url}/nothing`)
  closeIdleConnections()

  const askedAtMs = performance.now()
  process.kill(service.pid, 'SIGTERM')
  await eventually(PATIENCE_MS, 'not ready', async () => (await status('/readyz')) === 503)
  if (performance.now() - askedAtMs < 2500) {
    assert.equal(
      (await call(`${service.url}/nothing`)).status,
      404,
      'it serves until the balancer has noticed',
    )
    assert.deepEqual(await asked(used!, GET), [404, undefined])
  }
  closeIdleConnections()
  await eventually(PATIENCE_MS, 'no listeners', () => listeningPids(service.port).length === 0)
  assert.ok(performance.now() - askedAtMs >= 3000)
  assert.deepEqual([await status('/healthz'), await status('/readyz')], [200, 503])

  await new Promise(resolve => setTimeout(resolve, 500))
  assert.ok(
    ![used, unused, preflighted, slow].some(connection => connection!.isClosed),
    'idle ones stay open',
  )
  assert.deepEqual(await asked(used!, GET), [404, 'close'])
  assert.deepEqual(await asked(preflighted!, PREFLIGHT), [200, 'close'])
  assert.deepEqual(await asked(slow!, '}'), [400, 'close'])
  await eventually(PATIENCE_MS, 'they end', () => used!.isClosed && preflighted!.isClosed && slow!.isClosed)
  assert.equal(await status('/healthz'), 200)
  unused!.close()
  assert.equal(await service.ended(), 0)
  assert.ok(performance.now() - askedAtMs < 40_000, 'it does not wait for what is not there')
  await service.stop()
})

test('SIGINT does not wait for a balancer; what is still connected at the end of the drain time is closed', async () => {
  const service = await TestService.start('embedded', {
    POWGATE_UNREADY_SECONDS: '300',
    POWGATE_DRAIN_SECONDS: '2',
  })
  const idle = await open(service)
  await idle.request(GET)
  const askedAtMs = performance.now()
  assert.equal(await service.end('SIGINT'), 0)
  const tookMs = performance.now() - askedAtMs
  assert.ok(tookMs >= 1900 && tookMs < PATIENCE_MS, `${tookMs} ms`)
  await eventually(PATIENCE_MS, 'it is closed', () => idle.isClosed)
  await service.stop()
})

test('a second signal ends it at once, with exit 1; the same one delivered twice does not', async () => {
  const service = await TestService.start('embedded', { POWGATE_DRAIN_SECONDS: '300' })
  const [idle, used] = [await open(service), await open(service)]
  await Promise.all([idle.request(GET), used.request(GET)])
  const pids = childPids(service.pid)
  process.kill(service.pid, 'SIGTERM')
  process.kill(service.pid, 'SIGINT')
  for (const pid of pids) process.kill(pid, 'SIGTERM') // as a service manager does
  await new Promise(resolve => setTimeout(resolve, 700))
  assert.ok(!idle.isClosed)
  assert.equal((await used.request(GET))?.status, 404)
  await assert.rejects(open(service), { code: 'ECONNREFUSED' })
  process.kill(service.pid, 'SIGTERM')
  assert.equal(await service.ended(), 1)
  await eventually(PATIENCE_MS, 'workers are gone', () => pids.every(pid => !isAlive(pid)))
  await service.stop()
})

test('kill -9 of the primary: the workers leave by themselves, and the next start finds the port free', async () => {
  const service = await TestService.start('embedded')
  const pids = childPids(service.pid)
  assert.equal(pids.length, 2)
  closeIdleConnections()
  process.kill(service.pid, 'SIGKILL')
  await service.ended()
  await service.boot() // at once, as a service manager does
  await eventually(PATIENCE_MS, 'the old workers are gone', () => pids.every(pid => !isAlive(pid)))
  assert.equal((await call(`${service.url}/nothing`)).status, 404)
  await service.stop()
})

test('processes say what they are', async () => {
  const service = await TestService.start('embedded')
  const title = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').replace(/\0.*$/s, '')
  assert.equal(title(service.pid), 'powgate primary')
  assert.deepEqual(childPids(service.pid).map(title).sort(), ['powgate worker 0', 'powgate worker 1'])
  await service.stop()
})
