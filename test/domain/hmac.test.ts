import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hmac } from '../../src/domain/keyring.ts'
import { seeded } from '../harness/arbitraries.ts'

test('property: equals createHmac for any key, message and encoding, also when reused', () => {
  const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength })
  fc.assert(
    fc.property(bytes(1, 64), fc.array(bytes(0, 109), { minLength: 1, maxLength: 4 }), (key, messages) => {
      const hmac = new Hmac(key, 109)
      for (const message of messages)
        for (const encoding of ['hex', 'base64url', 'binary'] as const) {
          hmac.message.set(message)
          const expected = createHmac('sha256', key).update(message).digest(encoding)
          assert.equal(hmac.sign(message.length, encoding), expected)
        }
    }),
    seeded(3000),
  )
})

test('bounds: a message longer than the buffer, an empty key, a key beyond one block', () => {
  const hmac = new Hmac(Buffer.alloc(32), 10)
  assert.equal(hmac.sign(10, 'hex').length, 64)
  assert.throws(() => hmac.sign(11, 'hex'), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(0), 10), RangeError)
  assert.throws(() => new Hmac(Buffer.alloc(65), 10), RangeError)
})
