/** Rate limits as exact sliding windows, in both forms of record, and how large these become. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitToLog, LogKind } from '../../src/domain/address-log.ts'
import { EXACT_LIMIT_MAX, stepMs, WINDOW_MS } from '../../src/domain/limits.ts'
import { admitToWindow } from '../../src/domain/redemption-window.ts'

const KIND = LogKind.challenge
/** A window holds so many steps at most, and a part of one at either end. */
const STEPS_MAX = EXACT_LIMIT_MAX + 2
const challenge = { siteTag: 1, addressLimit: 3, siteLimit: 2 } as const

/** A record of two challenges, which are the limit of the site, one millisecond apart. */
function twoFrom(start: number): Buffer {
  const first = admitToLog(undefined, start, KIND, challenge)
  assert.ok(first.status === 'admitted')
  const second = admitToLog(Buffer.from(first.record), start + 1, KIND, challenge)
  assert.ok(second.status === 'admitted')
  return Buffer.from(second.record)
}
const statusAt = (record: Buffer, now: number) => admitToLog(record, now, KIND, challenge).status

test('the clock stepping back forgets nothing, and wrapping round changes nothing', () => {
  // Shortly after the clock's zero, before the record's 24 bits of it wrap round, and a moment of 2026.
  for (const start of [5000, 2 ** 24 - 500, 1_795_235_427_055]) {
    const record = twoFrom(start)
    const statuses = [-4000, 1000, WINDOW_MS + 1].map(ms => statusAt(record, start + ms))
    assert.deepEqual(statuses, ['limited', 'limited', 'admitted'], String(start))
  }
})

type Limits = readonly [addressLimit: number, siteLimit: number]

/** The bytes of a record after requests of both kinds in turn, for three sites in turn. */
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

test('records stay small: at the contract limits, and at the highest that can be configured', () => {
  assert.equal(logBytes(200, 1, [60, 30], [30, 20]), 8 * (60 + 30))
  const highest = [1_000_000, 1_000_000] as const
  const large = logBytes(4000, 30, highest, highest)
  // An entry of 8 bytes for each step, kind (of 2) and site (of 3).
  assert.ok(large > 8192 && large <= 8 * STEPS_MAX * 2 * 3, String(large))

  let window: Buffer | undefined
  for (let now = 0; now < 2 * WINDOW_MS; now += 30) {
    const decision = admitToWindow(window, now, 1_000_000)
    if (decision.status === 'admitted') window = decision.record
  }
  assert.ok(window!.length <= 4 + 5 * STEPS_MAX, String(window!.length)) // a total, and an entry for each step
})

test('rate limit: a step is one millisecond up to a limit of 256', () => {
  assert.deepEqual([1, 256, 257].map(stepMs), [1, 1, 235])
})
