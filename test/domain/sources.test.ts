import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, parseAddress } from '../../src/domain/address.ts'
import { NEW_SOURCE, SourceWatch } from '../../src/domain/sources.ts'

const SECRET = 7
const MINUTE_MS = 60_000
const address = (text: string) => parseAddress(text)!

/** Accepts so many proofs a minute, spread evenly over ten minutes. @returns the time then */
function accept(watch: SourceWatch, perMinute: number, next: (index: number) => Address): number {
  for (let index = 0; index < 10 * perMinute; index++)
    watch.accepted(next(index), (index * MINUTE_MS) / perMinute)
  return 10 * MINUTE_MS
}

test('a network costs nothing up to what is free, then a bit for each doubling', () => {
  for (const secret of [1, SECRET, 2 ** 32 - 1]) {
    for (const [perMinute, bits] of Object.entries({ 60: 0, 130: 1, 300: 2, 600: 3 })) {
      const watch = new SourceWatch(1, secret)
      const now = accept(watch, Number(perMinute), index => address(`192.0.2.${index % 250}`))
      assert.equal(watch.of(address('192.0.2.251'), now).networkBits, bits, `${perMinute} a minute`)
      assert.equal(watch.of(address('198.51.100.1'), now).networkBits, 0, 'another network')
      assert.equal(watch.of(address('192.0.2.251'), now + 5 * MINUTE_MS).networkBits, 0, 'minutes later')
    }
  }
})

test('the networks of a provider add up, and a /48 of IPv6 costs two bits for each doubling', () => {
  const blocks = new SourceWatch(1, SECRET)
  const now = accept(blocks, 500, index => address(`203.0.${112 + (index % 16)}.${index % 200}`))
  assert.ok(blocks.of(address('203.0.112.250'), now).networkBits >= 1)
  const whole = new SourceWatch(1, SECRET)
  accept(whole, 300, index => address(`2001:db8:1:${index.toString(16)}::1`))
  const { networkBits } = whole.of(address('2001:db8:1:ffff::1'), now)
  assert.ok(networkBits >= 6 && networkBits <= 7, String(networkBits))
})

test('an address comes again from the third proof on, for minutes; a network from the seventeenth, and strangers with it', () => {
  const watch = new SourceWatch(1, SECRET)
  assert.deepEqual(watch.of(address('192.0.2.1'), 0), NEW_SOURCE)
  for (let count = 1; count <= 3; count++)
    assert.equal(watch.accepted(address('192.0.2.1'), 0), count === 3, `proof ${count}`)
  const comesAgain = (text: string, nowMs: number) => watch.of(address(text), nowMs).comesAgain
  assert.deepEqual([comesAgain('192.0.2.1', 1000), comesAgain('192.0.2.1', 10 * MINUTE_MS)], [true, false])
  for (let count = 4; count <= 17; count++) {
    assert.equal(comesAgain('192.0.2.77', 0), count === 17, `a stranger before proof ${count}`)
    assert.equal(watch.accepted(address(`192.0.2.${100 + count}`), 0), count === 17, `proof ${count}`)
  }
  assert.deepEqual([comesAgain('192.0.2.77', 0), comesAgain('192.0.3.77', 0)], [true, false])
})

test('a network in which each address comes once is a crowd at any number of workers', () => {
  for (const workers of [1, 2, 8]) {
    const watch = new SourceWatch(workers, SECRET)
    for (let count = 0; count < 15 / workers; count++)
      assert.equal(watch.accepted(address(`192.0.2.${count}`), 0), false, `${workers} workers`)
  }
})

test('counts are multiplied by the number of workers, since each worker sees a sample', () => {
  const watch = new SourceWatch(4, SECRET)
  for (let count = 0; count < 40; count++) watch.accepted(address('192.0.2.1'), 0)
  const seen = { networkPrefix: 24, networkProofs: 160, accepted: 160 }
  assert.deepEqual(watch.of(address('192.0.2.1'), 0), { networkBits: 1, comesAgain: true, ...seen })
  assert.equal(new SourceWatch(1, SECRET).of(address('192.0.2.1'), 0).networkBits, 0)
})

test("private networks are the operator's own: there only the address itself comes again", () => {
  const pairs = { '10.0.0.1': '10.0.0.2', '127.0.0.1': '127.0.0.2', 'fd00::1': 'fd00:0:0:1::1' }
  for (const [first, second] of Object.entries(pairs)) {
    const watch = new SourceWatch(1, SECRET)
    for (let count = 0; count < 500; count++) watch.accepted(address(first), 0)
    assert.deepEqual(watch.of(address(second), 0), NEW_SOURCE)
    assert.deepEqual(watch.of(address(first), 0), { ...NEW_SOURCE, comesAgain: true, accepted: 500 })
    assert.equal(watch.accepted(address(second), 0), false)
  }
})

test('a flood of networks leaves the busiest in the table', () => {
  const watch = new SourceWatch(1, SECRET)
  for (let index = 0; index < 200_000; index++) {
    watch.accepted(address(`${1 + (index % 9)}.${(index >> 8) & 255}.${index & 255}.${index % 251}`), 0)
    if (index % 100 === 0) watch.accepted(address('192.0.2.1'), 0)
  }
  assert.equal(watch.of(address('192.0.2.1'), 0).networkBits, 5)
})
