/** The same suites on a Redis Cluster: the same scripts, keys spread over shards by their hash tags. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { RedisStore } from '../../src/store/redis/store.ts'
import { parseRedisUrl } from '../../src/store/redis/target.ts'
import { RedisCluster } from '../support/redis-cluster.ts'
import { storeConformance } from './conformance.ts'
import { challengeOn, freshKey, type TestStore } from './harness.ts'
import { limitsProperty } from './limits-property.ts'

async function openStore(cluster: RedisCluster, clock?: () => number): Promise<RedisStore> {
  const store = new RedisStore({
    target: parseRedisUrl(cluster.url)!,
    keyPrefix: 'test',
    clusterShards: 16,
    deadlineMs: 2000,
    openMs: 15_000,
    ...(clock === undefined ? {} : { clock }),
  })
  await store.open()
  return store
}

async function make(): Promise<TestStore> {
  const cluster = await RedisCluster.start()
  const clock = { now: Date.UTC(2026, 0, 1) }
  const store = await openStore(cluster, () => clock.now)
  const other = await openStore(cluster, () => clock.now)
  return {
    store,
    other,
    clock,
    close: async () => {
      await Promise.all([store.close(), other.close()])
      await cluster.stop()
    },
  }
}

storeConformance('redis cluster', make)
limitsProperty('redis cluster', make)

test('redis cluster: addresses spread over all primaries', async () => {
  const cluster = await RedisCluster.start()
  const store = await openStore(cluster)
  await Promise.all(Array.from({ length: 600 }, () => challengeOn(store, { addressKey: freshKey() })))
  for (const { port } of cluster.servers) {
    const admin = new Redis(port)
    const keys = await admin.keys('test:*:l:*')
    assert.ok(keys.length > 100 && keys.length < 350, String(keys.length))
    await admin.quit()
  }
  await store.close()
  await cluster.stop()
})
