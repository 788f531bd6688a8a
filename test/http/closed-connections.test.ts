/** Connections that the service closes leave no memory allocated, inside of JavaScript or outside. Bodies over the limit get 413. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { freshAddress } from '../harness/http.ts'
import { workerPids } from '../harness/processes.ts'
import { BEHIND } from '../harness/proxies.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { ALWAYS_EASY, TestService, UNLIMITED } from '../harness/service.ts'
import { KeptMemory } from '../release/torture/memory.ts'

/** The process' memory changes in steps of 1 MiB, so by chance 131 bytes a connection. With half as many, one run in a hundred failed. */
const CONNECTIONS = 8000
/** After so many connections, code is compiled, and heaps and allocators have found their size. */
const WARM_UP = 4500
/**
 * Bytes that may stay of each connection: of JavaScript's objects, of which an empty one takes 64, and of all memory of the process,
 * in which a connection that leaked left 460. Without a leak both vary by less.
 */
const BYTES_MAX = { living: 40, all: 400 }
/** On a busy machine the memory now and then varies by more, but a leak shows in every try. */
const TIMES_MAX = 6
const LANES = 50
const COLLECTIONS = 5

const CLOSE = 'Connection: close'
const REQUESTS: Readonly<Record<string, (siteKey: string) => string>> = {
  'Connection: close': siteKey => requestText('GET /challenge', [CLOSE, `X-Site-Key: ${siteKey}`]),
  'HEAD and Connection: close': () => requestText('HEAD /openapi.json', [CLOSE]),
  chunks: siteKey => `${post(siteKey, 'Transfer-Encoding: chunked')}4\r\nabcd\r\n0\r\n\r\n`,
  'a body that is too large': siteKey => post(siteKey, 'Content-Length: 20000') + 'a'.repeat(20_000),
}

const proxied = await TestService.start('embedded', BEHIND.nginx) // before the tests, since the first begins while this file loads

test('of connections that are ended nothing is kept', async () => {
  const kept = new KeptMemory()
  const service = await TestService.start('embedded', {
    ...kept.env,
    // The part of the heap for young objects would otherwise grow in steps of 15 MiB.
    NODE_OPTIONS: `${kept.env.NODE_OPTIONS} --max-semi-space-size=1`,
    POWGATE_WORKERS: '1',
    ...UNLIMITED,
    LOG_LEVEL: 'error',
  })
  const { siteKey } = await service.createSite({ difficulty: ALWAYS_EASY })
  const [worker] = workerPids(service.pid)
  const requests = Object.entries(REQUESTS).map(([name, make]) => ({ name, request: make(siteKey) }))
  for (const { request } of requests) await sendAll(service.port, request, WARM_UP / requests.length)
  for (const { name, request } of requests) {
    const tries: string[] = []
    let isKept = true
    while (isKept && tries.length < TIMES_MAX) {
      const before = await memoryOf(kept, worker!)
      await sendAll(service.port, request, CONNECTIONS)
      const after = await memoryOf(kept, worker!)
      const living = (after.living - before.living) / CONNECTIONS
      const all = (after.all - before.all) / CONNECTIONS
      isKept = !(living < BYTES_MAX.living && all < BYTES_MAX.all)
      tries.push(`${Math.round(living)} of objects, ${Math.round(all)} of all`)
    }
    assert.ok(!isKept, `${name}: bytes that are kept of each connection: ${tries.join('; ')}`)
  }
  await service.stop()
})

async function sendAll(port: number, request: string, count: number): Promise<void> {
  let left = count
  const lane = async () => {
    while (left-- > 0) assert.match(await send(port, request), /^HTTP\/1\.1 (?:200|400|413) /)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** @returns the answer; none if the connection was ended without one */
async function send(port: number, request: string): Promise<string> {
  const { socket } = await RawConnection.open(port)
  socket.write(request)
  const [answer = ''] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
  socket.resetAndDestroy() // leaves no port waiting
  return String(answer)
}

/** @returns bytes of JavaScript's objects, and of the process: the least of some measurements, each after its garbage was collected */
async function memoryOf(kept: KeptMemory, pid: number): Promise<{ living: number; all: number }> {
  const [living, all]: [number[], number[]] = [[], []]
  for (let count = 0; count < COLLECTIONS; count++) {
    kept.collect([pid])
    await new Promise(resolve => setTimeout(resolve, 400))
    living.push(kept.kibOf(pid))
    all.push(Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]))
  }
  return { living: 1024 * Math.min(...living), all: 1024 * Math.min(...all) }
}

const NO_SITE = `site_${'0'.repeat(22)}`

const post = (siteKey: string, ...lines: string[]): string =>
  requestText('POST /verify', [`X-Site-Key: ${siteKey}`, 'Content-Type: application/json', ...lines])

test('a body that is too large is read and dropped: 413, and the connection stays open', async () => {
  const connection = await RawConnection.open(proxied.port, freshAddress())
  for (const bytes of [8193, 100_000, 1_000_000]) {
    const answer = await connection.request(post(NO_SITE, `Content-Length: ${bytes}`), 'x'.repeat(bytes))
    assert.equal(answer?.status, 413, answer?.body)
    assert.equal(answer?.headers.connection, undefined)
  }
  assert.equal((await connection.request(requestText('GET /none')))?.status, 404)
  connection.close()
})

test('a body that does not end is cut off', async () => {
  const connection = await RawConnection.open(proxied.port, freshAddress())
  await connection.send(post(NO_SITE, 'Transfer-Encoding: chunked'))
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  await connection.send(...Array<string>(17).fill(chunk)) // a mebibyte is read and dropped, this is more
  const answer = await connection.answer()
  assert.equal(answer?.status, 413)
  assert.equal(answer?.headers.connection, 'close')
  assert.equal(await connection.answer(), undefined, 'the connection is closed')
})
