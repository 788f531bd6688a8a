/** Upgrades under load: workers are replaced, killed, and given new secrets while visitors come. */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Keyring } from '../../src/domain/keyring.ts'
import { readToken } from '../../src/domain/token.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { FREE } from '../harness/load/traffic.ts'
import { storeEpochOf, VISITED_SETTINGS, VisitorLoad } from '../harness/load/visitors.ts'
import { listeningPids, workerPids } from '../harness/processes.ts'
import { FrontProxy, type ProxyKind } from '../harness/proxies.ts'
import { RedisServer } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import {
  lifetimesOf,
  type StoreKind,
  TestService,
  type TestSite,
  UNLIMITED_REDEMPTIONS,
} from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { Visitors } from '../harness/visitors.ts'

const CONNECTIONS = 32
const LOAD_SHARE = 0.6
/** As many rolls, and kills, as meet each worker several times at any moment of its work. */
const ROUNDS = 8
/** Visitors a second. The generator shares the machine with what it loads: what it manages alone for a second, it may not later. */
const RATE_MAX = 1000
/** The machine may have paused while the capacity was measured. */
const RATE_MIN = 100
/** A busy machine is slow; on an idle one a roll takes a second. */
const ROLL_MS_MAX = 120_000

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

async function underLoad(context: TestContext, kind: StoreKind, proxyKind: ProxyKind) {
  const service = await TestService.start(kind, {
    ...VISITED_SETTINGS,
    ...(proxyKind.startsWith('haproxy-') ? { POWGATE_PROXY_PROTOCOL: 'on' } : {}),
    // A pause of a busy machine is no outage.
    POWGATE_STORE_DEADLINE_MS: '10000',
    POWGATE_DRAIN_SECONDS: '10',
  })
  const site = await service.createSite({ difficulty: FREE })
  const proxy = await FrontProxy.start(proxyKind, service, '500ms') // a worker is gone when its last connection is
  await service.untilReady(proxy.url)
  const storeEpoch = await storeEpochOf(proxy.url, site)
  const load = new VisitorLoad({
    port: proxy.port,
    connections: CONNECTIONS,
    reconnects: true,
    site,
    storeEpoch,
    lifetimes: lifetimesOf(VISITED_SETTINGS),
  })
  await load.connect()
  await load.capacity(300) // warms up
  const capacity = await load.capacity(1000)
  const rate = Math.max(RATE_MIN, Math.min(RATE_MAX, capacity * LOAD_SHARE))
  load.setRate(rate)
  await pause(300)
  const stop = async () => {
    await load.stop()
    await proxy.stop()
    await service.stop()
  }
  context.after(stop) // also of a test that failed
  return { service, proxy, load, rate, stop }
}

function rollsOf(service: TestService): number {
  return service.output.split('all workers are new').length - 1
}

/** Resolves when all workers are new and the old ones have gone. */
async function roll(service: TestService): Promise<void> {
  const before = new Set(workerPids(service.pid))
  const rolls = rollsOf(service)
  process.kill(service.pid, 'SIGHUP')
  await eventually(ROLL_MS_MAX, 'all workers are new', () => rollsOf(service) > rolls)
  const after = workerPids(service.pid)
  assert.equal(after.length, before.size)
  assert.ok(after.every(pid => !before.has(pid)))
}

async function untilRedeemed({ answers }: VisitorLoad, count: number): Promise<void> {
  await eventually(ROLL_MS_MAX, `${count} redemptions`, () => answers.redeem > count)
}

for (const { rounds, kind, proxyKind, redeemedMin } of [
  { rounds: ROUNDS, kind: 'embedded', proxyKind: 'nginx', redeemedMin: 50 * ROUNDS },
  { rounds: 3, kind: 'redis', proxyKind: 'haproxy-v2', redeemedMin: 100 },
] as const) {
  test(`${rounds} rolling restarts at 60 % load behind ${proxyKind}, store ${kind}: no request fails`, async context => {
    const { service, load, rate, stop } = await underLoad(context, kind, proxyKind)
    const startedAtMs = performance.now()
    for (let round = 0; round < rounds; round++) await roll(service)
    const seconds = (performance.now() - startedAtMs) / 1000
    await untilRedeemed(load, redeemedMin)
    await stop()
    const text = `${load.sent} requests, ${Math.round(rate)} visitors/s meant, ${Math.round(seconds)} s`
    context.diagnostic(`${rounds} rolls: ${text}; ${load.failures.length} failed`)
    assert.deepEqual(load.failures, [], service.output)
  })
}

interface Kill {
  readonly killedAtMs: number
  /** When its process was seen to be no more. */
  readonly goneAtMs: number
  /** Requests that waited for their answers, of either worker. */
  readonly underWay: number
}

test(`${ROUNDS} kills of a worker at 60 % load behind HAProxy: only what it had under way fails`, async context => {
  const { service, load, rate, stop } = await underLoad(context, 'embedded', 'haproxy')
  const kills: Kill[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = await eventually(ROLL_MS_MAX, 'two workers listen', () => {
      const pids = listeningPids(service.port)
      return pids.length === 2 ? pids : undefined
    })
    const pid = before[round % 2]!
    const [killedAtMs, underWay] = [performance.now(), load.underWay]
    process.kill(pid, 'SIGKILL')
    await eventually(ROLL_MS_MAX, 'it is gone', () => !workerPids(service.pid).includes(pid))
    kills.push({ killedAtMs, goneAtMs: performance.now(), underWay })
    await pause(200)
  }
  await pause(500)
  await untilRedeemed(load, 50 * ROUNDS)
  await stop()
  const { failures } = load
  const underWay = kills.reduce((sum, kill) => sum + kill.underWay, 0)
  context.diagnostic(
    `${ROUNDS} kills: ${load.sent} requests, ${Math.round(rate)} visitors/s meant; ${failures.length} failed, ${underWay} were under way on both workers`,
  )
  for (const failure of failures) {
    const kill = kills.findLast(({ killedAtMs }) => killedAtMs <= failure.failedAtMs)
    assert.ok(kill !== undefined && failure.sentAtMs <= kill.goneAtMs, JSON.stringify({ failure, kills }))
  }
  for (const { killedAtMs, goneAtMs } of kills) {
    const ofKill = failures.filter(
      ({ sentAtMs, failedAtMs }) => failedAtMs >= killedAtMs && sentAtMs <= goneAtMs,
    )
    assert.ok(ofKill.length <= CONNECTIONS, `${ofKill.length} failed`)
  }
})

/*
 * A master secret is replaced by the steps of docs/howto/secrets.md; at no moment does one host sign with what the other cannot
 * verify, and nothing that was issued before a step is refused after. In the last step the old secret goes, when all that it
 * signed has expired.
 */

const OLD = 'old secret '.repeat(4).trim()
const NEW = 'new secret '.repeat(4).trim()

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
    POWGATE_TRUSTED_PROXIES: '127.0.0.2',
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_STORE_DEADLINE_MS: '10000', // a pause of a busy machine is no outage
    POWGATE_DRAIN_SECONDS: '10',
  })
  await service.untilReady()
  const proxy = await FrontProxy.start('nginx', service, '500ms')
  return { service, proxy, client: new Client(proxy.url) }
}

/** Visitors whose every step goes to a host drawn anew. */
function visitorsOf(hosts: readonly Host[], { siteKey, apiKey }: TestSite): Visitors {
  const anyHost = () => hosts[Math.floor(Math.random() * hosts.length)]!.client
  const visit = async () => {
    const from = freshAddress()
    const solution = await anyHost().solved(siteKey, { from })
    const verified = await anyHost().verify(siteKey, solution, { from })
    const token = verified.json?.token ?? ''
    const redeemed = await anyHost().verifyToken(apiKey, { token, expectedIp: from })
    if (redeemed.status !== 200) throw new Error(`${verified.text} ${redeemed.text}`)
  }
  return new Visitors(visit)
}

/** Rolls one host after the other, while visitors come; what was issued before a roll holds after it, on the other host too. */
async function rollEach(hosts: readonly Host[], site: TestSite, visitors: Visitors): Promise<void> {
  for (const [index, { service, client }] of hosts.entries()) {
    const other = hosts[1 - index]!.client
    const from = freshAddress()
    const token = await client.token(site.siteKey, { from })
    const solution = await client.solved(site.siteKey, { from })
    await roll(service)
    const verification = await client.verify(site.siteKey, solution, { from })
    const redemption = await other.verifyToken(site.apiKey, { token })
    assert.equal(verification.json.passed, true, verification.text)
    assert.equal(redemption.status, 200, redemption.text)
    const { served } = visitors
    await eventually(ROLL_MS_MAX, 'visitors', () => visitors.served > served + 1)
  }
}

test('a new secret signs on two hosts under load, step by step: nothing is refused', async context => {
  const secretsFile = join(temporaryDir('rotation'), 'secrets')
  writeFileSync(secretsFile, OLD)
  const redis = await RedisServer.start()
  const hosts = [await startHost(redis, secretsFile), await startHost(redis, secretsFile)]
  const site = await hosts[0]!.service.createSite({ difficulty: FREE })
  const visitors = visitorsOf(hosts, site)
  context.after(async () => {
    await visitors.stop()
    for (const { service, proxy } of hosts) {
      await proxy.stop()
      await service.stop()
    }
    await redis.stop()
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
  await visitors.stop()

  context.diagnostic(`${visitors.served} visitors were served, ${visitors.refused.length} refused`)
  assert.deepEqual(visitors.refused, [])
  assert.ok(visitors.served >= 8)
  for (const { service } of hosts) assert.ok(!service.output.includes(OLD) && !service.output.includes(NEW))
})

let networks = 0
/** Each on a shard of its own choice. */
const freshNetwork = () => `127.200.${networks++}.1`

/** What a host signed before a step, and is sent after it. */
class UnderWay {
  readonly #client: Client
  readonly #site: TestSite
  readonly #visits: { from: string; solution: Solution; token: string; spent: Solution; redeemed: string }[] =
    []

  constructor(client: Client, site: TestSite) {
    this.#client = client
    this.#site = site
  }

  async begin(): Promise<void> {
    const { siteKey, apiKey } = this.#site
    for (let count = 0; count < 4; count++) {
      const from = freshNetwork()
      const [solution, spent] = [
        await this.#client.solved(siteKey, { from }),
        await this.#client.solved(siteKey, { from }),
      ]
      const [token, redeemed] = [
        await this.#client.token(siteKey, { from }),
        (await this.#client.verify(siteKey, spent, { from })).json.token,
      ]
      assert.equal((await this.#client.verifyToken(apiKey, { token: redeemed })).status, 200)
      this.#visits.push({ from, solution, token, spent, redeemed })
    }
  }

  /** Nothing is refused that was good before, and nothing that was used is good again. */
  async end(): Promise<void> {
    const { siteKey, apiKey } = this.#site
    const redeem = async (token: string) => (await this.#client.verifyToken(apiKey, { token })).status
    for (const { from, solution, token, spent, redeemed } of this.#visits) {
      const again = await this.#client.verify(siteKey, spent, { from })
      assert.deepEqual([await redeem(redeemed), await redeem(again.json.token ?? '')], [400, 400])
      const verified = await this.#client.verify(siteKey, solution, { from })
      assert.equal(verified.json.passed, true, verified.text)
      for (const one of [token, verified.json.token])
        assert.deepEqual([await redeem(one), await redeem(one)], [200, 400])
    }
  }
}

test('a secret is replaced on a Cluster: nothing under way is refused or redeemed twice; of an address’s counts at most a minute’s are lost, once', async context => {
  const secretsFile = join(temporaryDir('rotation'), 'secrets')
  writeFileSync(secretsFile, OLD)
  const cluster = await RedisCluster.start()
  const LIMIT = 5
  const service = await TestService.start('embedded', {
    REDIS_URL: cluster.url,
    POWGATE_WORKERS: '1',
    POWGATE_SECRETS: '',
    POWGATE_SECRETS_FILE: secretsFile,
    POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: String(LIMIT),
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_STORE_DEADLINE_MS: '10000',
  })
  context.after(async () => {
    await service.stop()
    await cluster.stop()
  })
  await service.untilReady()
  const site = await service.createSite({ difficulty: FREE })
  const client = new Client(service.url)
  const busy = Array.from({ length: 4 }, freshNetwork)
  const admitted = async () => {
    let count = 0
    for (const from of busy) while ((await client.challenge(site.siteKey, { from })).status === 200) count++
    return count
  }
  let countedAtMs = performance.now()
  assert.equal(await admitted(), busy.length * LIMIT)
  for (const [secrets, lost] of [
    [`${OLD}\n${NEW}\n`, 0],
    [`${NEW}\n${OLD}\n`, busy.length * LIMIT],
    // At once, because nothing that the old secret signed is under way.
    [`${NEW}\n`, 0],
  ] as const) {
    const underWay = new UnderWay(client, site)
    await underWay.begin()
    writeFileSync(secretsFile, secrets)
    await roll(service)
    await underWay.end()
    const nowMs = performance.now()
    const isWithinMinute = nowMs - countedAtMs < 55_000
    const count = await admitted()
    if (lost > 0) countedAtMs = nowMs
    if (isWithinMinute) assert.equal(count, lost, secrets)
  }
})
