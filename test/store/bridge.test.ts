/** Failing open: a worker's memory while Redis is away. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { liveHeapBytes } from '../harness/measure.ts'
import { challengeOn, startRedis } from './harness.ts'

/** A worker that decides alone, from its memory, once Redis has been away for 300 ms. */
const BRIDGE = {
  workers: 1,
  failOpen: { challenge: true, verify: true },
  failOpenAfterMs: 300,
  monotonicMs: () => 1000,
  onCrowded: () => {},
}

test('a flood of addresses from one network closes the door to itself, not to newcomers, and is told once', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let [told, nowMs] = [0, 1000]
  const own = { workers: 2, failOpenAfterMs: 0, monotonicMs: () => nowMs, onCrowded: () => told++ }
  const bridge = { ...BRIDGE, ...own }
  const { store, server } = await startRedis(t, { deadlineMs: 200, bridge })
  await server.stop()
  await eventually(10_000, 'it is away', () => store.requests.awayMs('00000000') > 0)
  const outcomes = { admitted: 0, limited: 0, unavailable: 0 }
  const flood = async (index: number) => {
    const { status } = await challengeOn(store, { addressKey: `AAAAAAAAAA${index.toString(16)}` })
    outcomes[status]++
  }
  for (let index = 0; index < 110_000; index++) await flood(index)
  assert.equal(outcomes.unavailable, 0)
  // 100,000 addresses have a window each. The rest share their network's, with eight times a site's limit, which two workers share.
  assert.equal(outcomes.limited, 110_000 - 100_000 - (30 / 2) * 8)
  for (let network = 0; network < 1000; network++) {
    const addressKey = `N${String(network).padStart(9, '0')}01`
    assert.equal((await challengeOn(store, { addressKey })).status, 'admitted')
  }
  assert.equal(told, 1)
  const bytes = liveHeapBytes()
  nowMs += 60_000
  t.mock.timers.tick(60_000)
  assert.ok(bytes - liveHeapBytes() > 10 * 2 ** 20, 'what has expired is forgotten')
  await store.close()
  bridge.monotonicMs = () => assert.fail('a closed one forgets no more')
  t.mock.timers.tick(60_000)
})

test('what waits for Redis as it goes away is refused: only after failOpenAfterMs does a worker decide alone', async t => {
  const { store, server } = await startRedis(t, { deadlineMs: 100, bridge: BRIDGE })
  await new Promise(resolve => setTimeout(resolve, 400)) // it has been up for longer than that
  server.freeze()
  assert.equal((await challengeOn(store, { addressKey: 'AAAAAAAAAA01' })).status, 'unavailable')
  await eventually(10_000, 'the worker decides', async () => {
    const { status } = await challengeOn(store, { addressKey: 'AAAAAAAAAA01' })
    return status === 'admitted'
  })
  server.thaw()
})
