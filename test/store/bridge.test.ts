/** Failing open: a worker's memory while Redis is away. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BridgedStore } from '../../src/store/bridge.ts'
import { challengeOn, startRedis } from './harness.ts'

test('a flood of addresses from one network closes the door to itself, not to newcomers, and is told once', async t => {
  const { store, server } = await startRedis(t, { deadlineMs: 200 })
  const lost = new Promise<void>(resolve => {
    const timer = setInterval(() => {
      if (store.requests.awayMs('00000000') === 0) return
      clearInterval(timer)
      resolve()
    }, 20)
  })
  await server.stop()
  await challengeOn(store)
  await lost
  let told = 0
  const options = {
    workers: 2,
    failOpen: { challenge: true, verify: true },
    failOpenAfterMs: 0,
    onCrowded: () => told++,
  }
  const bridged = { requests: new BridgedStore(store.requests, options, () => 1000) }
  const outcomes = { admitted: 0, limited: 0, unavailable: 0 }
  const flood = async (index: number) => {
    const { status } = await challengeOn(bridged, { addressKey: `AAAAAAAAAA${index.toString(16)}` })
    outcomes[status]++
  }
  for (let index = 0; index < 110_000; index++) await flood(index)
  assert.equal(outcomes.unavailable, 0)
  assert.equal(outcomes.limited, 110_000 - 100_000 - (30 / 2) * 8, 'the rest share their network’s window')
  for (let network = 0; network < 1000; network++) {
    const addressKey = `N${String(network).padStart(9, '0')}01`
    assert.equal((await challengeOn(bridged, { addressKey })).status, 'admitted')
  }
  assert.equal(told, 1)
})
