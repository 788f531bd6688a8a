/**
 * Headers that claim another address, over real sockets. From an untrusted peer they change nothing. From a trusted
 * proxy the client is the address that the proxy saw. Through real proxies the client is the caller, whatever the
 * headers say.
 */

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Client, type Sender, solutionOf, solve } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy, PROXY_ADDRESS, type ProxyKind } from '../harness/proxies.ts'
import { askAlone, RawConnection } from '../harness/raw-http.ts'
import { ALWAYS_EASY, TestService, type TestSite } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import { challengeRequest, freshProxy, nonceObserver, PROXIES } from './observer.ts'

/** Header lines by which a client may try to be somebody else, or a proxy may be misread. */
interface Spoof {
  readonly about: string
  /** As they go out, in Latin-1. */
  readonly lines: readonly string[]
  /** Whose request it is when a trusted proxy sends the lines. `peer`: the proxy's own; `refused`: the HTTP server takes none such. */
  readonly client: string
}

const xff = (value: string) => `X-Forwarded-For: ${value}`

function row(about: string, lines: string | readonly string[], client: string): Spoof {
  return { about, lines: typeof lines === 'string' ? [lines] : lines, client }
}

const CLIENT = '203.0.113.1'

/** Headers of other products; none is read. */
const OTHER_HEADERS = [
  'Forwarded: for="[2001:db8::1]:80";proto=https, for=203.0.113.1',
  'Via: 1.1 203.0.113.1',
  ...words(
    'X-Real-IP X-Client-IP X-Forwarded Forwarded-For X-Cluster-Client-IP X-Originating-IP X-Remote-Addr',
    'CF-Connecting-IP True-Client-IP Fastly-Client-IP Fly-Client-IP X-Appengine-User-IP X-Azure-ClientIP',
    'Client-IP',
  ).map(name => `${name}: 203.0.113.1`),
]

const SPOOFS: readonly Spoof[] = [
  row('one address', xff('203.0.113.1'), CLIENT),
  row('two lines', [xff('198.51.100.1'), xff('203.0.113.1')], CLIENT),
  row('lines with lists', [xff('1.1.1.1, 2.2.2.2'), xff('3.3.3.3, 203.0.113.1'), xff('10.1.1.1')], CLIENT),
  row('one line between others', ['A: b', xff('203.0.113.1'), 'C: d', xff('10.1.1.1'), 'E: f'], CLIENT),
  row('a name in capitals', 'X-FORWARDED-FOR: 203.0.113.1', CLIENT),
  row('names in two cases', [xff('198.51.100.1'), 'x-forwarded-for: 203.0.113.1'], CLIENT),
  row('a name with underscores', 'X_Forwarded_For: 203.0.113.1', 'peer'),
  row('no space after the colon', 'X-Forwarded-For:203.0.113.1', CLIENT),
  row('many lines', Array<string>(60).fill(xff('203.0.113.1')), CLIENT),
  row('more lines than the server takes', Array<string>(120).fill(xff('203.0.113.1')), 'refused'),
  // One form of each kind: test/addresses/forwarded-for.test.ts has the others.
  row('proxies are passed over', xff('203.0.113.1, 10.1.1.1, 10.2.2.2'), CLIENT),
  row('more proxies than are read', xff('10.1.1.1,'.repeat(399).concat('10.1.1.1')), 'peer'),
  row('more bytes than the server takes', xff('198.51.100.1,'.repeat(2000)), 'refused'),
  row('empty', xff(''), 'peer'),
  row('an empty line before', [xff(''), xff('203.0.113.1')], CLIENT),
  row('an empty line after', [xff('203.0.113.1'), xff('')], CLIENT),
  row('brackets and a port', xff('[2001:db8::1]:443'), '2001:db8::1'),
  row('tabs around', xff('\t203.0.113.1\t'), CLIENT),
  row('a no-break space inside', xff('203.0.113.1\xa0, 10.1.1.1'), 'peer'),
  row('a vertical tab', xff('203.0.113.1\x0b, 10.1.1.1'), 'refused'),
  row('a NUL', xff('203.0.113.1\x00'), 'refused'),
  row('a lone line feed', `${xff('198.51.100.1')}\n${xff('203.0.113.1')}`, 'refused'),
  row('a lone carriage return', `${xff('198.51.100.1')}\r${xff('203.0.113.1')}`, 'refused'),
  row('a folded line', [xff('198.51.100.1'), ' , 203.0.113.1'], 'refused'),
  row('a space before the colon', 'X-Forwarded-For : 203.0.113.1', 'refused'),
  row('a space before the name', ' X-Forwarded-For: 203.0.113.1', 'refused'),
  row('very long', xff('1'.repeat(3900)), 'peer'),
  row('headers of other products', OTHER_HEADERS, 'peer'),
]

const ENV = {
  POWGATE_TRUSTED_PROXIES: `${PROXY_ADDRESS},${PROXIES},10.0.0.0/8`, // the last for chains of several proxies
  // Many rows have the same client.
  POWGATE_LIMIT_CHALLENGE_ADDRESS: '1000000',
  POWGATE_LIMIT_VERIFY_ADDRESS: '1000000',
  POWGATE_LIMIT_REDEEM_ADDRESS: '1000000',
}

const createSite = (service: TestService) => service.createSite({ difficulty: ALWAYS_EASY })

/** The HTTP server says nothing to most requests that it cannot read, and closes after ten seconds. */
async function assertRefused(port: number, from: string, request: string): Promise<void> {
  const answer = await askAlone(port, from, request)
  assert.ok(answer === undefined || [400, 431].includes(answer.status), `${answer?.status} ${answer?.body}`)
}

const service = await TestService.start('embedded', ENV)
const client = new Client(service.url)
await service.untilReady(service.url, await createSite(service))

describe('spoofing', { concurrency: true }, () => {
  for (const spoof of SPOOFS) {
    test(`an untrusted peer stays who it is: ${spoof.about}`, () => staysItself(spoof))
    test(`a trusted proxy's client is ${spoof.client}: ${spoof.about}`, () => isClient(spoof))
  }

  /** A challenge fetched with the lines verifies without them, and counts on the same limit. */
  async function staysItself({ lines, client: expected }: Spoof): Promise<void> {
    const site = await createSite(service)
    const peer = freshAddress()
    const plain = challengeRequest(site.siteKey)
    const spoofed = challengeRequest(site.siteKey, lines)
    const isTaken = expected !== 'refused'
    if (!isTaken) await assertRefused(service.port, peer, spoofed)
    const connection = await RawConnection.open(service.port, peer)
    let nonce = ''
    // So many challenges of one site may an address ask for in a minute.
    for (let count = 0; count < 30; count++) {
      const answer = await connection.request(isTaken && count % 2 === 0 ? spoofed : plain)
      assert.equal(answer?.status, 200, answer?.body)
      if (count === 0) nonce = answer!.json.nonce
    }
    assert.equal((await connection.request(plain))?.status, 429)
    if (isTaken) assert.equal((await connection.request(spoofed))?.status, 429)
    connection.close()
    await passes(nonce, site, { from: peer }, peer)
  }

  /** The proxy sends the lines with one request; with another only who the client is. */
  async function isClient({ lines, client: expected }: Spoof): Promise<void> {
    const site = await createSite(service)
    const proxy = freshProxy()
    const spoofed = challengeRequest(site.siteKey, lines)
    if (expected === 'refused') return assertRefused(service.port, proxy, spoofed)
    const answer = await askAlone(service.port, proxy, spoofed)
    assert.equal(answer?.status, 200, answer?.body)
    const ip = expected === 'peer' ? proxy : expected
    const headers: Record<string, string> = expected === 'peer' ? {} : { 'X-Forwarded-For': ip }
    await passes(answer!.json.nonce, site, { from: proxy, headers }, ip)
  }

  async function passes(nonce: string, site: TestSite, sender: Sender, ip: string): Promise<void> {
    const solution = solutionOf(nonce, solve(nonce, ALWAYS_EASY.base))
    const passed = await client.verify(site.siteKey, solution, sender)
    assert.equal(passed.json.passed, true, passed.text)
    const redeemed = await client.verifyToken(site.apiKey, { token: passed.json.token }, sender)
    assert.equal(redeemed.json.ip, ip, redeemed.text)
  }
})

describe('spoofing through real proxies', { concurrency: true }, () => {
  for (const kind of ['nginx', 'haproxy', 'haproxy-v2', 'haproxy-tcp'] satisfies ProxyKind[])
    describe(kind, { concurrency: true }, () => through(kind))
})

function through(kind: ProxyKind): void {
  let service: TestService
  let proxy: FrontProxy
  let site: TestSite
  let isBoundTo: Awaited<ReturnType<typeof nonceObserver>>
  before(async () => {
    service = await TestService.start('embedded', { ...ENV, ...BEHIND[kind] })
    proxy = await FrontProxy.start(kind, service)
    site = await createSite(service)
    await service.untilReady(proxy.url, site)
    isBoundTo = await nonceObserver(proxy.url, site)
  })

  for (const { about, lines, client } of SPOOFS) {
    test(`the client is who calls: ${about}`, async () => {
      const from = freshAddress()
      const answer = await askAlone(proxy.port, from, challengeRequest(site.siteKey, lines))
      if (answer?.status === 200) assert.ok(isBoundTo(answer.json.nonce, from))
      else assert.ok(client === 'refused', `${answer?.status} ${answer?.body}`)
    })
  }
}
