/** The two records that count requests for rate limits (an address's log, a window of redemptions): steps of the clock, and their size. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitToLog, LogKind } from '../../src/domain/address-log.ts'
import { EXACT_LIMIT_MAX, stepMs, WINDOW_MS } from '../../src/domain/limits.ts'
import { admitToWindow } from '../../src/domain/redemption-window.ts'

/** Asks for a challenge at a site whose limit is two. */
const challengeAt = (record: Buffer | undefined, now: number) =>
  admitToLog(record, now, LogKind.challenge, { siteTag: 1, addressLimit: 3, siteLimit: 2 })

/** The record after two challenges, one millisecond apart. */
function twoFrom(start: number): Buffer {
  const first = challengeAt(undefined, start)
  assert.ok(first.status === 'admitted')
  const second = challengeAt(Buffer.from(first.record), start + 1)
  assert.ok(second.status === 'admitted')
  return Buffer.from(second.record)
}

test('a limit holds while the clock steps back and while its 24 bits in the record wrap round, and ends after a minute', () => {
  // Shortly after the clock's zero, shortly before it wraps round, and a moment of 2026.
  for (const start of [5000, 2 ** 24 - 500, 1_795_235_427_055]) {
    const record = twoFrom(start)
    const statuses = [-4000, 1000, WINDOW_MS + 1].map(ms => challengeAt(record, start + ms).status)
    assert.deepEqual(statuses, ['limited', 'limited', 'admitted'], String(start))
  }
})

type Limits = readonly [addressLimit: number, siteLimit: number]

/** The bytes of an address's log after requests, one every `everyMs`: challenges and verifications in turn, at three sites in turn. */
function logBytes(requests: number, everyMs: number, challenges: Limits, verifications: Limits): number {
  let log: Buffer | undefined
  for (let index = 0; index < requests; index++) {
    const [kind, [addressLimit, siteLimit]] =
      index % 2 === 0 ? [LogKind.challenge, challenges] : [LogKind.verification, verifications]
    const request = { siteTag: index % 3, addressLimit, siteLimit }
    const decision = admitToLog(log, 1000 + everyMs * index, kind, request)
    if (decision.status === 'admitted') log = Buffer.from(decision.record)
  }
  return log!.length
}

/** The steps of a window, and a part of one at either end. */
const STEPS_MAX = EXACT_LIMIT_MAX + 2

test('records stay small: at the contract limits, and at the highest that can be configured', () => {
  // An entry of 8 bytes for each request that the limits of the address admit.
  assert.equal(logBytes(200, 1, [60, 30], [30, 20]), 8 * (60 + 30))
  const highest = [1_000_000, 1_000_000] as const
  const large = logBytes(4000, 30, highest, highest) // two minutes, so the first window is over
  // An entry for each step, kind (of 2) and site (of 3); below 8 KiB the test would be far from that bound.
  assert.ok(large > 8192 && large <= 8 * STEPS_MAX * 2 * 3, String(large))

  let window: Buffer | undefined
  for (let now = 0; now < 2 * WINDOW_MS; now += 30) {
    const decision = admitToWindow(window, now, highest[0])
    if (decision.status === 'admitted') window = decision.record
  }
  assert.ok(window!.length <= 4 + 5 * STEPS_MAX, String(window!.length)) // a total, and an entry for each step
})

test('a step of time is one millisecond up to a limit of 256, and above it 1/256 of a minute', () => {
  assert.deepEqual([1, 256, 257].map(stepMs), [1, 1, 235])
})
