import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hmac } from '../../src/domain/keyring.ts'
import { seeded } from '../harness/arbitraries.ts'

test('RFC 4231 test cases 1, 2 and 4', () => {
  const sign = (key: Buffer, message: Buffer) => {
    const hmac = new Hmac(key, 64)
    message.copy(hmac.message)
    return hmac.sign(message.length, 'hex')
  }
  const counted = Buffer.from(Array.from({ length: 25 }, (_, index) => index + 1))
  for (const [key, message, expected] of [
    [Buffer.alloc(20, 0x0b), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [
      'Jefe',
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [counted, Buffer.alloc(50, 0xcd), '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b'],
  ] as const)
    assert.equal(sign(Buffer.from(key), Buffer.from(message)), expected)
})

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
