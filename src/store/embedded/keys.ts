/**
 * Keys of the state's entries. All share one buffer, valid until the next key is made; lmdb copies a key before it returns.
 */

import { ReusedBytes, writeText } from '../../domain/bytes.ts'

/** Kinds of windows, and of marks (used nonces, redemption records). */
export const [ADDRESS, CALLER, API_KEY] = ['a', 'c', 'k']
export const [USED, REDEEMED] = [0x6e, 0x72]

const keys = new ReusedBytes()

/** @param name the kind, then the address or key id: one-byte characters */
export function windowKey(name: string): Buffer {
  const key = keys.ofLength(name.length)
  writeText(key, 0, name)
  return key
}

export function markKey(kind: number, nonce: string): Buffer {
  const key = keys.ofLength(1 + nonce.length / 2)
  key[0] = kind
  key.write(nonce, 1, 'hex')
  return key
}
