import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { parseRedisUrl } from '../../src/config/redis.ts'
import { RedisStore, type RedisStoreOptions } from '../../src/store/redis/store.ts'
import { eventually } from '../harness/eventually.ts'
import { ENGINES, type Engine, RedisServer } from '../harness/redis.ts'
import { storeConformance } from './conformance.ts'
import {
  challengeOn,
  freshKey,
  freshNonce,
  openTwice,
  redemptionOn,
  solutionOn,
  type TestStore,
  tokenOn,
} from './harness.ts'
import { limitsProperty } from './limits-property.ts'

const DEADLINE_MS = 1000

async function openStore(url: string, options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  const target = parseRedisUrl(url)!
  const store = new RedisStore({
    target,
    keyPrefix: 'test',
    clusterShards: 16,
    deadlineMs: DEADLINE_MS,
    openMs: 5000,
    ...options,
  })
  await store.open()
  return store
}

async function make(engine: Engine): Promise<TestStore> {
  const server = await RedisServer.start([], { engine })
  return openTwice(
    clock => openStore(server.url, { clock: () => clock.now }),
    () => server.stop(),
  )
}

for (const engine of ENGINES) {
  storeConformance(engine, () => make(engine))
  limitsProperty(engine, () => make(engine))
}

test('redis: one event-loop turn is one script call, and at most 128 operations are one call', async () => {
  const server = await RedisServer.start()
  const store = await openStore(server.url)
  const admin = new Redis(server.port)
  const scriptCalls = async () => {
    const stats = await admin.info('commandstats')
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  }
  const turn = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, index) => {
        if (index % 3 === 0) return challengeOn(store, { addressKey: freshKey() })
        if (index % 3 === 1) return solutionOn(store, { addressKey: freshKey() })
        return redemptionOn(store, { callerKey: freshKey() })
      }),
    )
  await turn(3)
  await admin.config('RESETSTAT')
  await turn(90)
  // The store's own probe may fall in between: once a second.
  assert.ok((await scriptCalls()) <= 2, String(await scriptCalls()))
  await admin.config('RESETSTAT')
  await turn(384)
  const calls = await scriptCalls()
  assert.ok(calls >= 3 && calls <= 4, String(calls))
  await admin.quit()
  await store.close()
  await server.stop()
})

test('redis: SCRIPT FLUSH is healed without a refusal', async () => {
  const server = await RedisServer.start()
  const store = await openStore(server.url)
  const admin = new Redis(server.port)
  await challengeOn(store, { addressKey: freshKey() })
  await admin.script('FLUSH')
  assert.equal((await challengeOn(store, { addressKey: freshKey() })).status, 'admitted')
  await admin.quit()
  await store.close()
  await server.stop()
})

test('redis: after its memory is lost, what was issued before is refused as forgotten', async () => {
  const server = await RedisServer.start()
  const told: number[][] = []
  const onForgotten = (...numbers: number[]) => told.push(numbers)
  const store = await openStore(server.url, { deadlineMs: 150, onForgotten })
  const epoch = store.siteEpoch('site_0000000000000000000000')!
  const redeem = {
    nonce: freshNonce(Date.now()),
    storeEpoch: epoch,
    expiresAtMs: Date.now() + 300_000,
    claim: '',
  }
  assert.equal(await tokenOn(store, { redeem }), 'redeemed')
  await server.kill()
  await eventually(5000, 'the loss is noticed', () => !store.isReady())
  await server.boot()
  await eventually(5000, 'the store is back', () => store.isReady())
  assert.notEqual(store.siteEpoch('site_0000000000000000000000'), epoch)
  assert.equal(await tokenOn(store, { redeem }), 'forgotten')
  await eventually(1000, 'the operator is told', () => told.length > 0)
  assert.deepEqual(told, [[1, 1]])
  await store.close()
  await server.stop()
})

test('redis: restarted from a snapshot that is older than a redemption, it refuses the token as forgotten', async () => {
  const server = await RedisServer.start()
  const store = await openStore(server.url, { deadlineMs: 150 })
  const admin = new Redis(server.port)
  const storeEpoch = store.siteEpoch('site_0000000000000000000000')!
  const redeem = { nonce: freshNonce(Date.now()), storeEpoch, expiresAtMs: Date.now() + 300_000, claim: '' }
  await admin.save()
  admin.disconnect()
  assert.equal(await tokenOn(store, { redeem }), 'redeemed')
  await server.kill()
  await eventually(5000, 'the loss is noticed', () => !store.isReady())
  await server.boot()
  const restored = new Redis(server.port)
  assert.ok((await restored.keys('test:{0}:*')).length > 0, 'the snapshot was restored')
  await eventually(5000, 'the store is back', () => store.isReady())
  assert.equal(await tokenOn(store, { redeem }), 'forgotten')
  restored.disconnect()
  await store.close()
  await server.stop()
})

test('redis: a primary that was made a replica and a primary again, over the same connection, redeems nothing twice', async t => {
  const args = ['--repl-diskless-sync-delay', '0']
  const [server, other] = [await RedisServer.start(args), await RedisServer.start(args)]
  const store = await openStore(server.url)
  t.after(async () => {
    await store.close()
    await Promise.all([server.stop(), other.stop()])
  })
  const isFollowing = async (replica: RedisServer) =>
    String(await replica.ask('info', 'replication')).includes('master_link_status:up')
  // In some rounds a probe falls in between, and finds a replica.
  for (let round = 0; round < 4; round++) {
    await other.ask('replicaof', '127.0.0.1', server.port)
    await eventually(20_000, 'a copy', () => isFollowing(other))
    await eventually(20_000, 'the store is back', () => store.isReady())
    await other.ask('replicaof', 'NO', 'ONE')
    const storeEpoch = store.siteEpoch('site_0000000000000000000000')!
    const redeem = { nonce: freshNonce(Date.now()), storeEpoch, expiresAtMs: Date.now() + 300_000, claim: '' }
    assert.equal(await tokenOn(store, { redeem }), 'redeemed')
    await server.ask('replicaof', '127.0.0.1', other.port)
    await eventually(20_000, 'the older copy', () => isFollowing(server))
    await server.ask('replicaof', 'NO', 'ONE')
    const again = await eventually(20_000, 'an answer', async () => {
      const answer = await redemptionOn(store, { redeem })
      return answer.status === 'admitted' ? answer.token : undefined
    })
    assert.equal(again, 'forgotten')
  }
})

test('redis: keys expire, and an address at all its limits costs at most 1 KiB', async () => {
  const server = await RedisServer.start()
  const store = await openStore(server.url)
  const admin = new Redis(server.port)
  const addressKey = '0a0b0c0d'
  for (let count = 0; count < 70; count++) {
    await challengeOn(store, { addressKey, siteTag: count % 3 })
    await solutionOn(store, { addressKey, siteTag: count % 3 })
  }
  await redemptionOn(store, { callerKey: addressKey })
  const bytes = Number(await admin.call('memory', 'usage', `test:{0}:l:${addressKey}`))
  assert.ok(bytes > 0 && bytes <= 1024, String(bytes))
  for (const key of await admin.keys('*')) {
    if (key.endsWith(':epoch') || key.endsWith(':look')) continue
    const ttl = await admin.pttl(key)
    assert.ok(ttl > 0 && ttl <= 60_000, `${key} ${ttl}`)
  }
  await admin.quit()
  await store.close()
  await server.stop()
})

test('redis: a full memory refuses; freed, it works again', async () => {
  const server = await RedisServer.start(['--maxmemory-policy', 'noeviction'])
  const store = await openStore(server.url)
  const admin = new Redis(server.port)
  await admin.config('SET', 'maxmemory', '1')
  await eventually(
    5000,
    'refusals',
    async () => (await challengeOn(store, { addressKey: freshKey() })).status === 'unavailable',
  )
  assert.equal((await redemptionOn(store)).status, 'unavailable')
  await admin.config('SET', 'maxmemory', '0')
  await eventually(
    5000,
    'admissions',
    async () => (await challengeOn(store, { addressKey: freshKey() })).status === 'admitted',
  )
  await admin.quit()
  await store.close()
  await server.stop()
})

test('REDIS_URL: good and bad forms', () => {
  const rows: [url: string, expected: string | undefined][] = [
    ['redis://localhost', 'standalone localhost:6379'],
    ['redis://user:p%40ss@10.0.0.1:7000/3', 'standalone 10.0.0.1:7000 db 3 user p@ss'],
    ['rediss://[::1]:80', 'standalone ::1:80 tls'],
    ['redis://a:1,redis://b:2', 'cluster a:1 b:2'],
    ['redis://:secret@a:1,b:2', 'cluster a:1 b:2 undefined secret'],
    ['redis+cluster://a', 'cluster a:6379'],
    ['redis+sentinel://a:1,b/main', 'sentinel a:1 b:26379 main'],
    ['rediss+sentinel://a/main/2', 'sentinel a:26379 db 2 main tls'],
    ['', undefined],
    ['localhost:6379', undefined],
    ['http://localhost', undefined],
    ['redis://', undefined],
    ['redis://host:notaport', undefined],
    ['redis://user:50%off@host', undefined],
    ['redis://host/x', undefined],
    ['redis://a,http://b', undefined],
    ['redis+sentinel://a:1', undefined],
    ['redis+cluster://a/1', undefined],
    ['redis://:one@a,:two@b', undefined],
    ['redis://a?tls=yes', undefined],
  ]
  for (const [url, expected] of rows) {
    const target = parseRedisUrl(url)
    const text =
      target &&
      [
        target.kind,
        ...target.nodes.map(({ host, port }) => `${host}:${port}`),
        ...(target.db === 0 ? [] : [`db ${target.db}`]),
        ...(target.password === undefined ? [] : [String(target.username), target.password]),
        ...(target.primaryName === undefined ? [] : [target.primaryName]),
        ...(target.tls === undefined ? [] : ['tls']),
      ].join(' ')
    assert.equal(text, expected, url)
  }
})

const CONNECTION = new URL('../../src/store/redis/connection.ts', import.meta.url).href

/** What V8 says of String.prototype in a process that has loaded a module. */
function isFastAfter(module: string): string {
  const script = `await import(${JSON.stringify(module)}); console.log(%HasFastProperties(String.prototype))`
  const flags = ['--allow-natives-syntax', '--import', 'tsx', '--input-type=module', '--eval', script]
  return execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim()
}

test('the Redis store leaves String.prototype fast, which ioredis makes slow', () => {
  assert.equal(isFastAfter('ioredis'), 'false', 'ioredis does it no more: connection.ts need not mend it')
  assert.equal(isFastAfter(CONNECTION), 'true')
})
