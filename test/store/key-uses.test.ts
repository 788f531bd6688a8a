/** A worker's notes of when API keys were used (`KeyUses`): each is written to the store once, and none is lost while the store is away. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { KeyUses } from '../../src/store/key-uses.ts'
import { openSiteStore } from '../../src/store/open.ts'
import { eventually } from '../harness/eventually.ts'
import { RedisServer } from '../harness/redis.ts'
import { TEST_SECRET } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { mapOf } from './harness.ts'

test('what is noted is written once, the latest time of each key', async t => {
  const store = await openSiteStore(loadConfig({ POWGATE_DATA_DIR: temporaryDir('store') }))
  t.after(() => store.close())
  const writes: string[][] = []
  const noteUses = (uses: ReadonlyMap<string, number>) => {
    writes.push([...uses.keys()])
    return store.noteUses(uses)
  }
  const uses = new KeyUses({ noteUses })
  for (let count = 0; count < 1000; count++) uses.note('key00001', 1000 + count)
  assert.deepEqual(await store.readUses(['key00001']), new Map())
  await uses.flush()
  uses.note('key00002', 3000)
  await uses.flush()
  assert.deepEqual(await store.readUses(['key00001', 'key00002']), mapOf({ key00001: 1999, key00002: 3000 }))
  await uses.flush()
  assert.deepEqual(writes, [['key00001'], ['key00002']], 'nothing is left, so nothing is written')
})

test('what could not be written is written when the store is back; a later use meanwhile counts', async t => {
  const redis = await RedisServer.start()
  const store = await openSiteStore(loadConfig({ REDIS_URL: redis.url, POWGATE_SECRETS: TEST_SECRET }))
  t.after(() => store.close())
  const uses = new KeyUses(store)
  await redis.kill()
  uses.note('key00001', 1000)
  await assert.rejects(uses.flush())
  await redis.boot()
  uses.note('key00001', 2000)
  uses.note('key00002', 1500)
  const isFlushed = () => Promise.allSettled([uses.flush()]).then(([{ status }]) => status === 'fulfilled')
  await eventually(60_000, 'Redis is back', isFlushed)
  assert.deepEqual(await store.readUses(['key00001', 'key00002']), mapOf({ key00001: 2000, key00002: 1500 }))
})

test('a use while an earlier one is being written is written too', async () => {
  const written: number[] = []
  const uses: KeyUses = new KeyUses({
    noteUses: async some => {
      written.push(...some.values())
      if (written.length === 1) uses.note('key00001', 2000)
    },
  })
  uses.note('key00001', 1000)
  await uses.flush()
  await uses.flush()
  assert.deepEqual(written, [1000, 2000])
})

test('of more than 100,000 keys the first are remembered, and written in calls of 1000', async () => {
  const noted = new Map<string, number>()
  const sizes = new Set<number>()
  const uses = new KeyUses({
    noteUses: async some => {
      sizes.add(some.size)
      for (const [id, at] of some) noted.set(id, at)
    },
  })
  for (let key = 0; key < 100_005; key++) uses.note(`key${key}`, 1)
  uses.note('key7', 2)
  await uses.flush()
  assert.deepEqual([noted.size, noted.get('key7'), noted.has('key100004')], [100_000, 2, false])
  assert.deepEqual([...sizes], [1000])
})
