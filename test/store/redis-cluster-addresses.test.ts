/** A store finds the nodes of a Cluster that tell no address, or a name, in CLUSTER SLOTS and in redirections. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Command } from '../../src/store/client/ioredis.ts'
import type { StoreClient } from '../../src/store/client/store-client.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/ports.ts'
import { RedisServer } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { openRedisFor, redeemable, SITE_SLOT, tokenOn } from './harness.ts'

const redeem = (store: StoreClient) => tokenOn(store, { redeem: redeemable(store) })

const ENDPOINT = 'cluster-preferred-endpoint-type'
const firstNode = (url: string) => url.replace('redis://', 'redis+cluster://').split(',')[0]!

for (const [what, settings] of [
  ['no address', { [ENDPOINT]: 'unknown-endpoint' }],
  ['names that they lack', { [ENDPOINT]: 'hostname' }],
  ['names', { [ENDPOINT]: 'hostname', 'cluster-announce-hostname': 'localhost' }],
] as const)
  test(`redis cluster: nodes that tell ${what} are found by one of them, also after a slot has moved`, async t => {
    const cluster = await RedisCluster.start({ settings })
    t.after(() => cluster.stop())
    const store = await openRedisFor(t, firstNode(cluster.url))
    assert.equal(await redeem(store), 'redeemed')
    const from = await cluster.primaryOf(SITE_SLOT)
    const to = (await cluster.primaries()).find(server => server !== from)!
    await cluster.migrate(SITE_SLOT, to, async () => {})
    await eventually(60_000, 'the slot is found', async () => (await redeem(store)) === 'redeemed')
  })

test('redis cluster: CLUSTER SLOTS of a node without a name: its `ip` is taken for its host, and nothing else; an answer without slots is an error', async () => {
  const empty = new Command('cluster', ['slots'])
  empty.resolve([])
  await assert.rejects(empty.promise, /knows no slots/)
  const command = new Command('cluster', ['slots'])
  const metadataOfNodes = [['ip', '10.0.0.7'], ['zone', 'a', 'ip', '10.0.0.8'], ['zone', 'a'], []]
  command.resolve([[0, 99, ...metadataOfNodes.map(pairs => ['?', 6379, 'id', pairs])]])
  const [[, , ...nodes]] = (await command.promise) as [[number, number, ...[host: string][]]]
  const hosts = nodes.map(([host]) => host)
  assert.deepEqual(hosts, ['10.0.0.7', '10.0.0.8', '?', '?'])
})

test('redis cluster: a single node that does not know its own address is asked where it answers', async t => {
  const args = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())]
  const server = await RedisServer.start(args)
  await server.ask('cluster', 'addslotsrange', 0, 16383)
  const store = await openRedisFor(t, firstNode(server.url))
  assert.equal(await redeem(store), 'redeemed')
})
