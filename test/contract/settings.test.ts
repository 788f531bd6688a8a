/**
 * What settings change of the contract (docs/reference/contract.md, § are its sections): trusted proxies, and what the networks behind
 * them pay; rotated secrets, a larger body, lifetimes. "Decided" is what the contract leaves open, and powgate has chosen.
 */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintToken, readToken } from '../../src/domain/token.ts'
import { Client, HONEST_ENVIRONMENT, type Sender } from '../harness/client.ts'
import { seedQuietHours } from '../harness/history.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { ALWAYS_EASY, EASY, STORE_KINDS, TEST_SECRET, TestService } from '../harness/service.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
  assertSiteverified,
  requestsUntilLimited,
} from './answers.ts'
import { padded } from './bodies.ts'
import { onHosts, type Subject, untilAll } from './support.ts'

/** The trusted proxy; `freshAddress` never comes so far. */
const PROXY = '127.255.255.254'
const BODY_BYTES_MAX = 65_536
const NEW_SECRET = 'the secret that took over from the test secret'
/** Proofs a minute that cost an IPv6 /48 nothing (domain/pricing.ts). Up to twice as many cost one bit, up to four times two. */
const FREE_IN_48 = 30

function settingTests(subject: Subject): void {
  const through = (forwardedFor: string | string[], more: Record<string, string> = {}) => {
    return { from: PROXY, headers: { 'X-Forwarded-For': forwardedFor, ...more } }
  }

  /** Solutions, not yet sent, of a visitor at each address. */
  const solvedBy = (addresses: readonly string[], siteKey: string) =>
    Promise.all(
      addresses.map(async address => {
        const sender = through(address)
        return { sender, solution: await subject.client.solved(siteKey, sender) }
      }),
    )

  /**
   * The most bits that any of them is asked for, one after the other: while a busy machine's store misses its deadline, the challenges
   * under way ask for the base alone.
   */
  const mostBitsFor = async (siteKey: string, addresses: readonly string[]) => {
    const bits: number[] = []
    for (const address of addresses) {
      const { status, json, text } = await subject.client.challenge(siteKey, through(address))
      assert.equal(status, 200, text)
      bits.push(json.difficulty)
    }
    return Math.max(...bits)
  }

  const verify = (siteKey: string, solution: object, sender: Sender) =>
    subject.client.verify(siteKey, solution, sender)

  /** Sends a second request in the same segment: the service ends such a connection, and the visitor gets no answer. */
  const verifyAndLeave = async (siteKey: string, solution: object, { headers = {} }: Sender) => {
    const fields = { 'Content-Type': 'application/json', 'X-Site-Key': siteKey, ...headers }
    const lines = Object.entries(fields).map(field => field.join(': '))
    const connection = await RawConnection.open(subject.service.port, PROXY)
    await connection.send(requestText('POST /verify', lines, JSON.stringify(solution)) + requestText('GET /'))
    assert.equal(await connection.answer(), undefined)
  }

  // proxy/spoofing.test.ts has more chains.
  test('§1 rule 5, decided: behind a trusted proxy the visitor is who X-Forwarded-For says, all lines joined', async () => {
    const { siteKey, apiKey } = subject.site
    const ip = '2001:db8::1:0:0:1'
    const chain = ['198.51.100.1', `2001:DB8:0:0:1:0:0:1, ${PROXY}`]
    const token = await subject.client.token(siteKey, through(chain))
    const answer = await subject.client.verifyToken(apiKey, { token, expectedIp: ip })
    assertRedeemed(answer)
    assert.equal(answer.json.ip, ip)
  })

  test('decided: a request id from a trusted proxy comes back, a harmful one does not', async () => {
    const { siteKey, apiKey: secret } = subject.site
    const { client } = subject
    const named = (id: string) => through(freshAddress(), { 'X-Request-Id': id })
    const good = named('a-proxy-named-it')
    for (const answer of [
      await client.challenge(siteKey, good),
      await client.verify(siteKey, '{}', good),
      await client.verifyToken('x', '{}', good),
      await client.siteverify({ secret }, good),
    ])
      assert.equal(answer.headers['x-request-id'], 'a-proxy-named-it')
    for (const harmful of ['a b', '<script>', 'x'.repeat(129)]) {
      const { headers } = await client.challenge(siteKey, named(harmful))
      assert.match(String(headers['x-request-id']), /^[\w-]{8,40}$/)
    }
  })

  test('§4.2 rule 1, decided: an address is bound exactly, IPv6 to all its bits, however it is spelled', async () => {
    const { siteKey } = subject.site
    for (const [solver, neighbour, same] of [
      ['2001:db8:0:7::1', '2001:db8:0:7::2', '2001:0db8:0:7:0::1'],
      ['203.0.113.9', '203.0.113.8', '::ffff:cb00:7109'],
    ] as const) {
      const solution = await subject.client.solved(siteKey, through(solver))
      assertRefused(await verify(siteKey, solution, through(neighbour)), 403, 'ip-mismatch')
      assertPassed(await verify(siteKey, solution, through(same)))
    }
  })

  test('/siteverify takes an IPv6 remoteip by its /64, and IPv4 whole; /verify-token takes both whole', async () => {
    const { siteKey, apiKey: secret } = subject.site
    const solver = '2001:db8:0:a:1:2:3:4'
    const token = await subject.client.token(siteKey, through(solver))
    const ask = (remoteip: string, response = token) =>
      subject.client.siteverify({ secret, response, remoteip })
    for (const other of ['2001:db8:0:b::', '2001:db8::', '203.0.113.9'])
      assertNotSiteverified(await ask(other), 'remoteip-mismatch')
    const masked = { token, expectedIp: '2001:db8:0:a::' }
    assertNotRedeemed(await subject.client.verifyToken(secret, masked), 400, 'ip-mismatch')
    assertSiteverified(await ask(masked.expectedIp))
    const ofV4 = await subject.client.token(siteKey, through('203.0.113.9'))
    assertNotSiteverified(await ask('203.0.113.8', ofV4), 'remoteip-mismatch')
    assertSiteverified(await ask('203.0.113.9', ofV4))
  })

  test('§8, decided: IPv4 counts per address, IPv6 per /64', async () => {
    const { siteKey } = await subject.createSite()
    const askFrom = (address: string) => subject.client.challenge(siteKey, through(address))
    let host = 0
    const fromSame64 = () => askFrom(`2001:db8:0:8::${(++host).toString(16)}`)
    assert.equal((await requestsUntilLimited(fromSame64, 200)).admitted, 30)
    const moreThanLimit = Array.from({ length: 35 }, (_, count) => `198.51.100.${count}`)
    for (const address of ['2001:db8:0:9::1', ...moreThanLimit])
      assert.equal((await askFrom(address)).status, 200)
  })

  test('§2.1, decided: what a known network brings makes no challenge of it harder', async () => {
    const known = { networks: ['2001:db8:a:100::/56'] }
    const { siteKey } = await subject.createSite({ known, usualRate: 100 }) // it is never under attack
    /** The prefix a:1 gives addresses of the known /56, a:2 those of the one beside it in the same /48. */
    const visitor = (prefix: string, index: number) => `2001:db8:${prefix}${10 + index}::1`
    await seedQuietHours(subject.service)
    /** What is asked for after twice as many proofs as are free, which costs a network one bit. */
    const bitsAfterMany = async (prefix: string) => {
      const many = Array.from({ length: 2 * FREE_IN_48 }, (_, index) => visitor(prefix, index))
      const all = await solvedBy(many, siteKey)
      // Requests that a busy worker takes in one tick count each other, and would all be too cheap, so each waits for the one before.
      for (const { sender, solution } of all) await verify(siteKey, solution, sender)
      return mostBitsFor(siteKey, many)
    }
    assert.equal(await bitsAfterMany('a:1'), 16)
    assert.ok((await bitsAfterMany('a:2')) > 16, 'of strangers in the same /48')
    assert.equal(await mostBitsFor(siteKey, [visitor('a:1', 0)]), 16, 'what strangers in its /48 bring')
  })

  /** Visitors in the network 2001:db8:`third`::/48, each in another /56. Each test has such a network of its own. */
  const crowd = (third: string, count: number) =>
    Array.from({ length: count }, (_, index) => `2001:db8:${third}:${index.toString(16)}00::1`)
  /** What new visitors in this /48 are asked for. */
  const bitsIn = (third: string, siteKey: string) => {
    const visitors = ['ffff', 'fff0', 'ff00'].map(end => `2001:db8:${third}:${end}::1`)
    return mostBitsFor(siteKey, visitors)
  }
  let strangers = 0
  /** Another visitor each time, in another IPv4 network, so that neither its address nor its network pays. */
  const stranger = () => through(`198.${strangers % 256}.${strangers++ >> 8}.7`)

  test('§3 fact 1, decided: solutions that are too cheap, of visitors whose score is too low, take no proof out of the count', async () => {
    const { siteKey } = await subject.createSite()
    await seedQuietHours(subject.service)
    // The 50 proofs cost a bit. The 25 others are solved before a raise makes them too cheap. A score that is too low is not counted:
    // if each of the 25 were taken out of the count nevertheless, 25 would be left, which cost nothing.
    const good = await solvedBy(crowd('dd', 50 + 25).slice(0, 50), siteKey)
    const low = await solvedBy(crowd('dd', 50 + 25).slice(50), siteKey)
    for (const { sender, solution } of good) assertPassed(await verify(siteKey, solution, sender))
    const until = Date.now() + 600_000
    await subject.changeSite(siteKey, { raise: { bits: 3, until } })
    const isRaised = ({ json }: Answer) => json.difficulty === EASY.base + 3
    await untilAll('the raise', isRaised, () => subject.client.challenge(siteKey, stranger()))
    const environment = { ...HONEST_ENVIRONMENT, webdriver: true }
    for (const { sender, solution } of low) {
      const answer = await verify(siteKey, { ...solution, environment }, sender)
      assertRefused(answer, 400, 'expired-nonce')
    }
    assert.equal(await bitsIn('dd', siteKey), EASY.base + 3 + 1, 'the raise, and a bit for 50 proofs')
  })

  test('§3 fact 1, decided: visitors who leave before the answer, and proofs at a site with a low maximum, make no neighbour pay', async () => {
    const { siteKey } = await subject.createSite()
    const cheap = await subject.createSite({ difficulty: ALWAYS_EASY })
    await seedQuietHours(subject.service)
    for (const [third, site, send] of [
      ['ab', siteKey, verifyAndLeave],
      ['ac', cheap.siteKey, verify],
    ] as const) {
      // So many proofs, if they counted, would cost two bits.
      for (const { sender, solution } of await solvedBy(crowd(third, 100), site))
        await send(site, solution, sender)
      assert.ok((await bitsIn(third, siteKey)) <= EASY.base + 1, third)
    }
  })

  test('§2.5, §3 fact 1, decided: challenges that one /48 hoards while they are cheap are refused once it sends too many, also if the puzzle changes meanwhile, and its neighbours pay one bit at most', async () => {
    const { siteKey } = await subject.createSite()
    await seedQuietHours(subject.service)
    const hoard = await solvedBy(crowd('ad', 4 * FREE_IN_48), siteKey)
    await subject.changeSite(siteKey, { puzzle: 'hashwx' })
    const isSeen = ({ json }: Answer) => json.algorithm === 'hashwx'
    await untilAll('the puzzle', isSeen, () => subject.client.challenge(siteKey, stranger()))
    const statuses = []
    for (const { sender, solution } of hoard) {
      const answer = await verify(siteKey, solution, sender)
      statuses.push(answer.status)
      if (answer.status === 200) continue
      assertRefused(answer, 400, 'expired-nonce')
      assertRefused(await verify(siteKey, solution, sender), 400, 'nonce-used')
    }
    // 60 pass at once: 30 are free; for the next 30 the price is one bit higher, and a challenge may be one bit too cheap. Then one
    // more passes a second, because the count fades: a busy machine that takes half a minute lets 90 pass.
    const passed = statuses.filter(status => status === 200).length
    assert.deepEqual(new Set(statuses.slice(0, FREE_IN_48)), new Set([200]), `${statuses}`)
    assert.ok(passed < 95, `${passed} passed: ${statuses}`)
    assert.equal(await bitsIn('ad', siteKey), EASY.base, 'proofs of SHA-256 cost nothing in HashWX')
    assert.ok((await bitsIn('ad', (await subject.createSite()).siteKey)) <= EASY.base + 1, '60 are left')
  })

  test('POWGATE_BODY_MAX_BYTES: so many bytes are taken, and one more gives 413', async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    assertRefused(await visitor.verify(padded(solution, BODY_BYTES_MAX + 1)), 413, 'body-too-large')
    assertPassed(await visitor.verify(padded(solution, BODY_BYTES_MAX)))
  })

  test('§2.3, decided: of several master secrets the first signs, all verify, no other does', async () => {
    const reading = readToken(new Keyring([NEW_SECRET]), await subject.visitor().token())
    assert(reading.status === 'genuine')
    const signedBy = (secret: string) => mintToken(new Keyring([secret]), reading.claims)
    const forged = await subject.redeem({ token: signedBy('a secret that was never in the list') })
    assertNotRedeemed(forged, 400, 'invalid-token')
    assertRedeemed(await subject.redeem({ token: signedBy(TEST_SECRET) }))
  })
}

const ENV = {
  POWGATE_TRUSTED_PROXIES: PROXY,
  POWGATE_SECRETS: `${NEW_SECRET},${TEST_SECRET}`,
  POWGATE_BODY_MAX_BYTES: String(BODY_BYTES_MAX),
}
/** One store is enough: the embedded store answers as Redis does (test/store/agreement.test.ts, meters-conformance.ts). */
onHosts([{ store: 'redis', sections: { 'addresses, secrets and bodies': settingTests }, env: ENV }])

/** One worker is enough, because all treat lifetimes alike. */
const ONE = { POWGATE_WORKERS: '1' }

/** Ends the service, and starts another one on its store with other settings. A Redis of its own goes on, so the other shares it. */
async function restarted(service: TestService, env: Record<string, string>): Promise<TestService> {
  await service.end()
  const { POWGATE_DATA_DIR, REDIS_URL } = service.env
  if (REDIS_URL !== undefined) return TestService.start('shared', { REDIS_URL, ...env })
  return TestService.start('embedded', { POWGATE_DATA_DIR: POWGATE_DATA_DIR!, ...env })
}

async function visit({ url }: TestService, siteKey: string): Promise<{ token: string; expiresAt: number }> {
  const from = { from: freshAddress() }
  const client = new Client(url)
  const answer = await client.verify(siteKey, await client.solved(siteKey, from), from)
  assertPassed(answer)
  return answer.json
}

const redeem = ({ url }: TestService, apiKey: string, token: string) =>
  new Client(url).verifyToken(apiKey, { token })

/** Concurrent, because they wait for lifetimes to end. */
describe('lifetimes', { concurrency: true }, () => {
  for (const kind of STORE_KINDS) {
    test(`store ${kind}: a longer lifetime of tokens brings none back, a shorter one ends none`, async () => {
      const short = await TestService.start(kind, { POWGATE_TOKEN_SECONDS: '10', ...ONE })
      const { siteKey, apiKey } = await short.createSite({ difficulty: ALWAYS_EASY })
      const used = await visit(short, siteKey)
      assertRedeemed(await redeem(short, apiKey, used.token))
      const unused = await visit(short, siteKey)
      const long = await restarted(short, { POWGATE_TOKEN_SECONDS: '3600', ...ONE })
      const lasting = await visit(long, siteKey)
      await new Promise(resolve => setTimeout(resolve, unused.expiresAt - Date.now() + 10))
      for (const { token } of [used, unused])
        assertNotRedeemed(await redeem(long, apiKey, token), 400, 'token-expired')
      const again = await restarted(long, { POWGATE_TOKEN_SECONDS: '1', ...ONE })
      await new Promise(resolve => setTimeout(resolve, 1100)) // longer than tokens live by now
      assertRedeemed(await redeem(again, apiKey, lasting.token))
      assertNotRedeemed(await redeem(again, apiKey, lasting.token), 400, 'token-used')
    })
  }

  test('a challenge holds under the lifetimes that it was issued under, and no others', async () => {
    const first = await TestService.start('redis', { POWGATE_CHALLENGE_SECONDS: '60', ...ONE })
    const { siteKey } = await first.createSite({ difficulty: ALWAYS_EASY })
    const from = { from: freshAddress() }
    const client = new Client(first.url)
    const [spent, unspent] = [await client.solved(siteKey, from), await client.solved(siteKey, from)]
    assertPassed(await client.verify(siteKey, spent, from))
    const second = await restarted(first, { POWGATE_CHALLENGE_SECONDS: '600', ...ONE })
    for (const solution of [spent, unspent]) {
      const answer = await new Client(second.url).verify(siteKey, solution, from)
      assertRefused(answer, 400, 'invalid-nonce')
    }
  })

  test('a redemption is remembered for as long as its challenge could yield another token, whatever the host that redeems has set', async () => {
    const long = await TestService.start('redis', { POWGATE_CHALLENGE_SECONDS: '600', ...ONE })
    const { siteKey, apiKey } = await long.createSite({ difficulty: ALWAYS_EASY })
    const { token } = await visit(long, siteKey)
    assert.equal(await long.end('SIGTERM'), 0) // beside a host that lives, other lifetimes are refused
    const lifetimes = { POWGATE_CHALLENGE_SECONDS: '10', POWGATE_TOKEN_SECONDS: '1', ...ONE }
    const short = await TestService.start('shared', { REDIS_URL: long.env.REDIS_URL!, ...lifetimes })
    assertRedeemed(await redeem(short, apiKey, token))
    const [record] = (await long.redis!.ask('keys', '*:r:*')) as string[] // the only redemption's
    const leftSeconds = Number(await long.redis!.ask('ttl', record!))
    assert.ok(leftSeconds >= 600 + 300, `${record} is kept for ${leftSeconds} s`)
  })
})
