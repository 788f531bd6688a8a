/** Clients that wait with their body until they are told to send it, and clients that end their sending side with the request. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { heldBack, RawConnection } from '../harness/raw-http.ts'
import { TestService } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import { EASY } from '../release/torture/redemptions.ts'

const PATHS = words(
  '/verify /verify-token /siteverify /recaptcha/api/siteverify /turnstile/v0/siteverify /demo/submit',
)
const WAITING = ['100-continue', '100-Continue', '100-CONTINUE', 'other, 100-Continue']

for (const [how, env] of [
  ['on the embedded store', {}],
  ['on Redis, behind a trusted proxy', { POWGATE_TRUSTED_PROXIES: '127.0.0.1' }],
  ['on Redis, through the relay', { POWGATE_TRUSTED_PROXIES: '10.0.0.1', POWGATE_PROXY_PROTOCOL: 'on' }],
] as const)
  describe(how, () => {
    let service: TestService

    before(async () => {
      const settings = { POWGATE_WORKERS: '1', POWGATE_DEMO: 'on' }
      service = await TestService.start(how.includes('Redis') ? 'redis' : 'embedded', { ...settings, ...env })
      await service.untilReady()
    })
    after(() => service.stop())

    test('Expect: 100-continue, however it is spelled, is answered at once on every POST, before the body', async () => {
      const connection = await RawConnection.open(service.port)
      for (const path of PATHS) {
        const lines = `POST ${path} HTTP/1.1\r\nHost: powgate\r\nContent-Type: application/json\r\nContent-Length: 2\r\n`
        const plain = await connection.request(`${lines}\r\n{}`)
        for (const expect of WAITING) {
          await connection.send(`${lines}Expect: ${expect}\r\n\r\n`)
          const interim = await connection.answer() // none if uWebSockets.js ends the connection first
          assert.equal(interim?.status, 100, `${path} ${expect}`)
          const { status, json } = (await connection.request('{}'))!
          assert.deepEqual([status, json], [plain?.status, plain?.json], `${path} ${expect}`)
        }
        const other = await connection.request(`${lines}Expect: other\r\n\r\n{}`)
        assert.equal(other?.status, plain?.status, path)
      }
      connection.close()
    })

    test('a backend that ends its sending side with the request gets its answer, or gets it by a retry', async () => {
      const client = new Client(service.url)
      const { siteKey, apiKey } = await service.createSite({ difficulty: EASY })
      for (let count = 0; count < 8; count++) {
        const body = JSON.stringify({ token: await client.token(siteKey), idempotencyKey: String(count) })
        const head = `Authorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
        const request = `POST /verify-token HTTP/1.1\r\nHost: powgate\r\n${head}\r\n\r\n${body}`
        const answer = await (await heldBack(service.port, request, true))()
        assert.match(answer, /^HTTP\/1\.1 200 OK[\s\S]+"success":true/)
        assert.equal((await client.verifyToken(apiKey, body)).json.success, true)
      }
    })
  })
