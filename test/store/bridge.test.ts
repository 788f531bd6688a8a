/** Failing open: while Redis is away, a worker answers from its own memory (src/store/client/bridge.ts), which has bounds. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BridgeOptions } from '../../src/store/client/bridge.ts'
import { eventually } from '../harness/eventually.ts'
import { liveHeapBytes } from '../harness/measure.ts'
import { challengeOn, startRedis } from './harness.ts'

/** A worker that decides alone, from its memory, once Redis has been away for 300 ms. */
const BRIDGE: BridgeOptions = {
  workers: 1,
  failOpen: { challenge: true, verify: true },
  failOpenAfterMs: 300,
  monotonicMs: () => 1000,
}

test('a flood of addresses from one network is refused once memory is full, newcomers from others are not, and it is told once', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let [timesTold, nowMs, isClosed] = [0, 1000, false]
  const monotonicMs = () => {
    assert.ok(!isClosed, 'the timer of a closed store still runs')
    return nowMs
  }
  const options = { workers: 2, failOpenAfterMs: 0, monotonicMs, onCrowded: () => timesTold++ }
  const { store, server } = await startRedis(t, { deadlineMs: 200, bridge: { ...BRIDGE, ...options } })
  await server.stop()
  await eventually(10_000, 'it is away', () => store.requests.awayMs('00000000') > 0) // of the one shard, to which any key leads
  const outcomes = { admitted: 0, limited: 0, unavailable: 0 }
  for (let index = 0; index < 110_000; index++) {
    // The first ten characters of a key are its network.
    const { status } = await challengeOn(store, { addressKey: `AAAAAAAAAA${index.toString(16)}` })
    outcomes[status]++
  }
  assert.equal(outcomes.unavailable, 0)
  // ADDRESSES_MAX (100,000) addresses have a window each. The rest share their network's, with SHARED_TIMES (8) the site's limit of 30,
  // of which each of the two workers has half.
  assert.equal(outcomes.limited, 110_000 - 100_000 - (30 / 2) * 8)
  for (let network = 0; network < 1000; network++) {
    const addressKey = `N${String(network).padStart(9, '0')}01`
    assert.equal((await challengeOn(store, { addressKey })).status, 'admitted')
  }
  assert.equal(timesTold, 1)
  const bytes = liveHeapBytes()
  nowMs += 60_000
  t.mock.timers.tick(60_000)
  assert.ok(bytes - liveHeapBytes() > 10 * 2 ** 20, 'the 100,000 windows have expired and are forgotten')
  await store.close()
  isClosed = true
  t.mock.timers.tick(60_000)
})

test('what waits for Redis as it goes away is refused: only after failOpenAfterMs does a worker decide alone', async t => {
  const { store, server } = await startRedis(t, { deadlineMs: 100, bridge: BRIDGE })
  await new Promise(resolve => setTimeout(resolve, 400)) // Redis has been up for longer than failOpenAfterMs
  server.freeze()
  const status = async () => (await challengeOn(store, { addressKey: 'AAAAAAAAAA01' })).status
  assert.equal(await status(), 'unavailable')
  await eventually(10_000, 'the worker decides', async () => (await status()) === 'admitted')
  server.thaw()
})
