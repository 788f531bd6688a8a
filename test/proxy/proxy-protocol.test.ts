/** PROXY protocol headers over real sockets: which client address results, and that clients cannot forge one. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { connectionsOf, workerPids } from '../harness/processes.ts'
import { FrontProxy, PROXY_ADDRESS } from '../harness/proxies.ts'
import { extension, v2Header } from '../harness/proxy-header.ts'
import { askAlone, type RawAnswer, RawConnection } from '../harness/raw-http.ts'
import { ALWAYS_EASY, TestService, UNLIMITED_CHALLENGES } from '../harness/service.ts'
import { challengeRequest, freshProxy, isProxy, nonceObserver, PROXIES } from './observer.ts'

const ENV = { POWGATE_TRUSTED_PROXIES: `${PROXY_ADDRESS},${PROXIES},10.0.0.0/8`, ...UNLIMITED_CHALLENGES }
const SOURCE = '203.0.113.1'
const FORWARDED = '198.51.100.7'
const V6_SOURCE = '20010db8000000000000000000000007'
const LOCAL = v2Header({ command: 0, family: 0 })
const TCP6 = 0x21 // the family IPv6, and a stream
const NOOP = 4 // the type of an extension that receivers pass over
const UNKNOWN = Buffer.from('PROXY UNKNOWN\r\n')
const FORGED = v2Header({ source: '198.51.100.66' })

/** A service, and requests to it, of which each answer tells whom it is for. */
async function startStage(protocol: 'on' | 'off') {
  const service = await TestService.start('embedded', { ...ENV, POWGATE_PROXY_PROTOCOL: protocol })
  const site = await service.createSite({ difficulty: ALWAYS_EASY })
  await service.untilReady(service.url, site)
  const isBoundTo = await nonceObserver(service.url, site)
  const request = (...lines: string[]) => Buffer.from(challengeRequest(site.siteKey, lines))
  /** Whether an answer's challenge is for an address; it must be one. */
  const isFor = (answer: RawAnswer | undefined, ip: string): boolean => {
    assert.equal(answer?.status, 200, answer?.body)
    return isBoundTo(answer!.json.nonce, ip)
  }
  /** Sends these bytes from an address: a challenge that comes, if any, is for that address, as is that of its next connection. */
  async function isForNobodyBut(ip: string, port: number, ...parts: readonly Buffer[]): Promise<void> {
    const connection = await RawConnection.open(port, ip)
    await connection.send(...parts)
    const answer = await connection.answerWithin(1500)
    if (answer?.status === 200) assert.ok(isBoundTo(answer.json.nonce, ip))
    connection.close()
    assert.ok(isFor(await askAlone(port, ip, request()), ip))
  }
  const open = (from: string) => RawConnection.open(service.port, from)
  return { service, open, request, isFor, isForNobodyBut }
}

const on = await startStage('on')
const off = await startStage('off')

function byByte(bytes: Buffer): Buffer[] {
  return Array.from(bytes, byte => Buffer.from([byte]))
}

interface Row {
  readonly about: string
  readonly parts: (request: Buffer) => readonly Buffer[]
  /** Whose request it is; `peer`: the proxy's own. */
  readonly client: string
}

const whole = (header: Buffer) => (request: Buffer) => [Buffer.concat([header, request])]
/** The bytes of header and request in two segments. */
const cutAfter = (bytes: number) => (request: Buffer) => {
  const all = Buffer.concat([v2Header(), request])
  return [all.subarray(0, bytes), all.subarray(bytes)]
}

/** Some forms of headers, whole and cut: test/addresses/proxy-header.test.ts has all forms. */
const ROWS: readonly Row[] = [
  { about: 'IPv4', parts: whole(v2Header()), client: SOURCE },
  { about: 'IPv6', parts: whole(v2Header({ family: TCP6, source: V6_SOURCE })), client: '2001:db8::7' },
  { about: 'LOCAL', parts: whole(LOCAL), client: 'peer' },
  { about: 'extensions', parts: whole(v2Header({ extensions: extension(NOOP, 4096) })), client: SOURCE },
  { about: 'version 1', parts: whole(Buffer.from(`PROXY TCP4 ${SOURCE} 127.0.0.1 1 2\r\n`)), client: SOURCE },
  { about: 'version 1, UNKNOWN', parts: whole(UNKNOWN), client: 'peer' },
  { about: 'a segment of its own', parts: request => [v2Header(), request], client: SOURCE },
  { about: 'every byte in a segment', parts: request => [...byByte(v2Header()), request], client: SOURCE },
  { about: 'a segment with a part of the request', parts: cutAfter(v2Header().length + 40), client: SOURCE },
  { about: 'its last byte with the request', parts: cutAfter(v2Header().length - 1), client: SOURCE },
]

const WRONG: Readonly<Record<string, Buffer>> = {
  'no header': Buffer.alloc(0),
  'no address': v2Header({ addresses: Buffer.alloc(0) }),
  'a length beyond all bounds': v2Header({ length: 65_535 }),
}

describe('PROXY protocol', { concurrency: 8 }, () => {
  for (const { about, parts, client } of ROWS) {
    test(`on, from a trusted proxy: ${about}; also for the next requests of the connection`, async () => {
      const proxy = freshProxy()
      const ip = client === 'peer' ? proxy : client
      const connection = await on.open(proxy)
      assert.ok(on.isFor(await connection.request(...parts(on.request())), ip))
      for (let count = 0; count < 5; count++) assert.ok(on.isFor(await connection.request(on.request()), ip))
      connection.close()
    })

    test(`on, from anybody else: ${about} gains nothing`, async () => {
      const peer = freshAddress()
      await on.isForNobodyBut(peer, on.service.port, ...parts(on.request()))
    })
  }

  for (const [about, bytes] of Object.entries(WRONG)) {
    test(`on, a trusted proxy is refused: ${about}`, async () => {
      const all = Buffer.concat([bytes, on.request()])
      assert.equal(await askAlone(on.service.port, freshProxy(), all), undefined)
    })
  }

  test('on: what is refused is logged, with the proxy and why', async () => {
    await askAlone(on.service.port, freshProxy(), on.request())
    const line = await eventually(60_000, 'a line in the log', () =>
      on.service.output.split('\n').find(text => text.includes('refused connections of a trusted proxy')),
    )
    const { peer, why, count } = JSON.parse(line)
    assert.ok(isProxy(peer), peer)
    assert.equal(typeof why, 'string')
    assert.ok(count >= 1)
  })

  test('on: a header that does not end is waited for a few seconds', async () => {
    const startedAtMs = performance.now()
    assert.equal(await askAlone(on.service.port, freshProxy(), v2Header().subarray(0, 20)), undefined)
    const waitedMs = performance.now() - startedAtMs
    assert.ok(waitedMs > 4000, `${waitedMs} ms`) // 5 s from when the service accepts the connection
  })

  test('on: who connects and goes is no matter, also in the middle of a header', async () => {
    for (let count = 0; count < 20; count++) {
      const connection = await on.open(freshProxy())
      if (count % 2 === 0) await connection.send(v2Header().subarray(0, count))
      connection.close()
    }
    const answer = await askAlone(on.service.port, freshProxy(), v2Header(), on.request())
    assert.ok(on.isFor(answer, SOURCE))
  })

  for (const [about, header, client, isBelieved] of [
    ['the client of a stranger', v2Header(), SOURCE, false],
    ['a client behind LOCAL', LOCAL, 'peer', false],
    ['a client behind version 1, UNKNOWN', UNKNOWN, 'peer', false],
    ['another trusted proxy, behind a balancer for TCP', v2Header({ source: '10.1.1.1' }), FORWARDED, true],
  ] as const)
    test(`on: ${about} is ${isBelieved ? '' : 'not '}believed an X-Forwarded-For and X-Request-Id, on any request`, async () => {
      const proxy = freshProxy()
      const connection = await on.open(proxy)
      const request = on.request(`X-Forwarded-For: ${FORWARDED}`, 'X-Request-Id: mine')
      for (const parts of [[header, request], [request]]) {
        const answer = await connection.request(...parts)
        assert.ok(on.isFor(answer, client === 'peer' ? proxy : client))
        assert.equal(answer?.headers['x-request-id'] === 'mine', isBelieved)
      }
      connection.close()
    })

  test('on: the line about an ignored X-Forwarded-For says that its sender may be a visitor', async () => {
    await askAlone(on.service.port, freshProxy(), v2Header(), on.request(`X-Forwarded-For: ${FORWARDED}`))
    const line = /ignored: its sender is not trusted \(the PROXY header names it as the client/
    await eventually(60_000, 'a line in the log', () => line.test(on.service.output))
  })

  test('on: another program of the machine cannot speak for a visitor whose connection is open', async () => {
    const visitor = await on.open(freshProxy())
    assert.ok(on.isFor(await visitor.request(v2Header(), on.request()), SOURCE))
    // The relay calls the HTTP server on 127.0.0.1, from an alias for each visitor (src/http/proxy-relay.ts).
    const relayed = workerPids(on.service.pid)
      .flatMap(connectionsOf)
      .filter(({ local, peer }) => local !== '127.0.0.1' && peer === '127.0.0.1')
    assert.ok(relayed.length > 0)
    for (const { local, peerPort } of relayed) {
      for (const from of [local, '127.0.0.1']) {
        const connection = await RawConnection.open(peerPort, from)
        const answer = await connection.request(on.request()).catch(() => undefined)
        assert.equal(answer, undefined, `${from} is answered: ${answer?.body}`)
        connection.close()
      }
    }
    assert.ok(on.isFor(await visitor.request(on.request()), SOURCE))
    visitor.close()
  })

  test('off: a header gains nothing, whoever sends it', async () => {
    for (const peer of [freshProxy(), freshAddress()])
      await off.isForNobodyBut(peer, off.service.port, v2Header(), off.request())
  })

  test('on: a client whose bytes are passed on as they are cannot add a header of its own', async () => {
    const proxy = await FrontProxy.start('haproxy-tcp', on.service)
    const from = freshAddress()
    const direct = await on.open(freshProxy())
    await direct.send(v2Header())
    const through = await RawConnection.open(proxy.port, from)
    for (const [connection, ip] of [
      [direct, SOURCE],
      [through, from],
    ] as const) {
      assert.ok(on.isFor(await connection.request(on.request()), ip))
      for (let count = 0; count < 3; count++)
        assert.ok(on.isFor(await connection.request(Buffer.concat([FORGED, on.request()])), ip))
      connection.close()
    }
    // Nor as the first bytes of a connection, in one segment or in two.
    for (const parts of [[Buffer.concat([FORGED, on.request()])], [FORGED, on.request()]])
      await on.isForNobodyBut(from, proxy.port, ...parts)
  })
})
