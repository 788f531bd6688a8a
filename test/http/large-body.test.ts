/** What happens to a connection on which a body comes that is too large. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy } from '../harness/proxies.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { TestService } from '../harness/service.ts'

const SITE_KEY = `site_${'0'.repeat(22)}`

function post(...lines: string[]): string {
  const head = ['POST /verify HTTP/1.1', 'Host: powgate', `X-Site-Key: ${SITE_KEY}`]
  return [...head, 'Content-Type: application/json', ...lines, '', ''].join('\r\n')
}

describe('a body that is too large', () => {
  let service: TestService
  before(async () => {
    service = await TestService.start('embedded', BEHIND.nginx)
  })
  after(() => service.stop())

  test('is taken and thrown away, and the connection goes on', async () => {
    const connection = await RawConnection.open(service.port, freshAddress())
    for (const bytes of [8193, 100_000, 1_000_000]) {
      const answer = await connection.request(post(`Content-Length: ${bytes}`), 'x'.repeat(bytes))
      assert.equal(answer?.status, 413, answer?.body)
      assert.equal(answer?.headers.connection, undefined)
    }
    assert.equal((await connection.request('GET /none HTTP/1.1\r\nHost: powgate\r\n\r\n'))?.status, 404)
    connection.close()
  })

  test('is not taken without end', async () => {
    const connection = await RawConnection.open(service.port, freshAddress())
    await connection.send(post('Transfer-Encoding: chunked'))
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    await connection.send(...Array<string>(17).fill(chunk))
    const answer = await connection.answer()
    assert.equal(answer?.status, 413)
    assert.equal(answer?.headers.connection, 'close')
    assert.equal(await connection.answer(), undefined, 'the connection is closed')
  })

  test('is answered through nginx, of any size that nginx passes on', async () => {
    const proxy = await FrontProxy.start('nginx', service)
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const connection = await RawConnection.open(proxy.port, freshAddress())
        const bytes = 20_000 * (index + 1)
        const answer = await connection.request(post(`Content-Length: ${bytes}`) + 'x'.repeat(bytes))
        assert.equal(answer?.status, 413, answer?.body)
        assert.equal(answer?.json.code, 'body-too-large')
        connection.close()
      }),
    )
    await proxy.stop()
  })
})
