import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyBytes } from '../../src/http/body.ts'
import { Random } from '../torture/random.ts'

test('property: a body is its chunks, however it was cut, or none if it is too long', () => {
  const random = new Random(5)
  for (let round = 0; round < 500; round++) {
    const whole = random.bytes(random.below(200))
    const bytesMax = random.chance(0.5) ? whole.length : random.below(200)
    const body = new BodyBytes(bytesMax)
    let at = 0
    let hasRoom = true
    while (at < whole.length && random.chance(0.9)) {
      const to = Math.min(whole.length, at + random.below(20))
      // uWebSockets.js writes the next chunk to the same place.
      const chunk = copyOf(whole.subarray(at, to))
      hasRoom = hasRoom && body.add(chunk)
      new Uint8Array(chunk).fill(0)
      at = to
    }
    const bytes = hasRoom ? body.with(copyOf(whole.subarray(at))) : undefined
    assert.deepEqual(bytes, whole.length <= bytesMax ? whole : undefined)
  }
})

test('a body that comes byte by byte is not copied anew for each', () => {
  const bytesMax = 2 ** 16
  const body = new BodyBytes(bytesMax)
  const chunk = new ArrayBuffer(1)
  const buffers = new Set<ArrayBufferLike>()
  for (let count = 1; count < bytesMax; count++) {
    assert.ok(body.add(chunk))
    buffers.add(body.with(new ArrayBuffer(0))!.buffer)
  }
  assert.equal(body.with(chunk)!.length, bytesMax)
  assert.equal(body.add(chunk), false)
  assert.ok(buffers.size <= 17, `${buffers.size} buffers`)
})

function copyOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.length)
  new Uint8Array(copy).set(bytes)
  return copy
}
