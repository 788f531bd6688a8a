/**
 * Requests with another hidden in them, by lengths that two servers may read differently. A proxy in front must refuse them or
 * make them unambiguous: what gets through would come from the proxy, with any X-Forwarded-For the attacker likes.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy, PROXY_ADDRESS } from '../harness/proxies.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { TestService, type TestSite } from '../harness/service.ts'
import { SiteMaker, untilReady } from './observer.ts'

const VICTIM = '203.0.113.50'
const PER_SITE = 30

interface Attack {
  readonly about: string
  /** Header lines, given the bytes of the hidden request. */
  readonly lines: (hiddenBytes: number) => readonly string[]
  /** Stands before the hidden request in the body. */
  readonly before?: string
}

const LAST_CHUNK = '0\r\n\r\n'
const chunked = (...lines: string[]): Pick<Attack, 'lines' | 'before'> => ({
  lines: bytes => lines.map(line => line.replace('N', String(bytes + LAST_CHUNK.length))),
  before: LAST_CHUNK,
})

const ATTACKS: readonly Attack[] = [
  { about: 'two lengths, the first 0', lines: bytes => ['Content-Length: 0', `Content-Length: ${bytes}`] },
  { about: 'two lengths, the last 0', lines: bytes => [`Content-Length: ${bytes}`, 'Content-Length: 0'] },
  { about: 'a list of lengths', lines: bytes => [`Content-Length: 0, ${bytes}`] },
  { about: 'a signed length', lines: bytes => [`Content-Length: +${bytes}`] },
  { about: 'a length with a space before the colon', lines: bytes => [`Content-Length : ${bytes}`] },
  { about: 'a length after a tab', lines: bytes => [`Content-Length:\t${bytes}`] },
  { about: 'a folded length', lines: bytes => ['Content-Length:', ` ${bytes}`] },
  { about: 'a length and chunks', ...chunked('Content-Length: N', 'Transfer-Encoding: chunked') },
  { about: 'chunks and a length', ...chunked('Transfer-Encoding: chunked', 'Content-Length: N') },
  { about: 'chunks by a name that is none', ...chunked('Content-Length: N', 'Transfer-Encoding: xchunked') },
  { about: 'chunks, then identity', ...chunked('Content-Length: N', 'Transfer-Encoding: chunked, identity') },
  {
    about: 'chunks in two lines',
    ...chunked('Content-Length: N', 'Transfer-Encoding: identity', 'Transfer-Encoding: chunked'),
  },
  {
    about: 'chunks with a space before the colon',
    ...chunked('Content-Length: N', 'Transfer-Encoding : chunked'),
  },
  { about: 'chunks after a tab', ...chunked('Content-Length: N', 'Transfer-Encoding:\tchunked') },
  { about: 'chunks after a vertical tab', ...chunked('Content-Length: N', 'Transfer-Encoding: \x0bchunked') },
  {
    about: 'chunks by a name with an underscore',
    ...chunked('Content-Length: N', 'Transfer_Encoding: chunked'),
  },
  { about: 'chunks, folded', ...chunked('Content-Length: N', 'Transfer-Encoding:', ' chunked') },
  {
    about: 'chunks after a lone line feed',
    ...chunked('Content-Length: N', 'A: b\nTransfer-Encoding: chunked'),
  },
]

function attackBytes({ lines, before = '' }: Attack, siteKey: string): string {
  const hidden = [
    'GET /challenge HTTP/1.1',
    'Host: powgate',
    `X-Site-Key: ${siteKey}`,
    `X-Forwarded-For: ${VICTIM}`,
    '',
    '',
  ].join('\r\n')
  const head = ['POST /verify HTTP/1.1', 'Host: powgate', ...lines(hidden.length), '', ''].join('\r\n')
  return head + before + hidden
}

/** Who sends the attacks, straight to powgate or through a proxy. */
const SENDERS = ['nobody trusted', 'a trusted proxy', 'nginx', 'haproxy'] as const

describe('hidden requests', { concurrency: true }, () => {
  for (const sender of SENDERS) {
    const front = sender === 'nginx' || sender === 'haproxy' ? sender : undefined
    describe(`from ${sender}`, () => {
      let service: TestService
      let proxy: FrontProxy | undefined
      let site: TestSite
      before(async () => {
        service = await TestService.start('embedded', {
          ...BEHIND[front ?? 'nginx'],
          POWGATE_STORE_DEADLINE_MS: '5000',
        })
        if (front !== undefined) proxy = await FrontProxy.start(front, service)
        const sites = await SiteMaker.open(service)
        site = await sites.create()
        await sites.close()
        await untilReady(service.url, site)
      })
      after(async () => {
        await proxy?.stop()
        await service?.stop()
      })

      const isUntrusted = sender === 'nobody trusted'
      test(`of ${ATTACKS.length} ${isUntrusted ? 'some get' : 'none gets'} through`, async () => {
        const own = freshAddress()
        await Promise.all(
          ATTACKS.map(async attack => {
            const address = sender === 'a trusted proxy' ? PROXY_ADDRESS : freshAddress()
            const connection = await RawConnection.open((proxy ?? service).port, isUntrusted ? own : address)
            await connection.send(attackBytes(attack, site.siteKey))
            for (let count = 0; count < 2; count++) await connection.answerWithin(1500)
            connection.close()
          }),
        )
        // Whom nobody trusts fools itself alone: the hidden requests count as its own.
        const charged = isUntrusted
          ? { from: own }
          : { from: PROXY_ADDRESS, headers: { 'X-Forwarded-For': VICTIM } }
        const client = new Client(service.url)
        let left = 0
        while ((await client.challenge(site.siteKey, charged)).status === 200) left++
        if (isUntrusted) assert.ok(left < PER_SITE, 'the attacks are none')
        else assert.equal(left, PER_SITE)
      })
    })
  }
})
