/**
 * HKDF (RFC 5869) derives a subkey per purpose from each master secret, so nothing signed for one purpose is valid for another.
 * The first secret signs and all verify, so secrets can be rotated.
 */

import { hash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { viewsByLength, writeText } from './bytes.ts'
import { PAGE_TEXT_MAX } from './page.ts'

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
const IPAD = 0x36
const OPAD = 0x5c

/** HMAC-SHA256 (RFC 2104) over blocks that are allocated once: half the time of `createHmac`, and no garbage. */
export class Hmac {
  /** The caller writes its text here, then calls `sign` or `innerHash` before the next text is written. */
  readonly message: Buffer
  readonly #inner: Buffer
  readonly #innerByLength: readonly Buffer[]
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)

  /** @param key 1 to 64 bytes */
  constructor(key: Uint8Array, messageBytesMax: number) {
    if (key.length === 0 || key.length > BLOCK_BYTES) throw new RangeError('HMAC key must be 1 to 64 bytes')
    this.#inner = Buffer.alloc(BLOCK_BYTES + messageBytesMax)
    for (let index = 0; index < BLOCK_BYTES; index++) {
      const byte = key[index] ?? 0
      this.#inner[index] = byte ^ IPAD
      this.#outer[index] = byte ^ OPAD
    }
    this.message = this.#inner.subarray(BLOCK_BYTES)
    this.#innerByLength = viewsByLength(this.#inner)
  }

  /** The signature of the first `length` bytes of `message`, in base64url. */
  sign(length: number): string {
    writeText(this.#outer, BLOCK_BYTES, this.innerHash(length))
    return hash('sha256', this.#outer, 'base64url')
  }

  /**
   * SHA-256 of padded key and message, as 32 one-byte characters, in 0.25 us. A safe MAC only if no padded message is a prefix of
   * another (Bellare, Canetti, Krawczyk: Pseudorandom functions revisited, 1996). That holds for nonces (nonce.ts), all of one
   * length, and for prefixes of tokens (token.ts), which are ASCII and so lack the 0x80 with which padding starts.
   */
  innerHash(length: number): string {
    const input = this.#innerByLength[BLOCK_BYTES + length]
    if (input === undefined) throw new RangeError(`HMAC message of ${length} bytes is longer than its buffer`)
    return hash('sha256', input, 'binary')
  }
}

// The longest messages, in bytes, by the layouts in nonce.ts and token.ts, which import this file. `innerHash` refuses longer ones.
const NONCE_MESSAGE_MAX = 8 + 27 + 4 + 8 // header, site key, store epoch, lifetimes
const TOKEN_PREFIX_MAX = 13 + 1 + 32 + 1 + 16 // time|nonce|counter
const TOKEN_MESSAGE_MAX = TOKEN_PREFIX_MAX + 1 + 48 + PAGE_TEXT_MAX + 1 // prefix|claims, page|

export interface SigningKey {
  /** The key id, 0 to 15, which nonces and tokens state. Two secrets may share one: a verifier tries both. */
  readonly kid: number
  /** The first 16 digits of the secret's SHA-256, which `sha256sum` shows too. They tell nothing else of a random secret. */
  readonly fingerprint: string
  readonly nonceMac: Hmac
  readonly tokenMac: Hmac
  /** Encrypts the claims of tokens. */
  readonly tokenStream: Hmac
  /** Keys the tags of addresses (address-tags.ts). */
  readonly tagKey: Uint8Array
  /** Keys the choice of the visitors whose successes are logged (log/event-log.ts): 32 bits. */
  readonly sampleKey: number
}

export class Keyring {
  readonly signing: SigningKey
  readonly others: readonly SigningKey[]
  readonly fingerprints: readonly string[]
  readonly #byKid: readonly (readonly SigningKey[])[]

  /** @param secrets at least one */
  constructor(secrets: readonly string[]) {
    const keys = secrets.map(deriveKey)
    this.signing = keys[0]!
    this.others = keys.slice(1)
    this.fingerprints = keys.map(({ fingerprint }) => fingerprint)
    this.#byKid = Array.from({ length: 16 }, (_, kid) => keys.filter(key => key.kid === kid))
  }

  /** The keys with which something that states this key id may be signed. */
  candidates(kid: number): readonly SigningKey[] {
    return this.#byKid[kid]!
  }
}

function deriveKey(secret: string): SigningKey {
  const subkey = (purpose: string, bytes: number) =>
    new Uint8Array(hkdfSync('sha256', secret, '', `powgate v1 ${purpose}`, bytes))
  return {
    kid: subkey('key id', 1)[0]! & 0x0f,
    fingerprint: hash('sha256', secret).slice(0, 16),
    nonceMac: new Hmac(subkey('nonce', 32), NONCE_MESSAGE_MAX),
    tokenMac: new Hmac(subkey('token', 32), TOKEN_MESSAGE_MAX),
    tokenStream: new Hmac(subkey('claims', 32), TOKEN_PREFIX_MAX),
    tagKey: subkey('address', 32),
    sampleKey: new DataView(subkey('log sample', 4).buffer).getUint32(0),
  }
}

/** Longest text of `equalInConstantTime`. */
const COMPARED_MAX = 64
const left = Buffer.alloc(COMPARED_MAX)
const right = Buffer.alloc(COMPARED_MAX)
const [lefts, rights] = [viewsByLength(left), viewsByLength(right)]

/** Compares texts, which must be ASCII, in time that depends on `length` (at most COMPARED_MAX) alone. */
export function equalInConstantTime(a: string, b: string, length: number): boolean {
  if (a.length !== length || b.length !== length) return false
  left.write(a, 0, length, 'latin1')
  right.write(b, 0, length, 'latin1')
  return timingSafeEqual(lefts[length]!, rights[length]!)
}
