/**
 * Single use on a real Redis whose clock jumps, and by hosts with wrong clocks. (libfaketime deadlocks with Redis'
 * allocator, so the test shifts every time that is measured by this clock instead.)
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

/** KEYS[2] of lua/epoch.lua: when a worker last looked at the server's clock. */
const NOTE = 'test:{0}:look'
/** Servers tell their time modulo this. */
const WRAP_MS = 2 ** 24

/**
 * Makes it look as if the server's clock had been set ahead, or back: in one transaction, so that no worker notes the time in
 * between. A worker goes by how far the two clocks come apart, so its own is set the other way.
 */
async function setClock(t: TestContext, server: RedisServer, aheadMs: number): Promise<void> {
  const client = new Redis(server.port)
  const names = await client.keys('*')
  const moved = client.multi()
  for (const name of names) {
    const leftMs = await client.pttl(name)
    // An expiry that is over deletes the key.
    if (leftMs >= 0) moved.pexpire(name, leftMs - aheadMs)
  }
  await moveNote(client, aheadMs, moved)
  const { now } = performance
  // Servers tell no more than the rest, so no worker takes itself to have been away for long.
  const backMs = ((aheadMs % WRAP_MS) + WRAP_MS) % WRAP_MS
  t.mock.method(performance, 'now', () => now.call(performance) - backMs)
  await moved.exec()
  client.disconnect()
}

/** Makes it look as if the last note had been so long ago. */
async function moveNote(client: Redis, agoMs: number, moved = client.multi()): Promise<ChainableCommander> {
  const [process, at] = String(await client.get(NOTE)).split(' ')
  assert.match(at!, /^\d{13}$/)
  return moved.set(NOTE, `${process} ${Number(at) - agoMs}`)
}

/** Spends a nonce and redeems its token; the function tries both once more. */
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

test('redis: its clock is set 20 s ahead: nothing is forgotten, and nothing used twice', async t => {
  const { server, store } = await startRedis(t)
  const epoch = store.requests.epochOf(SITE)
  const useAgain = await useBoth(store)
  await setClock(t, server, 20_000)
  assert.deepEqual(await useAgain(), ['used', 'used'])
  assert.equal(store.requests.epochOf(SITE), epoch)
})

test('redis: cut off for five minutes, or refused every write: who was there before vouches for the time', async t => {
  const { store, admin } = await startRedis(t)
  const useAgain = await useBoth(store)
  await (await moveNote(admin, 5 * MINUTE_MS)).exec()
  assert.deepEqual(await useAgain(), ['used', 'used'])
})

/** Long enough that a clock which is set by as much would be seen. */
const FROZEN_MS = 33_000

test('redis: it stands still for half a minute: what had been asked meanwhile does not look like a set clock', async t => {
  const told: string[] = []
  const { server, store } = await startRedis(t, { deadlineMs: 2000, onStillAway: why => told.push(why) })
  const epoch = store.requests.epochOf(SITE)
  const useAgain = await useBoth(store)
  const warnings: string[] = []
  process.on('warning', ({ message }) => warnings.push(message))
  told.length = 0
  server.freeze()
  await new Promise(resolve => setTimeout(resolve, FROZEN_MS))
  assert.deepEqual(told, [], 'its connection is given up, which is no other cause')
  server.thaw()
  await eventually(60_000, 'it answers again', async () => {
    const [solved, redeemed] = await useAgain()
    return solved !== 'unavailable' && redeemed !== 'unavailable'
  })
  assert.deepEqual(await useAgain(), ['used', 'used'])
  assert.equal(store.requests.epochOf(SITE), epoch)
  assert.deepEqual(warnings, [])
})

test('redis: nobody asked for a minute, and nobody vouches for it: what was issued before is refused', async t => {
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

test('a process vouches for a time that it has measured, from when it asked, and for no more than an hour', t => {
  const head = new CallHead()
  assert.equal(head.expectedTime(), NO_TIME)
  const askedAtMs = performance.now()
  let passedMs = 40
  t.mock.method(performance, 'now', () => askedAtMs + passedMs)
  const reply = Buffer.alloc(ANSWERS_AT)
  reply.writeDoubleBE(1e5 * WRAP_MS + 0xfffff0, TIME_AT)
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

test('how far the clock of this host is off, from 10 s to a day, either way; told at 1 s and at 5 s', async t => {
  const { server, store } = await startRedis(t, { deadlineMs: 1000 })
  const told: [level: string, about: object][] = []
  const watch = new StoreWatch(store, (level, about) => told.push([level, about]))
  const { now } = Date
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
  const [slightly, aheadSeconds] = [await aheadBy(3), await aheadBy(10)]
  await aheadBy(-3600)
  await aheadBy(86_400)
  const { last } = watch
  server.freeze()
  await assert.rejects(watch.check(), /no answer/, 'which is no answer that they agree')
  server.thaw()
  assert.equal(watch.last, last)
  await eventually(60_000, 'it answers again', () => store.isReady())
  assert.deepEqual(told.splice(0), [
    ['warn', { aheadSeconds: slightly }],
    ['warn', { aheadSeconds }],
  ])
  const right = await aheadBy(0)
  assert.deepEqual(told, [['info', { aheadSeconds: right }]], 'and that it is right again')
  assert.equal((await store.sites.readAudit({ limit: 9 })).length, 1, 'only the old entry is dropped')
})
