/** Thousands of random headers on kept connections: all requests are one client's, and count as one. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { seeded } from '../harness/arbitraries.ts'
import { freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy, PROXY_ADDRESS } from '../harness/proxies.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { TestService, type TestSite } from '../harness/service.ts'
import { challengeRequest, NonceObserver, SiteMaker, untilReady } from './observer.ts'

const HEADERS = 3000
const CONNECTIONS = 8
const PER_MINUTE = 4000

const names = fc.constantFrom(
  'X-Forwarded-For',
  'x-forwarded-for',
  'X-FORWARDED-FOR',
  'X-Forwarded-For',
  'Forwarded',
  'X-Real-IP',
  'X-Request-Id',
  'CF-Connecting-IP',
  'True-Client-IP',
  'X-Client-IP',
)
/** All that may stand in a value: no control characters, but any byte beyond ASCII. */
const bytes = fc
  .array(
    fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff }), fc.constant(0x09)),
    {
      maxLength: 60,
    },
  )
  .map(codes => String.fromCharCode(...codes))
const lists = fc
  .array(
    fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV6().map(ip => `[${ip}]:80`),
      fc.constantFrom(PROXY_ADDRESS, `::ffff:${PROXY_ADDRESS}`, '', 'unknown', '127.0.0.1', 'for=1.2.3.4'),
    ),
    { maxLength: 10 },
  )
  .map(list => list.join(', '))
const lines = fc.array(
  fc.tuple(names, fc.oneof(bytes, lists, lists)).map(([name, value]) => `${name}: ${value}`),
  { minLength: 1, maxLength: 4 },
)

const samples = fc.sample(lines, seeded(HEADERS))

/** Sends all requests over a few connections that are kept, and gives the nonces. */
async function challengeAll(port: number, from: string, requests: readonly string[]): Promise<string[]> {
  const nonces: string[] = []
  let next = 0
  const run = async () => {
    let connection = await RawConnection.open(port, from)
    while (next < requests.length) {
      const request = requests[next++]!
      let answer = await connection.request(request)
      if (answer === undefined) {
        // A proxy may end a kept connection after any answer.
        connection = await RawConnection.open(port, from)
        answer = await connection.request(request)
      }
      assert.equal(answer?.status, 200, `${answer?.body} to ${JSON.stringify(request)}`)
      nonces.push(answer!.json.nonce)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, run))
  return nonces
}

for (const front of [undefined, 'nginx', 'haproxy-v2'] as const) {
  describe(`${HEADERS} random headers, ${front === undefined ? 'to the service itself' : `through ${front}`}`, () => {
    let service: TestService
    let proxy: FrontProxy | undefined
    let site: TestSite
    let observer: NonceObserver
    before(async () => {
      service = await TestService.start('embedded', {
        ...BEHIND[front ?? 'nginx'],
        POWGATE_STORE_DEADLINE_MS: '5000',
        POWGATE_LIMIT_CHALLENGE_ADDRESS: String(PER_MINUTE),
        POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: String(PER_MINUTE),
      })
      if (front !== undefined) proxy = await FrontProxy.start(front, service)
      const sites = await SiteMaker.open(service)
      site = await sites.create()
      await sites.close()
      const { url } = proxy ?? service
      await untilReady(url, site)
      observer = await NonceObserver.create(url, site)
    })
    after(async () => {
      await proxy?.stop()
      await service?.stop()
    })

    test('every challenge is for the client that called, and all count on its limit', async () => {
      const { port } = proxy ?? service
      const from = freshAddress()
      const startedAt = performance.now()
      const nonces = await challengeAll(
        port,
        from,
        samples.map(sample => challengeRequest(site.siteKey, sample)),
      )
      assert.equal(nonces.length, HEADERS)
      for (const nonce of nonces) assert.ok(observer.isBoundTo(nonce, from))
      if (performance.now() - startedAt > 50_000) return // the first of them no longer count
      const plain = Array.from({ length: PER_MINUTE - HEADERS }, () => challengeRequest(site.siteKey))
      await challengeAll(port, from, plain)
      if (performance.now() - startedAt > 59_000) return
      const connection = await RawConnection.open(port, from)
      assert.equal((await connection.request(challengeRequest(site.siteKey)))?.status, 429)
      assert.equal((await connection.request(challengeRequest(site.siteKey, samples[0])))?.status, 429)
      connection.close()
    })
  })
}
