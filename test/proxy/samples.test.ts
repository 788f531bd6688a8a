/**
 * The configurations of nginx, HAProxy and Apache from the documentation, with only addresses, files and times replaced: visitors
 * are who they are, cannot redeem, and notice no host that restarts, hangs or is attacked.
 */

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { type Call, call, freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { childPids } from '../harness/processes.ts'
import { adapted, apacheBase, FrontProxy, sample } from '../harness/proxies.ts'
import { askAlone, RawConnection } from '../harness/raw-http.ts'
import { RedisServer } from '../harness/redis.ts'
import { Certificates } from '../harness/redis-tls.ts'
import { ALWAYS_EASY, TestService } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import { Visitors } from '../harness/visitors.ts'
import { SECTIONS } from '../release/torture/conformance-rows.ts'
import { nonceObserver } from './observer.ts'

const HOSTS = ['127.0.0.5', '127.0.0.6'] as const
const [BACKENDS, BACKEND] = ['127.77.0.0/16', '127.77.0.1']
const NAME = 'captcha.example.com'
const ATTACKER = '127.9.1.1'
const FORGED = { 'X-Forwarded-For': '203.0.113.66' }

/** The redemption paths, and what a server might take for one of them. */
const REDEMPTION_PATHS = words(
  '/verify-token /siteverify /verify-token?a=b /siteverify? /verify-token/ //verify-token /./verify-token',
  '/a/../verify-token /verify%2Dtoken /verify-token%3Fa /verify-token#a /verify-token;a /Verify-Token',
  `http://${NAME}/verify-token /turnstile/v0/siteverify /recaptcha/api/siteverify`,
)

const HAPROXY = sample('haproxy', 'mode http')
const APACHE = sample('apache', 'ProxyPass')
const NGINX = sample('nginx', 'server 127.0.0.1:8080')
const FOR_TWO_HOSTS = sample('nginx', 'server 10.0.0.6:8080')
const BEHIND_CDN = sample('nginx', 'ssl_verify_client')
/** For two hosts the page has another upstream, and more lines of the server, which go before the locations of the one above. */
const UPSTREAM = /^upstream powgate \{[^}]*\}\n/m
const [upstreamOfTwo] = UPSTREAM.exec(FOR_TWO_HOSTS)!
const [, serverOfTwo] = /^server \{\n([\s\S]*)^\}/m.exec(FOR_TWO_HOSTS)!
const NGINX_TWO = NGINX.replace(UPSTREAM, upstreamOfTwo).replace('  location / {', `${serverOfTwo}$&`)
/** Times that suit a busy machine. */
const PATIENT: Readonly<Record<string, string>> = {
  'connect_timeout 1s': 'connect_timeout 20s',
  'read_timeout 2s': 'read_timeout 20s',
  'timeout server 2s': 'timeout check 20s\n  timeout server 20s',
}

/** For how long an attacker sends odd requests, while other visitors come. */
const HOSTILE_MS = 6000
const LARGE_BODY = 'x'.repeat(900_000)
const headOf = (...lines: readonly string[]) => `${lines.join('\r\n')}\r\n\r\n`
const posted = (line: string, times: number) =>
  headOf('POST /x HTTP/1.1', 'Host: a', `Content-Length: ${LARGE_BODY.length}`, ...Array(times).fill(line)) +
  LARGE_BODY

/** How many milliseconds lie between one visitor's requests, and which these are, in turn. */
const HOSTILE: readonly (readonly [pauseMs: number, requests: readonly string[]])[] = [
  // powgate answers 431 and closes the connection, while the proxy still sends the body.
  [500, [posted(`A: ${'a'.repeat(6000)}`, 3), posted('A: b', 120)]],
  [500, [headOf('GET /challenge HTTP/1.1', 'Host: a', 'X-A: \x01')]], // powgate closes without an answer, if the proxy passes it on
  // Every odd request of the suite of HTTP's rules.
  [20, SECTIONS.flatMap(({ rows }) => rows.map(({ bytes }) => bytes))],
]

/** The CDN's server, and another one beside it that asks for no certificate. */
const NGINX_CDN =
  UPSTREAM.exec(NGINX)![0] +
  BEHIND_CDN +
  BEHIND_CDN.replace(NAME, 'other.example').replaceAll(/^ *ssl_(verify|client).*\n/gm, '')

const certificates = new Certificates({ names: `DNS:${NAME}` })
const redis = await RedisServer.start()
const [hostPort, adminPort] = [await freePort(), await freePort()]

/** Texts of a configuration, and what replaces them: names, files, and the port where the proxy listens, without TLS unless given. */
const namesFor = (port: number, tls = ''): Record<string, string> => ({
  'bind :443,[::]:443 v6only ssl crt /etc/haproxy/captcha.example.com.pem': `bind 127.0.0.1:${port}`,
  '*:443': `127.0.0.1:${port}`,
  'SSLEngine on': 'SSLEngine off',
  '  listen [::]:443 ssl;\n': '',
  'listen 443 ssl': `listen 127.0.0.1:${port}${tls}`,
  '/etc/letsencrypt/live/captcha.example.com/fullchain.pem': certificates.serverCert,
  '/etc/letsencrypt/live/captcha.example.com/privkey.pem': certificates.serverKey,
  '/etc/ssl/cdn-client-ca.pem': certificates.ca,
  '10.0.0.0/24': BACKENDS,
  '127.0.0.1:8080': `${HOSTS[0]}:${hostPort}`,
  '10.0.0.5:8080': `${HOSTS[0]}:${hostPort}`,
  '10.0.0.6:8080': `${HOSTS[1]}:${hostPort}`,
  '10.0.0.5': HOSTS[0],
  '9090': String(adminPort),
})

/** Two hosts on one Redis, each with the settings that HAProxy's page gives; what no page gives is for the tests. */
const hosts: TestService[] = []
const script = adapted(sample('sh', 'POWGATE_UNREADY_SECONDS'), namesFor(0))
for (const host of HOSTS) {
  const ownScript = script.replaceAll(HOSTS[0], host)
  const settings = Array.from(ownScript.matchAll(/^(\w+)=(\S+)/gm), ([, name, value]) => [name, value])
  const env = {
    HOST: host,
    PORT: String(hostPort),
    REDIS_URL: redis.url,
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    POWGATE_FAIL_OPEN_AFTER_SECONDS: '0', // `staysReadable` waits for no outage to last
    POWGATE_DRAIN_SECONDS: '10', // the harness' 1 s would cut off visitors on a busy machine
  }
  hosts.push(await TestService.start('shared', { ...env, ...Object.fromEntries(settings) }))
}
const site = await hosts[0]!.createSite({ difficulty: ALWAYS_EASY })

/** Starts a proxy. @param times what to replace in its configuration for a busy machine */
async function startFront(program: 'nginx' | 'haproxy' | 'apache2', config: string, times = PATIENT) {
  const port = await freePort()
  const names = namesFor(port, config === NGINX_CDN ? ' ssl' : '')
  const base = program === 'apache2' ? apacheBase(port) : ''
  return FrontProxy.run(program, port, base + adapted(config, { ...names, ...times }))
}

describe('samples of the documentation', () => {
  const fronts = { nginx: NGINX, 'nginx for two hosts': NGINX_TWO, haproxy: HAPROXY }
  for (const [front, config] of Object.entries(fronts))
    describe(front, () => {
      const program = front === 'haproxy' ? front : 'nginx'
      let proxy: FrontProxy
      before(async () => {
        proxy = await startFront(program, config)
      })

      test('a visitor is who calls, and cannot redeem; a backend can', () => keepsVisitorsOut(proxy))
      if (front === 'nginx') return // this sample has one host: no other takes over for it
      test('no request fails while a host restarts', () => survivesRestart(proxy))
      describe('with its own times', () => {
        before(async () => {
          await proxy.stop()
          proxy = await startFront(program, config, {})
        })
        test("one visitor's odd requests mark no healthy host as failed", () => staysUp(proxy))
        test('a host that hangs is passed over', () => passesOver(proxy))
        test('hosts without Redis go on from memory; without any host pages can read a 503', () =>
          staysReadable(proxy))
      })
    })

  test('Apache: a visitor is who calls, and cannot redeem; a backend can', async () => {
    await keepsVisitorsOut(await startFront('apache2', APACHE))
  })

  test('nginx behind a CDN believes the holder of the certificate alone', async () => {
    const strangers = new Certificates({ names: `DNS:${NAME}` })
    const proxy = await startFront('nginx', NGINX_CDN)
    const visitor = '203.0.113.7'
    const headers = { Host: NAME, 'X-Site-Key': site.siteKey, 'CF-Connecting-IP': visitor, ...FORGED }
    const ask = (tls: Call['tls'], path = '/challenge') =>
      call(`https://127.0.0.1:${proxy.port}${path}`, { headers, tls: { servername: NAME, ...tls } })
    const ofCdn = certificates.clientOptions
    // The proxy asks for a certificate, which the observer's client has not: it asks the first host.
    const isBoundTo = await nonceObserver(`http://${HOSTS[0]}:${hostPort}`, site)
    const { status, json } = await ask(ofCdn)
    assert.equal(status, 200)
    assert.ok(isBoundTo(json.nonce, visitor))
    assert.equal((await ask({})).status, 400)
    assert.equal((await ask(strangers.clientOptions)).status, 400)
    assert.equal((await ask({ servername: 'other.example' })).status, 421)
    for (const path of ['/verify-token', '/siteverify', '/turnstile/v0/siteverify'])
      assert.equal((await ask(ofCdn, path)).status, 403)
  })
})

async function keepsVisitorsOut(proxy: FrontProxy): Promise<void> {
  const client = new Client(proxy.url)
  const visitor = freshAddress()
  const isBoundTo = await nonceObserver(proxy.url, site)
  const { json } = await client.challenge(site.siteKey, { from: visitor, headers: FORGED })
  assert.ok(isBoundTo(json.nonce, visitor))
  const token = await client.token(site.siteKey, { from: visitor })
  const body = JSON.stringify({ token, secret: site.apiKey, response: token })
  const fields = [`Host: ${NAME}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  for (const path of REDEMPTION_PATHS) {
    const head = headOf(`POST ${path} HTTP/1.1`, `Authorization: Bearer ${site.apiKey}`, ...fields)
    const answer = await askAlone(proxy.port, visitor, head + body)
    assert.doesNotMatch(answer?.body ?? '', /"success"/, path)
    if (/^\/(verify-token|(.+\/)?siteverify)(\?|$)/.test(path)) assert.equal(answer?.status, 403, path)
  }
  const redeemed = await client.verifyToken(site.apiKey, { token, expectedIp: visitor }, { from: BACKEND })
  assert.equal(redeemed.status, 200, redeemed.text)
}

async function survivesRestart(proxy: FrontProxy): Promise<void> {
  const client = new Client(proxy.url)
  const visitors = new Visitors(async () => {
    const from = freshAddress()
    const solution = await client.solved(site.siteKey, { from })
    const { status, text, json } = await client.verify(site.siteKey, solution, { from })
    if (json?.passed !== true) throw new Error(`${status} ${text}`)
  }, 2)
  const more = async () => {
    const { served } = visitors
    await eventually(60_000, 'visitors pass', () => visitors.served >= served + 20)
  }
  try {
    await more()
    await hosts[0]!.end('SIGTERM')
    await more().finally(() => hosts[0]!.boot()) // the next tests need the host
    await more()
  } finally {
    await visitors.stop()
    assert.deepEqual(visitors.refused, [], proxy.output)
  }
}

/** Visitors who come at a steady pace, however long others wait, and ask for a challenge each. */
async function visitorsFor(ms: number, proxy: FrontProxy) {
  const client = new Client(proxy.url)
  const failures: string[] = []
  const visits: Promise<void>[] = []
  let slow = 0
  const visit = async () => {
    const startedAtMs = performance.now()
    const answer = await client.challenge(site.siteKey, { from: freshAddress() }).catch(String)
    if (typeof answer === 'string') failures.push(answer)
    else if (answer.status !== 200) failures.push(String(answer.status))
    if (performance.now() - startedAtMs > 1000) slow++
  }
  const endsAtMs = performance.now() + ms
  while (performance.now() < endsAtMs) {
    visits.push(visit())
    await sleep(50)
  }
  await Promise.all(visits)
  return { count: visits.length, failures, slow }
}

async function staysUp(proxy: FrontProxy): Promise<void> {
  const ending = new AbortController()
  const sent: RawConnection[] = []
  const lanes = HOSTILE.map(async ([pauseMs, requests]) => {
    for (let count = 0; !ending.signal.aborted; count++) {
      const connection = await RawConnection.open(proxy.port, ATTACKER)
      sent.push(connection)
      await connection.send(requests[count % requests.length]!)
      await sleep(pauseMs)
    }
  })
  const visits = visitorsFor(HOSTILE_MS, proxy).finally(() => ending.abort())
  const [{ count, failures }] = await Promise.all([visits, ...lanes])
  for (const connection of sent) connection.close()
  assert.deepEqual(failures, [], `${failures.length} of ${count} visitors: ${failures}\n${proxy.output}`)
}

async function passesOver(proxy: FrontProxy): Promise<void> {
  const { pid } = hosts[1]!
  const pids = [pid, ...childPids(pid)]
  try {
    for (const one of pids) process.kill(one, 'SIGSTOP')
    const first = await visitorsFor(3000, proxy)
    const later = await visitorsFor(5000, proxy)
    assert.deepEqual([...first.failures, ...later.failures], [], proxy.output)
    // Half of them, if it were not passed over.
    assert.ok(later.slow < later.count / 3, `${later.slow} of ${later.count} visitors waited for a second`)
  } finally {
    for (const one of pids) process.kill(one, 'SIGCONT')
  }
}

async function staysReadable(proxy: FrontProxy): Promise<void> {
  const ask = () => new Client(proxy.url).challenge(site.siteKey, { from: freshAddress() })
  const admin = `http://${HOSTS[0]}:${hosts[0]!.env.POWGATE_ADMIN_PORT}`
  redis.freeze()
  try {
    await eventually(60_000, 'no host is ready', async () => (await call(`${admin}/readyz`)).status === 503)
    await sleep(3000) // HAProxy asks each second, so it has seen that too
    assert.equal((await ask()).status, 200, proxy.output)
  } finally {
    redis.thaw()
  }
  try {
    for (const host of hosts) await host.end()
    const { status, json, headers } = await ask()
    assert.deepEqual([status, json.code, json.success], [503, 'unavailable', false])
    assert.deepEqual([headers['retry-after'], headers['access-control-allow-origin']], ['1', '*'])
    assert.equal(headers['content-type'], 'application/json')
  } finally {
    for (const host of hosts) await host.boot()
  }
}
