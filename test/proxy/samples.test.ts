/** The configurations of nginx and HAProxy in the documentation, as they stand there but for addresses, files and times. */

import assert from 'node:assert/strict'
import { request as requestTls } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { QuickClient } from '../contract/support.ts'
import { eventually } from '../support/eventually.ts'
import { freshAddress } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { FrontProxy } from '../support/proxies.ts'
import { RawConnection } from '../support/raw-http.ts'
import { RedisServer } from '../support/redis.ts'
import { Certificates } from '../support/redis-tls.ts'
import { adapted, sample } from '../support/samples.ts'
import { TestService, type TestSite } from '../support/service.ts'
import { NonceObserver } from './observer.ts'

const HOSTS = ['127.0.0.5', '127.0.0.6'] as const
const [BACKENDS, BACKEND] = ['127.77.0.0/16', '127.77.0.1']
const NAME = 'captcha.example.com'
const FORGED = { 'X-Forwarded-For': '203.0.113.66' }

/** The redemption paths, and what a server might take for one of them. */
const REDEMPTION_PATHS = [
  '/verify-token',
  '/siteverify',
  '/verify-token?a=b',
  '/siteverify?',
  '/verify-token/',
  '//verify-token',
  '/./verify-token',
  '/a/../verify-token',
  '/verify%2Dtoken',
  '/verify-token%3Fa',
  '/verify-token#a',
  '/verify-token;a',
  '/Verify-Token',
  `http://${NAME}/verify-token`,
]

/** Two hosts on one Redis, each with the settings that HAProxy needs. */
class Stage {
  port = 0
  adminPort = 0
  hosts: TestService[] = []
  site: TestSite = { siteKey: '', apiKey: '' }
  #redis: RedisServer | undefined

  async start(): Promise<void> {
    this.#redis = await RedisServer.start()
    this.port = await freePort()
    this.adminPort = await freePort()
    for (const host of HOSTS) {
      const lines = adapted(sample('sh', 'POWGATE_UNREADY_SECONDS'), {
        '10.0.0.5': host,
        '9090': String(this.adminPort),
      })
      const settings = Array.from(lines.matchAll(/^(\w+)=(\S+)/gm), ([, name, value]) => [name, value])
      this.hosts.push(
        await TestService.start('embedded', {
          ...Object.fromEntries(settings),
          HOST: host,
          PORT: String(this.port),
          REDIS_URL: this.#redis.url,
          POWGATE_TRUSTED_PROXIES: '127.0.0.1',
          POWGATE_STORE_DEADLINE_MS: '5000',
          POWGATE_DRAIN_SECONDS: '10',
        }),
      )
    }
    this.site = await this.hosts[0]!.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
  }

  async stop(): Promise<void> {
    for (const host of this.hosts) await host.stop()
    await this.#redis?.stop()
  }

  async nginx(isOfTwo: boolean): Promise<FrontProxy> {
    const one = sample('nginx', 'server 127.0.0.1:8080')
    const two = sample('nginx', 'server 10.0.0.6:8080')
    const more = /^server \{\n([\s\S]*)^\}/m.exec(two)![1]!
    const both = one.replace(UPSTREAM, UPSTREAM.exec(two)![0]).replace('  location / {', `${more}$&`)
    const port = await freePort()
    const plain = (isOfTwo ? both : one).replaceAll(/^ *ssl_certificate.*\n/gm, '')
    const config = adapted(plain, {
      'listen 443 ssl': `listen 127.0.0.1:${port}`,
      '10.0.0.0/24': BACKENDS,
      ...(isOfTwo
        ? {
            '10.0.0.5:8080': `${HOSTS[0]}:${this.port}`,
            '10.0.0.6:8080': `${HOSTS[1]}:${this.port}`,
            'proxy_connect_timeout 1s': 'proxy_connect_timeout 20s',
            'proxy_read_timeout 2s': 'proxy_read_timeout 20s',
          }
        : { '127.0.0.1:8080': `${HOSTS[0]}:${this.port}` }),
    })
    return FrontProxy.run('nginx', port, config)
  }

  async haproxy(): Promise<FrontProxy> {
    const port = await freePort()
    const config = adapted(sample('haproxy', 'mode http'), {
      'bind :443 ssl crt /etc/haproxy/captcha.example.com.pem': `bind 127.0.0.1:${port}`,
      '10.0.0.0/24': BACKENDS,
      '10.0.0.5:8080': `${HOSTS[0]}:${this.port}`,
      '10.0.0.6:8080': `${HOSTS[1]}:${this.port}`,
      'port 9090': `port ${this.adminPort}`,
      'timeout server 2s': 'timeout check 20s\n  timeout server 20s',
    })
    return FrontProxy.run('haproxy', port, config)
  }

  /** Of nginx behind a CDN, which has the client's certificate of these; and beside it a server that asks for none. */
  async behindCdn(certificates: Certificates): Promise<FrontProxy> {
    const port = await freePort()
    const server = adapted(sample('nginx', 'ssl_verify_client'), {
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      '/etc/ssl/captcha.example.com.pem': certificates.serverCert,
      '/etc/ssl/captcha.example.com.key': certificates.serverKey,
      '/etc/ssl/cdn-client-ca.pem': certificates.ca,
    })
    const upstream = UPSTREAM.exec(sample('nginx', 'server 127.0.0.1:8080'))![0]
    const other = server.replace(NAME, 'other.example').replaceAll(/^ *ssl_(verify|client).*\n/gm, '')
    const config = upstream.replace('127.0.0.1:8080', `${HOSTS[0]}:${this.port}`) + server + other
    return FrontProxy.run('nginx', port, config)
  }
}

const UPSTREAM = /^upstream powgate \{[^}]*\}\n/m

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

describe('samples of the documentation', () => {
  const stage = new Stage()
  before(() => stage.start())
  after(() => stage.stop())

  for (const front of ['nginx', 'nginx for two hosts', 'haproxy'] as const) {
    describe(front, () => {
      let proxy: FrontProxy
      before(async () => {
        proxy = await (front === 'haproxy' ? stage.haproxy() : stage.nginx(front !== 'nginx'))
      })
      after(() => proxy?.stop())

      test('a visitor is who calls, and cannot redeem; a backend can', () =>
        keepsVisitorsOut(proxy, stage.site))
      if (front !== 'nginx')
        test('no request fails while a host restarts', () => survivesRestart(proxy, stage))
    })
  }

  test('nginx behind a CDN believes the holder of the certificate alone', async () => {
    const certificates = new Certificates({ names: `DNS:${NAME}` })
    const others = new Certificates({ names: `DNS:${NAME}` })
    const proxy = await stage.behindCdn(certificates)
    try {
      const visitor = '203.0.113.7'
      const ask = (options: TlsRequest) =>
        askTls(proxy.port, { ...options, siteKey: stage.site.siteKey, visitor })
      const direct = `http://${HOSTS[0]}:${stage.port}`
      const observer = await NonceObserver.create(direct, stage.site)
      const { status, json } = await ask({ certificate: certificates.clientOptions })
      assert.equal(status, 200)
      assert.ok(observer.isBoundTo(json.nonce, visitor))
      assert.equal((await ask({})).status, 400)
      assert.equal((await ask({ certificate: others.clientOptions })).status, 400)
      assert.equal((await ask({ servername: 'other.example' })).status, 421)
      for (const path of ['/verify-token', '/siteverify'])
        assert.equal((await ask({ certificate: certificates.clientOptions, path })).status, 403)
    } finally {
      await proxy.stop()
      certificates.remove()
      others.remove()
    }
  })
})

async function keepsVisitorsOut(proxy: FrontProxy, site: TestSite): Promise<void> {
  const client = new QuickClient(proxy.url)
  const visitor = freshAddress()
  const observer = await NonceObserver.create(proxy.url, site)
  const { json } = await client.challenge(site.siteKey, { from: visitor, headers: FORGED })
  assert.ok(observer.isBoundTo(json.nonce, visitor))
  const token = await client.token(site.siteKey, { from: visitor })
  const body = JSON.stringify({ token, secret: site.apiKey, response: token })
  for (const path of REDEMPTION_PATHS) {
    const lines = [`POST ${path} HTTP/1.1`, `Host: ${NAME}`, `Authorization: Bearer ${site.apiKey}`]
    lines.push('Content-Type: application/json', `Content-Length: ${body.length}`, '', body)
    const connection = await RawConnection.open(proxy.port, visitor)
    const answer = await connection.request(lines.join('\r\n'))
    connection.close()
    assert.doesNotMatch(answer?.body ?? '', /"success"/, path)
    if (/^\/(verify-token|siteverify)(\?|$)/.test(path)) assert.equal(answer?.status, 403, path)
  }
  const redeemed = await client.verifyToken(site.apiKey, { token, expectedIp: visitor }, { from: BACKEND })
  assert.equal(redeemed.status, 200, redeemed.text)
}

async function survivesRestart(proxy: FrontProxy, { hosts, site }: Stage): Promise<void> {
  const client = new QuickClient(proxy.url)
  const failures: string[] = []
  let passed = 0
  let isOver = false
  const visits = async () => {
    while (!isOver) {
      const from = freshAddress()
      try {
        const answer = await client.verify(site.siteKey, await client.solved(site.siteKey, { from }), {
          from,
        })
        if (answer.json?.passed === true) passed++
        else failures.push(`${answer.status} ${answer.text}`)
      } catch (error) {
        failures.push(String(error))
      }
      await pause(20)
    }
  }
  const lanes = [visits(), visits()]
  const more = async () => {
    const before = passed
    await eventually(30_000, 'visitors pass', () => passed >= before + 20)
  }
  try {
    await more()
    await hosts[0]!.end('SIGTERM')
    await more()
    await hosts[0]!.boot()
    await more()
  } finally {
    isOver = true
    await Promise.all(lanes)
    assert.deepEqual(failures, [], `${failures.join('\n')}\n${proxy.output}`)
  }
}

interface TlsRequest {
  readonly certificate?: { readonly cert: Buffer; readonly key: Buffer }
  readonly servername?: string
  readonly path?: string
}

/** As a CDN asks for a visitor, who has added a header that it passes on. */
function askTls(
  port: number,
  {
    certificate,
    servername = NAME,
    path = '/challenge',
    siteKey,
    visitor,
  }: TlsRequest & { siteKey: string; visitor: string },
): Promise<{ status: number | undefined; json: { nonce: string } }> {
  const headers = { Host: NAME, 'X-Site-Key': siteKey, 'CF-Connecting-IP': visitor, ...FORGED }
  const options = {
    host: '127.0.0.1',
    port,
    servername,
    path,
    headers,
    rejectUnauthorized: false,
    ...certificate,
  }
  return new Promise((resolve, reject) => {
    const request = requestTls({ ...options, agent: false }, response => {
      let text = ''
      response.on('data', chunk => (text += chunk))
      response.on('end', () => {
        const isJson = response.headers['content-type'] === 'application/json'
        resolve({ status: response.statusCode, json: isJson ? JSON.parse(text) : {} })
      })
    })
    request.once('error', reject)
    request.end()
  })
}
