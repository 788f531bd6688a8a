/**
 * Headers that claim another address, over real sockets: from a peer that is no proxy of ours they change nothing; from a
 * trusted proxy the client is who the proxy saw; through real proxies it is who called them, whatever it says.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy, PROXY_ADDRESS, type ProxyKind } from '../harness/proxies.ts'
import { type RawAnswer, RawConnection } from '../harness/raw-http.ts'
import { TestService, type TestSite } from '../harness/service.ts'
import { challengeRequest, NonceObserver, SiteMaker, solutionFor, untilReady } from './observer.ts'
import { SPOOFS, type Spoof, TRUSTED_RANGE } from './spoofs.ts'

/** Each row comes from a proxy of its own, so that none counts on the limit of another. */
const PROXIES = '127.66.0.0/16'
const PER_SITE = 30
/** The HTTP server says nothing to most requests that it cannot read, and closes after ten seconds. */
const REFUSAL_MS = 1500

const ENV = {
  POWGATE_TRUSTED_PROXIES: `${PROXY_ADDRESS},${PROXIES},${TRUSTED_RANGE}`,
  POWGATE_STORE_DEADLINE_MS: '5000',
  // Many rows have the same client.
  POWGATE_LIMIT_CHALLENGE_ADDRESS: '1000000',
  POWGATE_LIMIT_VERIFY_ADDRESS: '1000000',
  POWGATE_LIMIT_REDEEM_ADDRESS: '1000000',
}

let lastProxy = 0

function freshProxy(): string {
  lastProxy++
  return `127.66.${lastProxy >> 8}.${lastProxy & 0xff}`
}

function assertHarmlessId(answer: RawAnswer): void {
  const id = answer.headers['x-request-id']
  if (id !== undefined) assert.match(id, /^[\w.:=+/@-]{1,128}$/)
}

async function assertRefused(port: number, from: string, request: string): Promise<void> {
  const connection = await RawConnection.open(port, from)
  await connection.send(request)
  assert.notEqual((await connection.answerWithin(REFUSAL_MS))?.status, 200)
  connection.close()
}

test('there are at least 60 rows, each with a name of its own', () => {
  assert.ok(SPOOFS.length >= 60, `${SPOOFS.length}`)
  assert.equal(new Set(SPOOFS.map(spoof => spoof.about)).size, SPOOFS.length)
})

describe('spoofing', { concurrency: 8 }, () => {
  let service: TestService
  let sites: SiteMaker
  let client: Client
  before(async () => {
    service = await TestService.start('embedded', ENV)
    sites = await SiteMaker.open(service)
    client = new Client(service.url)
    await untilReady(service.url, await sites.create())
  })
  after(async () => {
    await sites.close()
    await service.stop()
  })

  for (const spoof of SPOOFS) {
    test(`an untrusted peer stays who it is: ${spoof.about}`, () => staysItself(spoof))
    test(`a trusted proxy's client is ${spoof.client}: ${spoof.about}`, () => isClient(spoof))
  }

  /** A challenge fetched with the lines verifies without them, and counts on the same limit. */
  async function staysItself({ lines, client: expected }: Spoof): Promise<void> {
    const { siteKey, apiKey } = await sites.create()
    const peer = freshAddress()
    const plain = challengeRequest(siteKey)
    const spoofed = challengeRequest(siteKey, lines)
    const isTaken = expected !== 'refused'
    if (!isTaken) await assertRefused(service.port, peer, spoofed)
    const connection = await RawConnection.open(service.port, peer)
    let nonce = ''
    for (let count = 0; count < PER_SITE; count++) {
      const answer = await connection.request(isTaken && count % 2 === 0 ? spoofed : plain)
      assert.equal(answer?.status, 200, answer?.body)
      assertHarmlessId(answer!)
      if (count === 0) nonce = answer!.json.nonce
    }
    assert.equal((await connection.request(plain))?.status, 429)
    if (isTaken) assert.equal((await connection.request(spoofed))?.status, 429)
    connection.close()
    await passes(solutionFor(nonce), { siteKey, apiKey }, { from: peer }, peer)
  }

  /** The proxy sends the lines with one request; with another only who the client is. */
  async function isClient({ lines, client: expected }: Spoof): Promise<void> {
    const site = await sites.create()
    const proxy = freshProxy()
    const spoofed = challengeRequest(site.siteKey, lines)
    if (expected === 'refused') return assertRefused(service.port, proxy, spoofed)
    const connection = await RawConnection.open(service.port, proxy)
    const answer = await connection.request(spoofed)
    connection.close()
    assert.equal(answer?.status, 200, answer?.body)
    assertHarmlessId(answer!)
    const ip = expected === 'peer' ? proxy : expected
    const headers: Record<string, string> = expected === 'peer' ? {} : { 'X-Forwarded-For': ip }
    await passes(solutionFor(answer!.json.nonce), site, { from: proxy, headers }, ip)
  }

  async function passes(
    solution: object,
    { siteKey, apiKey }: TestSite,
    from: { from: string; headers?: Record<string, string> },
    ip: string,
  ): Promise<void> {
    const passed = await client.verify(siteKey, solution, from)
    assert.equal(passed.json.passed, true, passed.text)
    const redeemed = await client.verifyToken(apiKey, { token: passed.json.token }, from)
    assert.equal(redeemed.json.ip, ip, redeemed.text)
  }
})

describe('spoofing through real proxies', { concurrency: true }, () => {
  for (const kind of ['nginx', 'haproxy', 'haproxy-v2', 'haproxy-tcp'] satisfies ProxyKind[]) {
    describe(kind, { concurrency: 8 }, () => through(kind))
  }
})

function through(kind: ProxyKind): void {
  let service: TestService
  let proxy: FrontProxy
  let site: TestSite
  let observer: NonceObserver
  before(async () => {
    service = await TestService.start('embedded', { ...ENV, ...BEHIND[kind] })
    proxy = await FrontProxy.start(kind, service)
    const sites = await SiteMaker.open(service)
    site = await sites.create()
    await sites.close()
    await untilReady(proxy.url, site)
    observer = await NonceObserver.create(proxy.url, site)
  })
  after(async () => {
    await proxy?.stop()
    await service?.stop()
  })

  for (const { about, lines, client } of SPOOFS) {
    test(`the client is who calls: ${about}`, async () => {
      const from = freshAddress()
      const connection = await RawConnection.open(proxy.port, from)
      await connection.send(challengeRequest(site.siteKey, lines))
      const answer = await (client === 'refused' ? connection.answerWithin(REFUSAL_MS) : connection.answer())
      connection.close()
      if (answer?.status === 200) {
        assertHarmlessId(answer)
        assert.ok(observer.isBoundTo(answer.json.nonce, from))
      } else {
        assert.ok(client === 'refused', `${answer?.status} ${answer?.body}`)
      }
    })
  }
}
