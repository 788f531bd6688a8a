/** Upgrades under load: workers are replaced, killed, and given new secrets while visitors come. */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Keyring } from '../../src/domain/keyring.ts'
import { readToken } from '../../src/domain/token.ts'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { claimsAt, FREE, VISITED_SETTINGS, VisitorLoad } from '../harness/load/visitors.ts'
import { listeningPids, workerPids } from '../harness/processes.ts'
import { FrontProxy, type ProxyKind } from '../harness/proxies.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import {
  lifetimesOf,
  type StoreKind,
  TestService,
  type TestSite,
  UNLIMITED_REDEMPTIONS,
} from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const CONNECTIONS = 32
const LOAD_SHARE = 0.6
/** As many rolls, and kills, as meet each worker several times at any moment of its work. */
const ROUNDS = 5
const REDEEMED_EACH_ROUND = 50 // if next to nobody was served, a run proves nothing
/** Visitors a second. The generator shares the machine with what it loads: what it manages alone for a second, it may not later. */
const RATE_MAX = 1000
const RATE_MIN = 100 // the machine may have paused while the capacity was measured
const ROLL_MS_MAX = 120_000 // on an idle machine a roll takes a second

async function underLoad(context: TestContext, kind: StoreKind, proxyKind: ProxyKind) {
  const service = await TestService.start(kind, {
    ...VISITED_SETTINGS,
    ...(proxyKind.startsWith('haproxy-') ? { POWGATE_PROXY_PROTOCOL: 'on' } : {}),
    // A pause of a busy machine is no outage.
    POWGATE_STORE_DEADLINE_MS: '10000',
    POWGATE_DRAIN_SECONDS: '10',
  })
  const site = await service.createSite({ difficulty: FREE })
  // After 500 ms nginx closes an idle connection: a worker that is replaced goes only with its last one.
  const proxy = await FrontProxy.start(proxyKind, service, '500ms')
  await service.untilReady(proxy.url)
  const { storeEpoch } = await claimsAt(proxy.url, site)
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

for (const { rounds, kind, proxyKind } of [
  { rounds: ROUNDS, kind: 'embedded', proxyKind: 'nginx' },
  { rounds: 3, kind: 'redis', proxyKind: 'haproxy-v2' },
] as const) {
  test(`${rounds} rolling restarts at 60 % load behind ${proxyKind}, store ${kind}: no request fails`, async context => {
    const { service, load, rate, stop } = await underLoad(context, kind, proxyKind)
    const startedAtMs = performance.now()
    for (let round = 0; round < rounds; round++) await roll(service)
    const seconds = (performance.now() - startedAtMs) / 1000
    await untilRedeemed(load, REDEEMED_EACH_ROUND * rounds)
    await stop()
    const text = `${load.sent} requests, ${Math.round(rate)} visitors/s meant, ${Math.round(seconds)} s`
    context.diagnostic(`${rounds} rolls: ${text}; ${load.failures.length} failed`)
    assert.deepEqual(load.failures, [], service.output)
  })
}

test(`${ROUNDS} kills of a worker at 60 % load behind HAProxy: only what it had under way fails`, async context => {
  const { service, load, rate, stop } = await underLoad(context, 'embedded', 'haproxy')
  const kills: { killedAtMs: number; goneAtMs: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = await eventually(ROLL_MS_MAX, 'two workers listen', () => {
      const pids = listeningPids(service.port)
      return pids.length === 2 ? pids : undefined
    })
    const pid = before[round % 2]!
    const killedAtMs = performance.now()
    process.kill(pid, 'SIGKILL')
    await eventually(ROLL_MS_MAX, 'it is gone', () => !workerPids(service.pid).includes(pid))
    kills.push({ killedAtMs, goneAtMs: performance.now() })
    await pause(200)
  }
  await pause(500)
  await untilRedeemed(load, REDEEMED_EACH_ROUND * ROUNDS)
  await stop()
  const { failures } = load
  const text = `${load.sent} requests, ${Math.round(rate)} visitors/s meant`
  context.diagnostic(`${ROUNDS} kills: ${text}; ${failures.length} failed`)
  for (const failure of failures) {
    const kill = kills.findLast(({ killedAtMs }) => killedAtMs <= failure.failedAtMs)
    assert.ok(kill !== undefined && failure.sentAtMs <= kill.goneAtMs, JSON.stringify({ failure, kills }))
  }
  for (const { killedAtMs, goneAtMs } of kills) {
    const ofKill = failures.filter(one => one.failedAtMs >= killedAtMs && one.sentAtMs <= goneAtMs)
    // Each connection has one request under way at most.
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

let networks = 0
/** An address in a network that no earlier visit used: the network chooses the shard, so visits spread over all. */
const freshNetwork = () => `127.200.${networks++}.1`

/** Begins visits at one host. @returns ends them at the other: what was issued is accepted once, and what was used stays used */
async function beginVisits(issuer: Client, client: Client, { siteKey, apiKey }: TestSite) {
  const begin = async () => {
    const from = freshNetwork()
    const solution = await issuer.solved(siteKey, { from })
    const spent = await issuer.solved(siteKey, { from })
    const token = await issuer.token(siteKey, { from })
    const redeemed = (await issuer.verify(siteKey, spent, { from })).json.token
    assert.equal((await issuer.verifyToken(apiKey, { token: redeemed })).status, 200)
    return { from, solution, token, spent, redeemed }
  }
  const visits = [await begin(), await begin(), await begin(), await begin()]
  return async () => {
    const redeem = async (token: string) => (await client.verifyToken(apiKey, { token })).status
    for (const { from, solution, token, spent, redeemed } of visits) {
      const again = await client.verify(siteKey, spent, { from })
      assert.deepEqual([again.status, again.json.code], [400, 'nonce-used'])
      assert.equal(await redeem(redeemed), 400)
      const verified = await client.verify(siteKey, solution, { from })
      assert.equal(verified.json.passed, true, verified.text)
      for (const one of [token, verified.json.token])
        assert.deepEqual([await redeem(one), await redeem(one)], [200, 400])
    }
  }
}

test('a secret is replaced step by step on two hosts with a Cluster: nothing under way is refused or redeemed twice; of an address’s counts at most a minute’s are lost, once', async () => {
  const secretsFile = join(temporaryDir('rotation'), 'secrets')
  writeFileSync(secretsFile, OLD)
  const cluster = await RedisCluster.start()
  const LIMIT = 5
  const env = {
    REDIS_URL: cluster.url,
    POWGATE_WORKERS: '1',
    POWGATE_SECRETS: '',
    POWGATE_SECRETS_FILE: secretsFile,
    POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: String(LIMIT),
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_STORE_DEADLINE_MS: '10000', // a pause of a busy machine is no outage
  }
  const hosts = await Promise.all([1, 2].map(() => TestService.start('shared', env)))
  for (const host of hosts) await host.untilReady()
  const site = await hosts[0]!.createSite({ difficulty: FREE })
  const clients = hosts.map(({ url }) => new Client(url))
  const busy = Array.from({ length: 4 }, freshNetwork)
  /** Uses up the limit of each address; so each call counts only what the store has forgotten since the last. */
  const admitted = async () => {
    let count = 0
    for (const from of busy)
      while ((await clients[0]!.challenge(site.siteKey, { from })).status === 200) count++
    return count
  }
  let countedAtMs = performance.now()
  let compared = 0
  assert.equal(await admitted(), busy.length * LIMIT)
  for (const [secrets, signer, lost] of [
    [`${OLD}\n${NEW}\n`, OLD, 0], // all hosts learn the new one
    [`${NEW}\n${OLD}\n`, NEW, busy.length * LIMIT], // the first secret names addresses in the store
    [`${NEW}\n`, NEW, 0], // at once, because nothing that the old secret signed is under way
  ] as const) {
    writeFileSync(secretsFile, secrets)
    for (const [index, host] of hosts.entries()) {
      const [own, other] = [clients[index]!, clients[1 - index]!]
      const endVisits = await beginVisits(own, other, site)
      await roll(host)
      await endVisits()
      await (await beginVisits(own, other, site))()
    }
    const token = await clients[1]!.token(site.siteKey, { from: freshNetwork() })
    assert.equal(readToken(new Keyring([signer]), token).status, 'genuine')
    const nowMs = performance.now()
    const isWithinMinute = nowMs - countedAtMs < 55_000 // later the counts have ended, whatever the secret
    const count = await admitted()
    if (lost > 0) countedAtMs = nowMs
    if (!isWithinMinute) continue
    assert.equal(count, lost, secrets)
    compared++
  }
  assert.ok(compared > 0, 'each step took a minute')
  for (const { output } of hosts) assert.ok(!output.includes(OLD) && !output.includes(NEW))
})
