/** What an operator is advised about a Redis, by what the server says of itself. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { adviceOn, versionOf } from '../../src/store/client/inspection.ts'
import { eventually } from '../harness/eventually.ts'
import { ENGINES, makeUser, PASSWORD, RedisServer, USER } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { openRedisFor } from './harness.ts'

const openStore = (t: TestContext, url: string) => openRedisFor(t, url, { keyPrefix: 'pg' })

/** The advice to a client whose user is the one that docs/reference/redis.md recommends. That user may not read the settings. */
async function adviceFrom(t: TestContext, args: readonly string[]): Promise<string[]> {
  const server = await RedisServer.start(args)
  await makeUser([server])
  return (await openStore(t, asUser(server))).advice()
}

const asUser = ({ port }: RedisServer): string =>
  `redis://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`

function untilTold(server: RedisServer, ask: string, what: string): Promise<unknown> {
  const [command, part] = ask.split(' ') as [string, string]
  return eventually(60_000, what, async () => String(await server.ask(command, part)).includes(what))
}

const GOOD = ['--appendonly', 'yes', '--maxmemory', '100mb', '--maxmemory-policy', 'noeviction']

test('a Redis that is set up well needs no advice', async t => {
  assert.deepEqual(await adviceFrom(t, GOOD), [])
})

test('eviction, missing limits and missing persistence are named, with what to set', async t => {
  for (const [setting, value, expected] of [
    ['--maxmemory-policy', 'allkeys-lru', /^Redis may evict keys \(maxmemory-policy allkeys-lru\): set noev/],
    ['--maxmemory', '0', /^Redis has no memory limit: set maxmemory/],
    ['--appendonly', 'no', /^Redis keeps no append-only file: .*set appendonly yes$/],
  ] as const) {
    const lines = await adviceFrom(t, [...GOOD, setting, value])
    assert.equal(lines.length, 1, lines.join('\n'))
    assert.match(lines[0]!, expected)
  }
})

test('replicas: REDIS_URL names one; a primary cut off from two would go on alone; a single one, promoted, would refuse writes', async t => {
  const primary = await RedisServer.start([...GOOD, '--repl-diskless-sync-delay', '0']) // or a first copy waits 5 s for more replicas
  const following = [...GOOD, '--replicaof', '127.0.0.1', String(primary.port)]
  const replica = await RedisServer.start(following)
  await untilTold(replica, 'info replication', 'master_link_status:up')
  await makeUser([primary])
  const store = await openStore(t, asUser(primary))
  assert.deepEqual(await store.advice(), [], 'else all writes would stop when the one replica dies')
  await primary.ask('config', 'set', 'min-replicas-to-write', '1')
  assert.match((await store.advice()).join('\n'), /^there is one replica: promoted, it refuses all writes /)
  await RedisServer.start(following)
  await untilTold(primary, 'info replication', 'connected_slaves:2')
  assert.deepEqual(await store.advice(), [])
  await primary.ask('config', 'set', 'min-replicas-to-write', '0')
  const advice = (await store.advice()).join('\n')
  assert.match(advice, /^a primary that is cut off goes on alone .*min-replicas-to-write/)
  const lines = await adviceOn((name, ...args) => replica.ask(name, ...args), 'standalone')
  assert.match(lines.join('\n'), /^this Redis is a replica \(role slave\): REDIS_URL must name the primary$/)
})

test('a Cluster that lost a primary says so; one without replicas too, or of which one node evicts', async t => {
  const cluster = await RedisCluster.start({ nodeTimeoutMs: 1000 })
  const store = await openStore(t, cluster.url)
  assert.match((await store.advice()).join('\n'), /has no replica: nothing can take its place/)
  const [evicting, victim] = cluster.servers
  await evicting!.ask('config', 'set', 'maxmemory-policy', 'allkeys-lru')
  const named = new RegExp(`^127.0.0.1:${evicting!.port}: Redis may evict `, 'm')
  // Five times, to show a design that asks one node at random, or those that a node calls primaries: a busy one may call others lost.
  for (let count = 0; count < 5; count++) assert.match((await store.advice()).join('\n'), named)
  await victim!.kill()
  await untilTold(evicting!, 'cluster info', 'cluster_state:fail')
  const lines = await adviceOn((name, ...args) => evicting!.ask(name, ...args), 'cluster')
  assert.match(lines.join('\n'), /the Cluster is not well: cluster_state fail/)
  assert.match(lines.join('\n'), /the Cluster serves \d+ of 16384 slots/)
})

test('nodeAdvice connects to each node: a replica without the user, and a node of REDIS_URL that is away, are named', async t => {
  const cluster = await RedisCluster.start({ replicas: 1 })
  const [primary] = await cluster.primaries()
  const { port } = await cluster.replicaOf(primary!)
  await makeUser(cluster.servers.filter(server => server.port !== port))
  const store = await openStore(t, `${asUser(primary!)},127.0.0.1:1`)
  const bad = 'names a node that cannot be used:'
  const expected = [
    new RegExp(`^the Cluster ${bad} WRONGPASS .*:${port}\\)$`),
    new RegExp(`^REDIS_URL ${bad} nothing listens there`),
  ]
  await eventually(60_000, 'both', async () => {
    const lines = await store.nodeAdvice()
    return lines.length === 2 && lines.every((line, index) => expected[index]!.test(line))
  })
})

test('a server that lets nobody ask: that is the advice, and no error', async () => {
  const refuse = () => Promise.reject(Object.assign(new Error('NOPERM'), { name: 'ReplyError' }))
  const [line, ...more] = await adviceOn(refuse, 'cluster')
  assert.match(line!, /^Redis does not say whether it may evict keys /)
  assert.deepEqual(more, [])
  assert.equal(await versionOf(refuse), undefined)
})

for (const engine of ENGINES) {
  test(`the version of ${engine} is known by its own name`, async t => {
    const server = await RedisServer.start([], { engine })
    const store = await openStore(t, server.url)
    const form = { redis: /^Redis \d+\.\d+\.\d+$/, valkey: /^Valkey \d+\.\d+\.\d+$/ }[engine]
    assert.match((await store.version()) ?? '', form)
  })
}
