/** The store on a Redis Cluster, whose nodes have a third of the shards each: conformance; slots that move; nodes that restart or are lost. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Cluster } from 'ioredis'
import { shardKey } from '../../src/domain/address-tags.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { slotOf } from '../../src/store/client/connection.ts'
import type { StoreClientOptions } from '../../src/store/client/store-client.ts'
import type { HostNote } from '../../src/store/hosts.ts'
import { Client, solutionOf } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { EASY, TestService } from '../harness/service.ts'
import { storeConformance } from './conformance.ts'
import {
  challengeOn,
  freshKey,
  openRedis,
  openRedisFor,
  openTwice,
  redeemable,
  redemptionOn,
  SHARDS,
  SITE,
  SITE_SLOT,
  slotOfShard,
  type TestStore,
  tokenOn,
} from './harness.ts'

/** Nodes go on to serve their slots while those of another are lost. */
const PARTIAL = { 'cluster-require-full-coverage': 'no' }

/** When the test ends, its store is closed before its Cluster is stopped. */
async function startCluster(t: TestContext, options: Partial<StoreClientOptions> = {}, settings = {}) {
  const cluster = await RedisCluster.start({ settings })
  const store = await openRedisFor(t, cluster.url, options)
  t.after(() => cluster.stop())
  return { cluster, store }
}

/** The tests below, and torture, have Clusters of Redis; redis.test.ts has single servers of both engines. */
storeConformance('valkey cluster', async () => {
  const cluster = await RedisCluster.start({ engine: 'valkey' })
  const open = (clock: TestStore['clock']) => openRedis(cluster.url, { clock: () => clock.now })
  return openTwice(open, () => cluster.stop())
})

test('redis cluster: addresses spread over all primaries; a command that has another number of shards finds them too', async t => {
  const { cluster, store } = await startCluster(t, { clusterShards: 2 * SHARDS })
  const addressKeys = Array.from({ length: 600 }, freshKey)
  await Promise.all(addressKeys.map(addressKey => challengeOn(store, { addressKey })))
  for (const server of cluster.servers) {
    const { length } = (await server.ask('keys', 'test:*:l:*')) as string[]
    assert.ok(length > 100 && length < 350, String(length))
  }
  await store.sites.noteHost('host', null, 2 * SHARDS)
  const command = await openRedisFor(t, cluster.url, { clusterShards: SHARDS })
  assert.equal(await command.sites.forget(addressKeys), addressKeys.length)
})

test('redis cluster: what concerns the sites waits for their node, and for no other; while ioredis knows no node, status says so', async t => {
  const { cluster, store } = await startCluster(t, { deadlineMs: 1000 })
  const node = await cluster.primaryOf(slotOf('{sites}'))
  // ioredis sends a call that names no key to a node at random: of nine, one would hardly miss a node of three.
  const nineTimes = (call: () => Promise<unknown>) => Promise.all(Array.from({ length: 9 }, call))
  const note = () => store.sites.noteHost('late', {} as HostNote)
  node.freeze()
  await nineTimes(() => assert.rejects(note(), /no answer/))
  node.thaw()
  assert.deepEqual((await store.sites.livingHosts()).living, [], 'no note has waited in it')
  const other = cluster.servers.find(server => server !== node)!
  other.freeze()
  await nineTimes(note)
  await nineTimes(() => store.dropAudit(60_000))
  other.thaw()

  const nodes = t.mock.method(Cluster.prototype, 'nodes', () => []).mock
  await assert.rejects(store.status(), /^Error: the server is being looked for$/)
  nodes.restore()
})

test('redis cluster: a node that restarts from an older snapshot in a moment, unnoticed by idle workers, redeems nothing twice', async t => {
  const { cluster, store } = await startCluster(t)
  const node = await cluster.primaryOf(SITE_SLOT)
  for (let round = 0; round < 3; round++) {
    // After a restart the callers' shards may need a moment longer than the site's.
    const redeem = await eventually(60_000, 'a redemption', async () => {
      await node.ask('save')
      const asked = redeemable(store)
      return (await tokenOn(store, { redeem: asked })) === 'redeemed' ? asked : undefined
    })
    await node.kill()
    await node.boot()
    const again = await eventually(60_000, 'an answer', async () => {
      const answer = await tokenOn(store, { redeem })
      return answer !== 'unavailable' && answer
    })
    assert.equal(again, 'forgotten')
  }
})

test("redis cluster: a challenge is bound to the memory of its site's redemptions too", async t => {
  const failOpen = { challenge: true, verify: true }
  const bridge = { workers: 1, failOpen, failOpenAfterMs: 0, monotonicMs: Date.now }
  const { cluster, store } = await startCluster(t, { bridge })
  const node = await cluster.primaryOf(SITE_SLOT)
  const epochs = () => {
    const { requests } = store
    return [requests.epochOf(SITE), requests.epochOf(addressKey), requests.nonceEpoch(addressKey, SITE, true)]
  }
  /** A key of the site's node, or of another. */
  const keyOn = async (isNode: boolean): Promise<string> => {
    const key = freshKey()
    const found = await cluster.primaryOf(slotOfShard(shardKey(key)))
    return (found === node) === isNode ? key : keyOn(isNode)
  }
  const addressKey = await keyOn(false)
  const [siteBefore, addressBefore, nonceBefore] = epochs()
  assert.ok(store.requests.nonceEpochs(SITE).includes(nonceBefore!))
  /** Of an outage that has not lasted long enough for failing open, or has. The store reads this option at each call. */
  const [TOO_SHORT, LONG_ENOUGH] = [3_600_000, 0]
  const nonceEpochIn = (failOpenAfterMs: number, mayFailOpen = true) => {
    bridge.failOpenAfterMs = failOpenAfterMs
    return store.requests.nonceEpoch(addressKey, SITE, mayFailOpen)
  }
  assert.equal(nonceEpochIn(TOO_SHORT, false), nonceBefore)
  await node.kill()
  // A token issued now would be refused after the failover, though the shard of the address answers.
  await eventually(60_000, 'none', () => nonceEpochIn(TOO_SHORT) === undefined)
  assert.deepEqual([nonceEpochIn(LONG_ENOUGH), nonceEpochIn(LONG_ENOUGH, false)], [nonceBefore, undefined])
  const lostKey = await keyOn(true)
  bridge.failOpenAfterMs = TOO_SHORT
  assert.equal((await challengeOn(store, { addressKey: lostKey })).status, 'unavailable')
  bridge.failOpenAfterMs = LONG_ENOUGH
  assert.equal((await challengeOn(store, { addressKey: lostKey })).status, 'admitted')
  await node.boot()
  await eventually(60_000, 'the loss is noticed', () => store.requests.epochOf(SITE) !== siteBefore)
  const [, addressAfter, nonceAfter] = epochs()
  assert.equal(addressAfter, addressBefore)
  assert.notEqual(nonceAfter, nonceBefore)
})

test('redis cluster: a slot that is being moved is refused within the deadline, and is no outage of the others; one whose node has left is found', async t => {
  // ioredis asks for the slots every five seconds: without that, only what powgate asks finds a slot.
  const inside = Cluster.prototype as unknown as { resetNodesRefreshInterval(): void }
  t.mock.method(inside, 'resetNodesRefreshInterval', () => {})
  const changes: string[] = []
  const onChange = (up: boolean, cause: string) => changes.push(`${up ? 'up' : 'down'}: ${cause}`)
  const { cluster, store } = await startCluster(t, { deadlineMs: 2000, onChange }, PARTIAL)
  changes.length = 0
  const from = await cluster.primaryOf(SITE_SLOT)
  const to = (await cluster.primaries()).find(server => server !== from)!
  const moves = /^15 of 16 shards answer: (a slot is being moved; .*fix HOST:PORT \(127.0.0.1:\d+\)$|MOVED )/
  const epoch = store.requests.epochOf(SITE)
  const redeem = redeemable(store)
  await cluster.migrate(SITE_SLOT, to, async () => {
    // The slot's keys lie here and there: nothing that names a new key runs.
    for (let count = 0; count < 3; count++) {
      const startedAt = performance.now()
      assert.equal(await tokenOn(store, { redeem }), 'unavailable')
      assert.ok(performance.now() - startedAt < 30_000)
      await new Promise(resolve => setTimeout(resolve, 200))
    }
    assert.ok(store.isReady())
    assert.match(store.health.describe(), moves)
  })
  await eventually(60_000, 'the shard is found', () => store.health.describe().startsWith('16 of 16'))
  assert.equal(changes.length, 2, changes.join('\n'))
  assert.match(changes[0]!.replace('down: ', ''), moves)
  // It cannot be told from a replica that took over, so what was issued before is not redeemed.
  assert.notEqual(store.requests.epochOf(SITE), epoch)
  assert.equal(await tokenOn(store, { redeem }), 'forgotten')
  assert.equal(await tokenOn(store, { redeem: redeemable(store) }), 'redeemed')

  // Like a primary that has lost its peers, it answers CLUSTERDOWN while another serves its slot.
  await eventually(60_000, 'it leaves', async () => {
    await to.ask('flushall') // only an empty node can be reset, and probes may write before that
    return to.ask('cluster', 'reset', 'hard').catch(() => false)
  })
  // As an operator does, the others are told who serves the slot now.
  const fromId = String(await from.ask('cluster', 'myid'))
  for (const server of cluster.servers)
    if (server !== to) await server.ask('cluster', 'setslot', SITE_SLOT, 'node', fromId)
  const redeems = async () => (await tokenOn(store, { redeem: redeemable(store) })) === 'redeemed'
  await eventually(60_000, 'its slot is found', redeems)
})

for (const starts of ['served before', 'start meanwhile', 'start afterwards'] as const)
  test(`redis cluster: a move of a slot is broken off, and the other node has lost what had moved: nothing is redeemed twice, by workers that ${starts}`, async t => {
    const { cluster, store } = await startCluster(t, { deadlineMs: 2000 }, PARTIAL)
    const stores = [store, await openRedisFor(t, cluster.url, { deadlineMs: 2000 })]
    const from = await cluster.primaryOf(SITE_SLOT)
    const to = (await cluster.primaries()).find(server => server !== from)!
    const redeem = redeemable(store)
    assert.equal(await tokenOn(store, { redeem }), 'redeemed')
    const [fromId, toId] = await Promise.all([from, to].map(server => server.ask('cluster', 'myid')))
    await to.ask('cluster', 'setslot', SITE_SLOT, 'importing', String(fromId))
    await from.ask('cluster', 'setslot', SITE_SLOT, 'migrating', String(toId))
    const keys = (await from.ask('cluster', 'getkeysinslot', SITE_SLOT, 100)) as string[]
    const records = keys.filter(key => key.endsWith(`r:${redeem.nonce}`))
    assert.equal(records.length, 1)
    await from.ask('migrate', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...records)
    // No request comes meanwhile: probes meet the move.
    for (const { health } of stores)
      await eventually(60_000, 'the move is met', () => health.describe().includes('a slot is being moved'))
    const isNew = starts !== 'served before'
    if (isNew) await Promise.all(stores.map(one => one.close()))
    const opening = starts === 'start meanwhile' ? [openRedisFor(t, cluster.url)] : [] // a start waits for all shards
    if (isNew) await new Promise(resolve => setTimeout(resolve, 3000)) // so that the note is over a second old
    await to.ask('flushall')
    for (const server of [from, to]) await server.ask('cluster', 'setslot', SITE_SLOT, 'stable')
    if (starts === 'start afterwards') opening.push(openRedisFor(t, cluster.url))
    const serving = isNew ? await Promise.all(opening) : stores
    const again = await eventually(60_000, 'an answer', async () => {
      const answer = await tokenOn(serving[0]!, { redeem })
      return answer !== 'unavailable' && answer
    })
    assert.equal(again, 'forgotten')
    // The epoch is replaced once, though several have met the move.
    const epochs = () => new Set(serving.map(({ requests }) => requests.epochOf(SITE)))
    await eventually(60_000, 'one epoch', () => epochs().size === 1)
    const replaced = epochs()
    await new Promise(resolve => setTimeout(resolve, 1000))
    assert.deepEqual(epochs(), replaced)
  })

test('redis cluster: ready as long as half of the shards answer, and what does not answer is told with its own cause', async t => {
  const { cluster, store } = await startCluster(t, { deadlineMs: 500 }, PARTIAL)
  const [first, second] = await cluster.primaries()
  /** The primaries have a third of the 16 shards each, five or six. */
  const lacksThird = (why: string) => new RegExp(`^1[01] of 16 shards.*${why}`).test(store.health.describe())
  await first!.kill()
  await eventually(60_000, 'a third is lost', () =>
    lacksThird(`nothing listens there \\(127.0.0.1:${first!.port}\\)`),
  )
  assert.deepEqual([store.isReady(), store.trouble()?.cause], [true, 'refused'])
  // Redemptions at a site that is away are not charged, so the same backend and API key still have their two where another site is.
  const keys = Array.from({ length: 200 }, freshKey)
  const isAway = (key: string) => store.requests.awayMs(key) > 0
  const redeemAt = (siteKey: string) =>
    redemptionOn(store, {
      callerKey: keys.find(key => !isAway(key))!,
      callerLimit: 2,
      apiKey: { id: 'someKey1', limit: 2, siteKey },
    })
  for (let count = 0; count < 3; count++)
    assert.equal((await redeemAt(keys.find(isAway)!)).status, 'unavailable')
  assert.equal((await redeemAt(keys.findLast(key => !isAway(key))!)).status, 'admitted')
  await first!.boot()
  await eventually(60_000, 'it is back', () => store.trouble() === undefined)
  second!.freeze()
  await eventually(60_000, 'another third, and why', () => lacksThird('no answer'))
  second!.thaw()
  await eventually(60_000, 'it is back', () => store.trouble() === undefined)
  await first!.kill()
  await second!.kill()
  await eventually(60_000, 'two thirds are lost', () => /^[56] of 16 shards/.test(store.health.describe()))
  assert.ok(!store.isReady())
})

test("redis cluster: while the site's node is away nobody is charged for a 503, and a rolling restart keeps the old worker", async t => {
  const cluster = await RedisCluster.start({ settings: PARTIAL })
  const env = {
    REDIS_URL: cluster.url,
    POWGATE_WORKERS: '1',
    POWGATE_FAIL_OPEN: 'none',
    POWGATE_STORE_WAIT_SECONDS: '1',
  }
  const service = await TestService.start('shared', env)
  t.after(() => service.stop().then(() => cluster.stop()))
  const { siteKey } = await service.createSite({ difficulty: EASY })
  const client = new Client(service.url)
  const visitors = await Promise.all(
    Array.from({ length: 6 }, async (_, network) => {
      const from = `127.${100 + network}.0.1` // each may be on another node
      return { from, solution: solutionOf((await client.challenge(siteKey, { from })).json.nonce) }
    }),
  )
  const node = await cluster.primaryOf(slotOfShard(siteKey))
  await node.kill()
  const statusesOf = async (from: string) => (await client.challenge(siteKey, { from })).status
  await eventually(PATIENCE_MS, 'it is away', async () => (await statusesOf(freshAddress())) === 503)
  for (const { from, solution } of visitors)
    for (let count = 0; count <= CONTRACT_LIMITS.challengeAddressSite; count++) {
      assert.equal(await statusesOf(from), 503)
      assert.equal((await client.verify(siteKey, solution, { from })).status, 503)
    }
  // A new worker does not know the lost node's epoch, so it could not bridge the outage. It waits for 3 s at least (WHOLE_STORE_MS_MIN).
  process.kill(service.pid, 'SIGHUP')
  const isKept = () => service.output.includes('"problem":"its store does not answer within 3 s')
  await eventually(PATIENCE_MS, 'the worker stays', isKept)
})
