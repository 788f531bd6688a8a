import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitToLog, LogKind } from '../../src/domain/address-log.ts'
import { admitToWindow, slotMs, WINDOW_MS } from '../../src/domain/limits.ts'

const KIND = LogKind.challenge
const challenge = { siteTag: 1, addressLimit: 3, siteLimit: 2 } as const

test('a window opens exactly 60 seconds after a request left it', () => {
  let record: Buffer | undefined
  for (const now of [1000, 1001]) {
    const decision = admitToLog(record, now, KIND, challenge)
    assert.ok(decision.status === 'admitted')
    record = Buffer.from(decision.record)
  }
  assert.equal(admitToLog(record, 1000 + WINDOW_MS - 1, KIND, challenge).status, 'limited')
  assert.equal(admitToLog(record, 1000 + WINDOW_MS, KIND, challenge).status, 'admitted')
})

test('the clock stepping back forgets nothing, and wrapping round changes nothing', () => {
  for (const start of [5000, 2 ** 24 - 500, 1_795_235_427_055]) {
    let record: Buffer | undefined
    for (const now of [start, start + 1]) {
      const decision = admitToLog(record, now, KIND, challenge)
      assert.ok(decision.status === 'admitted')
      record = Buffer.from(decision.record)
    }
    assert.equal(admitToLog(record, start - 4000, KIND, challenge).status, 'limited', `${start} stepped back`)
    assert.equal(admitToLog(record, start + 1000, KIND, challenge).status, 'limited', String(start))
    assert.equal(admitToLog(record, start + WINDOW_MS + 1, KIND, challenge).status, 'admitted', String(start))
  }
})

test('records stay small: at the contract limits, and at the highest that can be configured', () => {
  let log: Buffer | undefined
  for (let index = 0; index < 200; index++) {
    const kind = index % 2 === 0 ? LogKind.challenge : LogKind.verification
    const limits = kind === LogKind.challenge ? [60, 30] : [30, 20]
    const request = { siteTag: index % 3, addressLimit: limits[0]!, siteLimit: limits[1]! }
    const decision = admitToLog(log, 1000 + index, kind, request)
    if (decision.status === 'admitted') log = Buffer.from(decision.record)
  }
  assert.equal(log!.length, 8 * (60 + 30))

  let large: Buffer | undefined
  for (let index = 0; index < 40_000; index++) {
    const kind = index % 2 === 0 ? LogKind.challenge : LogKind.verification
    const request = { siteTag: 1 + (index % 3), addressLimit: 1_000_000, siteLimit: 1_000_000 }
    const decision = admitToLog(large, 3 * index, kind, request)
    if (decision.status === 'admitted') large = Buffer.from(decision.record)
  }
  assert.ok(large!.length <= 8 * 258 * 6, String(large!.length))

  let window: Buffer | undefined
  for (let now = 0; now < 2 * WINDOW_MS; now += 3) {
    const decision = admitToWindow(window, now, 1_000_000, 'api-key')
    if (decision.status === 'admitted') window = decision.record
  }
  assert.ok(window!.length <= 4 + 5 * 258, String(window!.length))
})

test('rate limit: a slot is one millisecond up to a limit of 256', () => {
  assert.equal(slotMs(1), 1)
  assert.equal(slotMs(256), 1)
  assert.equal(slotMs(257), 235)
})
