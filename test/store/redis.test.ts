/**
 * The store on one Redis server: the conformance suite, and what a real server can lose, evict, refuse or put back. `test:{0}:` starts
 * the keys of the one shard; src/store/client/requests.ts lists them.
 */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type ChainableCommander, Command, type Redis } from 'ioredis'
import { DAY_MS } from '../../src/domain/meters.ts'
import { createSite, updateSite } from '../../src/sites/sites.ts'
import type { StoreClient } from '../../src/store/client/store-client.ts'
import type { HostNote } from '../../src/store/hosts.ts'
import { SiteDirectory } from '../../src/store/site-directory.ts'
import { StoreWatch } from '../../src/store/watch.ts'
import { eventually } from '../harness/eventually.ts'
import { ENGINES, RedisServer } from '../harness/redis.ts'
import { SickProxy } from '../harness/sick-proxy.ts'
import { storeConformance } from './conformance.ts'
import {
  challengeOn,
  freshKey,
  meteringOf,
  openRedisFor,
  openRedisTwice,
  redeemable,
  redemptionOn,
  SITE,
  solutionOn,
  spendable,
  startRedis,
  tokenOn,
} from './harness.ts'

for (const engine of ENGINES) storeConformance(engine, () => openRedisTwice(engine))

test('redis: the operations of one tick of the event loop are one script call, and at most 128 operations are one call', async t => {
  const { store, admin } = await startRedis(t)
  const scriptCalls = async () => {
    const stats = await admin.info('commandstats')
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  }
  const ask = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, index) => {
        if (index % 3 === 0) return challengeOn(store, { addressKey: freshKey() })
        if (index % 3 === 1) return solutionOn(store, { addressKey: freshKey() })
        return redemptionOn(store, { callerKey: freshKey() })
      }),
    )
  await ask(3)
  for (const count of [90, 384]) {
    const expected = Math.ceil(count / 128)
    const startedAtMs = performance.now()
    await admin.config('RESETSTAT')
    await ask(count)
    const calls = await scriptCalls()
    // The store's own calls, four a second, by which it notices an outage.
    const probesMax = 1 + Math.floor((performance.now() - startedAtMs) / 250)
    assert.ok(calls >= expected && calls <= expected + probesMax, `${calls}, probes: ${probesMax} at most`)
  }
})

const redeemAll = (store: StoreClient, marks: readonly ReturnType<typeof redeemable>[]) =>
  Promise.all(marks.map(redeem => tokenOn(store, { redeem })))

/** Copies all data. @returns a function that puts the copy back while the server runs on as the primary */
async function copyOf(way: string, admin: Redis): Promise<() => Promise<unknown>> {
  if (way === 'DEBUG RELOAD') {
    await admin.save()
    return () => admin.call('DEBUG', 'RELOAD', 'NOSAVE')
  }
  const keys = await admin.keys('*')
  if (way.startsWith('RESTORE')) {
    const dumps = await Promise.all(keys.map(key => admin.dumpBuffer(key)))
    const put = async (commands: ChainableCommander, isPut: (key: string) => boolean) => {
      for (const [index, key] of keys.entries())
        if (isPut(key)) commands.restore(key, 0, dumps[index]!, 'REPLACE')
      for (const [error] of (await commands.exec())!) assert.equal(error, null)
    }
    const isEpoch = (key: string) => key.endsWith(':epoch')
    return async () => {
      if (way === 'RESTORE') return put(admin.multi().flushdb(), () => true)
      await put(admin.multi().flushdb(), key => !isEpoch(key))
      await eventually(60_000, 'a worker draws an epoch', async () => (await admin.keys('*:epoch'))[0])
      await put(admin.multi(), isEpoch)
    }
  }
  for (const key of keys) await admin.copy(key, key, 'DB', 1, 'REPLACE')
  return () => admin.swapdb(0, 1)
}

for (const way of ['RESTORE', 'RESTORE of the epoch last', 'SWAPDB', 'DEBUG RELOAD'] as const) {
  test(`redis: an older copy of the data put back by ${way} redeems nothing twice, and is told as lost memory`, async t => {
    let forgotten = 0
    const args = ['--enable-debug-command', 'local']
    const { server, store, admin } = await startRedis(t, { onForgotten: () => forgotten++ }, args)
    let calls = 0
    const other = await openRedisFor(t, server.url, { onCall: () => calls++ })
    const marks = Array.from({ length: 100 }, () => redeemable(store))
    const first = marks.slice(0, 50)
    assert.deepEqual(new Set(await redeemAll(store, first)), new Set(['redeemed']))
    const putBack = await copyOf(way, admin)
    assert.deepEqual(new Set(await redeemAll(store, marks.slice(50))), new Set(['redeemed']))
    const before = calls
    await eventually(60_000, 'the other worker is answered once more', () => calls > before + 1) // one call may have been under way
    await putBack()
    assert.deepEqual(new Set(await redeemAll(other, marks)), new Set(['forgotten'])) // all are of the former epoch
    await eventually(60_000, 'told', () => forgotten > 0)
    await eventually(60_000, 'new tokens are redeemed', async () => {
      return (await redeemAll(store, [redeemable(store)]))[0] === 'redeemed'
    })
  })
}

test('redis: SCRIPT FLUSH is healed without a refusal', async t => {
  const { store, admin } = await startRedis(t)
  await challengeOn(store, { addressKey: freshKey() })
  await admin.script('FLUSH')
  assert.equal((await challengeOn(store, { addressKey: freshKey() })).status, 'admitted')
})

test('redis: a change is read, though a failover has lost one that was read before; a record that is no JSON is named', async t => {
  const { store, admin } = await startRedis(t)
  const directory = new SiteDirectory(store.sites, () => 0, { hasTestKeys: false })
  const { siteKey } = (await createSite(store.sites, { name: 'kept' })).site
  const revision = (await admin.get('test:{sites}:revision'))!
  await updateSite(store.sites, siteKey, { name: 'lost' })
  await directory.refresh()
  await admin.set('test:{sites}:revision', revision)
  await updateSite(store.sites, siteKey, { name: 'later' })
  await directory.refresh()
  assert.equal(directory.sites.cached(siteKey)?.record.name, 'later')

  await admin.zadd('test:{sites}:changes', 1, 's/broken')
  await admin.set('test:{sites}:record:s/broken', 'garbage')
  for (const read of [() => store.sites.listSites(), () => store.sites.readSite('broken')])
    await assert.rejects(read, /^Error: the record "s\/broken" in the store is not JSON$/)
})

test('redis: a change that is written, but whose answer is lost, is not told to have failed', async t => {
  const { server, store } = await startRedis(t)
  const proxy = await SickProxy.start(server.port)
  const other = await openRedisFor(t, `redis://127.0.0.1:${proxy.port}`)
  t.after(() => proxy.stop())
  await createSite(other.sites, { name: 'first' }) // Redis knows the script from now on
  proxy.fall({ kind: 'cut', keep: () => 0 })
  await assert.rejects(createSite(other.sites, { name: 'a' }), /ended .* not known whether this was done/)
  assert.equal((await store.sites.listSites()).length, 2)
})

for (const [what, saves] of [
  ['its memory is lost', false],
  ['it restarts from a snapshot that is older than a redemption', true],
] as const)
  test(`redis: after ${what}, what was issued before is refused as forgotten`, async t => {
    const told: number[][] = []
    const onForgotten = (...numbers: number[]) => told.push(numbers)
    const { server, store, admin } = await startRedis(t, { onForgotten })
    const epoch = store.requests.epochOf(SITE)!
    const redeem = redeemable(store)
    if (saves) await admin.save()
    assert.equal(await tokenOn(store, { redeem }), 'redeemed')
    await server.kill()
    await eventually(60_000, 'the loss is noticed', () => !store.isReady())
    await server.boot()
    if (saves) assert.ok((await admin.keys('test:{0}:*')).length > 0, 'the snapshot was restored')
    await eventually(60_000, 'the store is back', () => store.isReady())
    assert.notEqual(store.requests.epochOf(SITE), epoch)
    assert.equal(await tokenOn(store, { redeem }), 'forgotten')
    await eventually(60_000, 'the operator is told', () => told.length > 0)
    assert.deepEqual(told, [[1, 1]], 'once: one shard, of one')
  })

test('redis: it evicts keys: what was issued before is refused, so nothing is redeemed twice', async t => {
  let epochs = 0
  const onNewEpoch = () => epochs++
  const { store, admin } = await startRedis(t, { onNewEpoch }, ['--maxmemory-policy', 'noeviction'])
  const told: string[] = []
  const watch = new StoreWatch(store, (level, about, text) =>
    told.push(`${level} ${JSON.stringify(about)} ${text}`),
  )
  await admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  await watch.check()
  assert.match(told.pop()!, /^warn {"policy":"volatile-ttl"} Redis may evict/)
  // The note is `<server id> <time>`; with a policy that evicts keys, their number follows (lua/epoch.lua).
  const noted = async () => / \d+ \d+$/.test(String(await admin.get('test:{0}:look')))
  await eventually(60_000, 'a check has read the policy, and notes evicted keys from now on', noted)
  const redeem = redeemable(store)
  assert.equal(await tokenOn(store, { redeem }), 'redeemed')
  // Every key with an end goes; the epoch has none, and stays.
  await admin.config('SET', 'maxmemory', '1')
  await eventually(60_000, 'the record is evicted', async () => {
    await admin.set('other', 'x').catch(() => {})
    return (await admin.exists(`test:{0}:r:${redeem.nonce}`)) === 0
  })
  await admin.config('SET', 'maxmemory', '0')
  await eventually(60_000, 'the store is back', () => store.isReady())
  await new Promise(resolve => setTimeout(resolve, 5)) // a script looks for evicted keys again after 2 ms
  assert.equal(await tokenOn(store, { redeem }), 'forgotten')
  assert.ok(epochs > 0)
  await watch.check()
  assert.match(told.pop()!, /^error {"evictedKeys":\d+,"policy":"volatile-ttl"} Redis has evicted keys/)
  await watch.check()
  assert.deepEqual(told, [], 'it is told once')
  const epoch = store.requests.epochOf(SITE)
  await admin.config('RESETSTAT')
  await new Promise(resolve => setTimeout(resolve, 2500))
  assert.equal(store.requests.epochOf(SITE), epoch, 'nothing more was evicted')
})

test('redis: a primary that was made a replica and a primary again, over the same connection, redeems nothing twice', async t => {
  const args = ['--repl-diskless-sync-delay', '0']
  const { server, store } = await startRedis(t, {}, args)
  const other = await RedisServer.start(args)
  const isFollowing = async (replica: RedisServer) =>
    String(await replica.ask('info', 'replication')).includes('master_link_status:up')
  // A probe falls in between in some rounds, and finds a replica.
  for (let round = 0; round < 4; round++) {
    await other.ask('replicaof', '127.0.0.1', server.port)
    await eventually(60_000, 'a copy', () => isFollowing(other))
    await eventually(60_000, 'the store is back', () => store.isReady())
    await other.ask('replicaof', 'NO', 'ONE')
    const redeem = redeemable(store)
    assert.equal(await tokenOn(store, { redeem }), 'redeemed')
    await server.ask('replicaof', '127.0.0.1', other.port)
    await eventually(60_000, 'the older copy', () => isFollowing(server))
    await server.ask('replicaof', 'NO', 'ONE')
    const again = await eventually(60_000, 'an answer', async () => {
      const answer = await tokenOn(store, { redeem })
      return answer !== 'unavailable' && answer
    })
    assert.equal(again, 'forgotten')
  }
})

test('redis: listing the living hosts deletes no note; a host that notes itself deletes those of dead ones; none waits for a hung Redis', async t => {
  const { server, store, admin } = await startRedis(t, { deadlineMs: 1000 })
  const hosts = 'test:{sites}:hosts'
  await admin.hset(hosts, 'dead', '1 {"name":"dead"}')
  assert.deepEqual((await store.sites.livingHosts()).living, [])
  assert.equal(await admin.hexists(hosts, 'dead'), 1)
  await store.sites.noteHost('leaving', null)
  assert.equal(await admin.hexists(hosts, 'dead'), 0)

  server.freeze()
  await assert.rejects(store.sites.noteHost('late', {} as HostNote), /no answer/)
  server.thaw()
  assert.deepEqual((await store.sites.livingHosts()).living, [])
})

test('redis: keys expire, and an address at all its limits costs at most 1 KiB', async t => {
  const { store, admin } = await startRedis(t)
  const addressKey = '0a0b0c0d'
  for (let count = 0; count < 70; count++) {
    await challengeOn(store, { addressKey, siteTag: count % 3 })
    await solutionOn(store, { addressKey, siteTag: count % 3 })
  }
  await redemptionOn(store, { callerKey: addressKey })
  const bytes = Number(await admin.call('memory', 'usage', `test:{0}:l:${addressKey}`))
  assert.ok(bytes > 0 && bytes <= 1024, String(bytes))
  for (const key of await admin.keys('*')) {
    if (/:(epoch|look|count)$/.test(key)) continue
    const ttl = await admin.pttl(key)
    assert.ok(ttl > 0 && ttl <= 60_000, `${key} ${ttl}`)
  }
})

test('redis: the times of first proofs live on while proofs come: for a week, renewed once a day', async t => {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const { store, admin } = await startRedis(t, { clock: () => clock.now })
  const keys = ['test:{0}:e:born', 'test:{0}:e:born:test']
  const prove = () => {
    const addressKey = freshKey()
    const spend = spendable(store, addressKey, clock.now)
    return solutionOn(store, { addressKey, metering: meteringOf(addressKey), spend })
  }
  await prove()
  for (const key of keys) await admin.pexpire(key, 30_000)
  clock.now += DAY_MS - 1
  await prove()
  for (const key of keys) assert.ok((await admin.pttl(key)) <= 30_000)
  clock.now++
  await prove()
  for (const key of keys) assert.ok((await admin.pttl(key)) > 6 * DAY_MS)
})

test('redis: a full memory refuses; freed, it works again', async t => {
  const { store, admin } = await startRedis(t, {}, ['--maxmemory-policy', 'noeviction'])
  const becomes = (wanted: string) =>
    eventually(60_000, wanted, async () => {
      return (await challengeOn(store, { addressKey: freshKey() })).status === wanted
    })
  await admin.config('SET', 'maxmemory', '1')
  await becomes('unavailable')
  assert.equal((await redemptionOn(store)).status, 'unavailable')
  await admin.config('SET', 'maxmemory', '0')
  await becomes('admitted')
})

const IOREDIS = new URL('../../src/store/client/ioredis.ts', import.meta.url).href

/** What V8 says of String.prototype in a process that has loaded a module. */
function isFastAfter(module: string): string {
  const script = `await import(${JSON.stringify(module)}); console.log(%HasFastProperties(String.prototype))`
  const flags = ['--allow-natives-syntax', '--import', 'tsx', '--input-type=module', '--eval', script]
  return execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim()
}

test('the Redis store leaves String.prototype fast, which ioredis makes slow', () => {
  assert.equal(isFastAfter('ioredis'), 'false', 'ioredis does it no more: ioredis.ts need not mend it')
  assert.equal(isFastAfter(IOREDIS), 'true')
})

test('an ioredis of another shape is refused in a line with the version that is pinned', async t => {
  const { toWritable } = Command.prototype
  t.after(() => Object.assign(Command.prototype, { toWritable }))
  Reflect.deleteProperty(Command.prototype, 'toWritable')
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const line = `the installed ioredis lacks a method toWritable; install version ${manifest.dependencies.ioredis}, `
  await assert.rejects(import(`${IOREDIS}?again`), (error: Error) => error.message.includes(line))
})
