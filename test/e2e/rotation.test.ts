/**
 * A master secret is replaced on two hosts that share one Redis, while visitors come. The steps are those of docs/deploy.md; at no
 * moment does one host sign with what the other cannot verify, and nothing that was issued before a step is refused after.
 */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce } from '../../src/domain/nonce.ts'
import { readToken } from '../../src/domain/token.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { FrontProxy } from '../harness/proxies.ts'
import { RedisServer } from '../harness/redis.ts'
import { lifetimesOf, TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'

const OLD = 'old secret '.repeat(4).trim()
const NEW = 'new secret '.repeat(4).trim()
const LIFETIME_SECONDS = 10
/** A busy machine is slow. */
const PATIENCE_MS = 120_000

interface Host {
  readonly service: TestService
  readonly proxy: FrontProxy
  readonly client: Client
}

async function startHost(redis: RedisServer, secretsFile: string): Promise<Host> {
  const service = await TestService.start('embedded', {
    REDIS_URL: redis.url,
    POWGATE_WORKERS: '1',
    POWGATE_SECRETS: '',
    POWGATE_SECRETS_FILE: secretsFile,
    POWGATE_CHALLENGE_SECONDS: String(LIFETIME_SECONDS),
    POWGATE_TOKEN_SECONDS: String(LIFETIME_SECONDS),
    POWGATE_TRUSTED_PROXIES: '127.0.0.2',
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_STORE_DEADLINE_MS: '10000', // a pause of a busy machine is no outage
    POWGATE_DRAIN_SECONDS: '10',
  })
  const proxy = await FrontProxy.start('nginx', service, '500ms')
  return { service, proxy, client: new Client(proxy.url) }
}

/** Visitors whose every step goes to a host drawn anew. */
class Visitors {
  served = 0
  /** What was refused, and why. */
  readonly refused: string[] = []
  readonly #hosts: readonly Host[]
  readonly #site: TestSite
  #isOn = true
  readonly #ended: Promise<void>

  constructor(hosts: readonly Host[], site: TestSite) {
    this.#hosts = hosts
    this.#site = site
    this.#ended = this.#come()
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await this.#ended
  }

  async #come(): Promise<void> {
    while (this.#isOn) {
      const startedAtMs = performance.now()
      await this.#visit().catch(error => {
        if (!isOver(startedAtMs)) this.refused.push((error as Error).message)
      })
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }

  async #visit(): Promise<void> {
    const from = freshAddress()
    const { siteKey, apiKey } = this.#site
    const solution = await this.#anyHost().solved(siteKey, { from })
    const verification = await this.#anyHost().verify(siteKey, solution, { from })
    if (verification.json?.passed !== true)
      throw new Error(`/verify: ${verification.status} ${verification.text}`)
    const { token } = verification.json
    const redemption = await this.#anyHost().verifyToken(apiKey, { token, expectedIp: from })
    if (redemption.status !== 200) throw new Error(`/verify-token: ${redemption.status} ${redemption.text}`)
    this.served++
  }

  #anyHost(): Client {
    return this.#hosts[Math.floor(Math.random() * this.#hosts.length)]!.client
  }
}

/** Rolls one host after the other, while visitors come; what was issued before a roll holds after it, on the other host too. */
async function rollEach(hosts: readonly Host[], site: TestSite, visitors: Visitors): Promise<void> {
  for (const [index, { service, client }] of hosts.entries()) {
    const other = hosts[1 - index]!.client
    const from = freshAddress()
    const issuedAtMs = performance.now()
    const token = await client.token(site.siteKey, { from })
    const solution = await client.solved(site.siteKey, { from })
    const rolls = count(service)
    process.kill(service.pid, 'SIGHUP')
    await eventually(PATIENCE_MS, 'a roll', () => count(service) > rolls)
    const verification = await client.verify(site.siteKey, solution, { from })
    const redemption = await other.verifyToken(site.apiKey, { token })
    if (!isOver(issuedAtMs)) {
      assert.equal(verification.json.passed, true, verification.text)
      assert.equal(redemption.status, 200, redemption.text)
    }
    const { served } = visitors
    await eventually(PATIENCE_MS, 'visitors', () => visitors.served > served + 1)
  }
}

function count(service: TestService): number {
  return service.output.split('all workers are new').length
}

/** Whether what was issued then may have expired, on a machine that was too busy. */
function isOver(issuedAtMs: number): boolean {
  return performance.now() - issuedAtMs > (LIFETIME_SECONDS - 1) * 1000
}

test('a secret is replaced on two hosts under load, step by step: nothing is refused', async context => {
  const dir = mkdtempSync(join(tmpdir(), 'powgate-rotation-'))
  const secretsFile = join(dir, 'secrets')
  writeFileSync(secretsFile, OLD)
  const redis = await RedisServer.start()
  const hosts = [await startHost(redis, secretsFile), await startHost(redis, secretsFile)]
  const site = await hosts[0]!.service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
  const visitors = new Visitors(hosts, site)
  context.after(async () => {
    await visitors.stop()
    for (const { service, proxy } of hosts) {
      await proxy.stop()
      await service.stop()
    }
    await redis.stop()
    rmSync(dir, { recursive: true })
  })
  const signer = async () => {
    const token = await hosts[0]!.client.token(site.siteKey, { from: freshAddress() })
    return [OLD, NEW].find(secret => readToken(new Keyring([secret]), token).status === 'genuine')
  }

  // 1. All hosts learn the new secret; the old one signs.
  writeFileSync(secretsFile, `${OLD}\n${NEW}\n`)
  await rollEach(hosts, site, visitors)
  assert.equal(await signer(), OLD)
  // 2. The new one signs; while the hosts change one by one, each verifies both.
  writeFileSync(secretsFile, `${NEW}\n${OLD}\n`)
  await rollEach(hosts, site, visitors)
  assert.equal(await signer(), NEW)
  // 3. When all that the old one signed has expired, it goes.
  await new Promise(resolve => setTimeout(resolve, (LIFETIME_SECONDS + 1) * 1000))
  writeFileSync(secretsFile, `${NEW}\n`)
  await rollEach(hosts, site, visitors)
  await visitors.stop()

  context.diagnostic(`${visitors.served} visitors were served, ${visitors.refused.length} refused`)
  assert.deepEqual(visitors.refused, [])
  assert.ok(visitors.served >= 12)
  await assertOldIsForged(hosts, site)
  for (const { service } of hosts) assert.ok(!service.output.includes(OLD) && !service.output.includes(NEW))
})

/** What the old secret signs now is nobody's: the rotation did happen. */
async function assertOldIsForged(hosts: readonly Host[], site: TestSite): Promise<void> {
  const from = freshAddress()
  const token = await hosts[0]!.client.token(site.siteKey, { from })
  const reading = readToken(new Keyring([NEW]), token)
  assert.ok(reading.status === 'genuine')
  const of = {
    siteKey: site.siteKey,
    storeEpoch: reading.claims.storeEpoch,
    lifetimes: lifetimesOf(hosts[0]!.service.env),
    address: parseAddress(from)!,
  }
  for (const { client } of hosts) {
    for (const [secret, status] of [
      [OLD, 400],
      [NEW, 200],
    ] as const) {
      const nonce = mintNonce(new Keyring([secret]), { issuedAtMs: Date.now(), difficulty: 0 }, of, 1)
      const solution = { nonce, counter: 1, fingerprintHash: FINGERPRINT, environment: HONEST_ENVIRONMENT }
      assert.equal((await client.verify(site.siteKey, solution, { from })).status, status)
    }
  }
}
