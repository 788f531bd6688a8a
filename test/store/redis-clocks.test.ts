/**
 * Single use on a real Redis whose clock is set, and by hosts with wrong clocks. No test sets the clock of Redis (libfaketime deadlocks
 * with its allocator): instead, every time that Redis has written or measures by it is moved the other way.
 */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ChainableCommander, Redis } from 'ioredis'
import { CallHead } from '../../src/store/client/call-head.ts'
import type { StoreClient } from '../../src/store/client/store-client.ts'
import { StoreWatch } from '../../src/store/watch.ts'
import { ANSWERS_AT, NO_TIME, TIME_AT } from '../../src/store/wire.ts'
import { eventually } from '../harness/eventually.ts'
import type { RedisServer } from '../harness/redis.ts'
import { freshKey, nonceOn, openRedisFor, redeemable, SITE, startRedis, tokenOn } from './harness.ts'

/** The note of shard 0 (KEYS[2] of lua/epoch.lua), `<server id> <time>`: when a worker last looked at the server's clock. */
const NOTE = 'test:{0}:look'
/** Servers tell their time modulo this. */
const WRAP_MS = 2 ** 24

/**
 * Makes it look as if the server's clock had been set ahead, or back if `aheadMs` is negative: keys expire so much sooner, the note is
 * so much older, and the worker's clock, with which it compares the server's, goes back. Redis moves all in one transaction, so that no
 * worker notes the time in between.
 */
async function setClock(t: TestContext, server: RedisServer, aheadMs: number): Promise<void> {
  const client = new Redis(server.port)
  const moved = client.multi()
  for (const name of await client.keys('*')) {
    const leftMs = await client.pttl(name) // below 0 without an end
    if (leftMs >= 0) moved.pexpire(name, leftMs - aheadMs) // one that is over deletes the key
  }
  await moveNote(client, aheadMs, moved)
  const { now } = performance
  // Times count modulo WRAP_MS, so a step back by some time is one ahead by the rest of WRAP_MS. Only a clock that goes back by less than
  // that will do: by more, the worker would take itself to have been away for long.
  const backMs = ((aheadMs % WRAP_MS) + WRAP_MS) % WRAP_MS
  t.mock.method(performance, 'now', () => now.call(performance) - backMs)
  await moved.exec()
  client.disconnect()
}

/** Adds to a transaction what makes it look as if the last note had been so long ago. */
async function moveNote(client: Redis, agoMs: number, moved = client.multi()): Promise<ChainableCommander> {
  const [serverId, at] = String(await client.get(NOTE)).split(' ')
  assert.match(at!, /^\d{13}$/)
  return moved.set(NOTE, `${serverId} ${Number(at) - agoMs}`)
}

/** Spends a nonce and redeems its token. @returns a function that tries both once more */
async function useBoth(store: StoreClient) {
  const redeem = redeemable(store)
  const spend = { addressKey: freshKey(), spend: redeem }
  const useAgain = async () => [await nonceOn(store, spend), await tokenOn(store, { redeem })]
  assert.deepEqual(await useAgain(), ['spent', 'redeemed'])
  return useAgain
}

const MINUTE_MS = 60_000
const STEPS = {
  'ten minutes ahead': 10 * MINUTE_MS,
  'a day ahead': 24 * 60 * MINUTE_MS,
  'ten minutes back': -10 * MINUTE_MS,
  'three hours back': -180 * MINUTE_MS,
  '2^24 ms ahead': WRAP_MS,
  '2^24 ms back': -WRAP_MS,
}

for (const [name, aheadMs] of Object.entries(STEPS)) {
  test(`redis: its clock is set ${name}, and right again: what was used before stays used`, async t => {
    const { server, store } = await startRedis(t)
    const useAgain = await useBoth(store)
    await setClock(t, server, aheadMs)
    assert.deepEqual(await useAgain(), ['used', 'forgotten'])
    const useNewAgain = await useBoth(store)
    await setClock(t, server, -aheadMs)
    assert.deepEqual(await useAgain(), ['used', 'forgotten'])
    assert.deepEqual(await useNewAgain(), ['used', 'forgotten'])
  })
}

test('redis: its clock is set 20 s ahead, less than CLOCK_OFF_MAX: nothing is forgotten, and nothing used twice', async t => {
  const { server, store } = await startRedis(t)
  const epoch = store.requests.epochOf(SITE)
  const useAgain = await useBoth(store)
  await setClock(t, server, 20_000)
  assert.deepEqual(await useAgain(), ['used', 'used'])
  assert.equal(store.requests.epochOf(SITE), epoch)
})

test('redis: a note that is five minutes old, as after a cut: the worker still expects the right time, so nothing is forgotten', async t => {
  const { store, admin } = await startRedis(t)
  const useAgain = await useBoth(store)
  await (await moveNote(admin, 5 * MINUTE_MS)).exec()
  assert.deepEqual(await useAgain(), ['used', 'used'])
})

test('redis: it stands still for half a minute: calls that waited meanwhile are not taken for a clock that was set', async t => {
  const told: string[] = []
  const { server, store } = await startRedis(t, { deadlineMs: 2000, onStillAway: why => told.push(why) })
  const epoch = store.requests.epochOf(SITE)
  const useAgain = await useBoth(store)
  const warnings: string[] = []
  process.on('warning', ({ message }) => warnings.push(message))
  told.length = 0
  server.freeze()
  // Above CLOCK_OFF_MAX (30 s) of lua/epoch.lua: a clock that is set by as much would be seen.
  await new Promise(resolve => setTimeout(resolve, 33_000))
  assert.deepEqual(told, [], 'the silent connection is replaced, which is not told as another cause')
  server.thaw()
  await eventually(60_000, 'it answers again', async () => {
    const [solved, redeemed] = await useAgain()
    return solved !== 'unavailable' && redeemed !== 'unavailable'
  })
  assert.deepEqual(await useAgain(), ['used', 'used'])
  assert.equal(store.requests.epochOf(SITE), epoch)
  assert.deepEqual(warnings, [])
})

test('redis: a note that is a minute old, and a new worker, which expects no time: the epoch is another', async t => {
  const { server, store, admin } = await startRedis(t)
  const epoch = store.requests.epochOf(SITE)
  await store.close()
  await (await moveNote(admin, MINUTE_MS)).exec()
  const next = await openRedisFor(t, server.url)
  assert.notEqual(next.requests.epochOf(SITE), epoch)
})

test('redis: a redemption by a host that is ten minutes ahead is remembered until the token has ended where clocks are right', async t => {
  const { server, store } = await startRedis(t)
  const aheadMs = 600_000
  const redeem = redeemable(store, Date.now() + aheadMs)
  const { now } = Date
  const clock = t.mock.method(Date, 'now', () => now() + aheadMs)
  assert.equal(await tokenOn(store, { redeem }), 'redeemed')
  clock.mock.restore()
  const leftMs = Number(await server.ask('pttl', `test:{0}:r:${redeem.nonce}`))
  assert.ok(leftMs > redeem.expiresAtMs - Date.now(), `it is kept for ${leftMs} ms`)
})

test('redis: workers note when they looked, so the epoch lasts while nobody sets a clock, for processes that come later too', async t => {
  const { server, store } = await startRedis(t)
  const epoch = store.requests.epochOf(SITE)
  const notedAt = async () => Number(String(await server.ask('get', NOTE)).split(' ')[1])
  const before = await notedAt()
  await eventually(60_000, 'it is noted again', async () => (await notedAt()) - before >= 3000)
  await useBoth(store)
  assert.equal(store.requests.epochOf(SITE), epoch)
  const next = await openRedisFor(t, server.url)
  assert.equal(next.requests.epochOf(SITE), epoch)
})

test('a worker expects the server’s time as measured since it asked, modulo 2^24, and for no more than an hour', t => {
  const head = new CallHead(false)
  assert.equal(head.expectedTime(), NO_TIME)
  const askedAtMs = performance.now()
  let passedMs = 40
  t.mock.method(performance, 'now', () => askedAtMs + passedMs)
  const reply = Buffer.alloc(ANSWERS_AT)
  reply.writeDoubleBE(1e5 * WRAP_MS + 0xfffff0, TIME_AT) // 16 ms before it wraps round
  head.learn(reply, askedAtMs)
  for (const [ms, expected] of [
    [40, 0xfffff0 + 40 - WRAP_MS],
    [3_600_000, (0xfffff0 + 3_600_000) % WRAP_MS],
    [3_600_001, NO_TIME],
  ] as const) {
    passedMs = ms
    assert.equal(head.expectedTime(), expected)
  }
  passedMs = 0
  head.forgetTime()
  assert.equal(head.expectedTime(), NO_TIME)
})

test('how far the clock of this host is off is known, up to a day either way, told above 1 s and once more above 5 s; audit entries are dropped by the clock of Redis', async t => {
  const { server, store } = await startRedis(t, { deadlineMs: 1000 })
  const told: [level: string, about: object][] = []
  const watch = new StoreWatch(store, (level, about) => told.push([level, about]))
  const { now } = Date
  /** Looks while this host's clock is so far ahead. @returns by how much it seems to be */
  const aheadBy = async (seconds: number) => {
    const clock = t.mock.method(Date, 'now', () => now() + seconds * 1000)
    await watch.check()
    await store.dropAudit(60_000)
    clock.mock.restore()
    const { clockAheadSeconds = 0 } = watch.last ?? {}
    assert.ok(Math.abs(clockAheadSeconds - seconds) < 0.25, `${clockAheadSeconds} instead of ${seconds}`)
    return clockAheadSeconds
  }
  for (const id of ['1-1', '*']) await server.ask('xadd', 'test:{sites}:audit', id, 'entry', '{}')
  await aheadBy(0.5)
  const [above1, above5] = [await aheadBy(3), await aheadBy(10)]
  for (const further of [-3600, 86_400]) await aheadBy(further) // is not told again
  const { last } = watch
  server.freeze()
  await assert.rejects(watch.check(), /no answer/, 'which is no answer that they agree')
  server.thaw()
  assert.equal(watch.last, last)
  await eventually(60_000, 'it answers again', () => store.isReady())
  assert.deepEqual(told.splice(0), [
    ['warn', { aheadSeconds: above1 }],
    ['warn', { aheadSeconds: above5 }],
  ])
  const right = await aheadBy(0)
  assert.deepEqual(told, [['info', { aheadSeconds: right }]], 'and that it is right again')
  assert.equal((await store.sites.readAudit({ limit: 9 })).length, 1, 'only the entry of 1970 is dropped')
})
