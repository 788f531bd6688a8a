/**
 * Signing keys. HKDF (RFC 5869) derives one subkey per purpose from each master secret, so that nothing signed for one
 * purpose is valid for another. The first secret signs and all secrets verify, so that secrets can be rotated.
 */

import { hkdfSync, timingSafeEqual } from 'node:crypto'
import { Hmac } from './hmac.ts'

/** Longest messages, in bytes. Their layouts are in nonce.ts and token.ts. */
const NONCE_MESSAGE_MAX = 47
const TOKEN_MESSAGE_MAX = 113
/** Of solve-time.ts: site key, address key and minute. */
const DRAW_MESSAGE_MAX = 80

export interface SigningKey {
  /** Key id, 0 to 15, which nonces and tokens carry. Two secrets may share an id; a verifier then tries both. */
  readonly kid: number
  readonly nonceMac: Hmac
  readonly tokenMac: Hmac
  readonly tokenStream: Hmac
  /** For draws that must be the same in every worker. */
  readonly drawMac: Hmac
}

const KIDS = 16

export class Keyring {
  /** The key of the first secret. */
  readonly signing: SigningKey
  readonly #byKid: readonly (readonly SigningKey[])[]

  /** @param secrets at least one; the first signs */
  constructor(secrets: readonly string[]) {
    if (secrets.length === 0) throw new RangeError('a keyring needs at least one secret')
    const keys = secrets.map(deriveKey)
    this.signing = keys[0]!
    this.#byKid = Array.from({ length: KIDS }, (_, kid) => keys.filter(key => key.kid === kid))
  }

  /** The keys that may have signed a nonce or token with this key id, 0 to 15. */
  candidates(kid: number): readonly SigningKey[] {
    return this.#byKid[kid]!
  }
}

function deriveKey(secret: string): SigningKey {
  const subkey = (purpose: string, bytes: number) =>
    new Uint8Array(hkdfSync('sha256', secret, '', `powgate v1 ${purpose}`, bytes))
  return {
    kid: subkey('key id', 1)[0]! & 0x0f,
    nonceMac: new Hmac(subkey('nonce', 32), NONCE_MESSAGE_MAX),
    tokenMac: new Hmac(subkey('token', 32), TOKEN_MESSAGE_MAX),
    tokenStream: new Hmac(subkey('claims', 32), TOKEN_MESSAGE_MAX),
    drawMac: new Hmac(subkey('draw', 32), DRAW_MESSAGE_MAX),
  }
}

const left = Buffer.alloc(64)
const right = Buffer.alloc(64)
const views = Array.from({ length: 65 }, (_, length) => [left.subarray(0, length), right.subarray(0, length)])

/** Whether two ASCII strings of `length` characters (at most 64) are equal, in time that depends on `length` alone. */
export function equalInConstantTime(a: string, b: string, length: number): boolean {
  if (a.length !== length || b.length !== length) return false
  const [leftView, rightView] = views[length]!
  left.write(a, 0, length, 'latin1')
  right.write(b, 0, length, 'latin1')
  return timingSafeEqual(leftView!, rightView!)
}
