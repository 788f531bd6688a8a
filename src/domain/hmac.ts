/**
 * HMAC-SHA256 (RFC 2104) for short messages: two one-shot hashes of node:crypto over preallocated padded blocks. A call
 * takes about half the time of `createHmac`, and makes no object. A property test holds the results equal to `createHmac`.
 */

import { hash } from 'node:crypto'
import { writeText } from './bytes.ts'

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
const IPAD = 0x36
const OPAD = 0x5c

type DigestEncoding = 'binary' | 'hex' | 'base64url'

export class Hmac {
  /** The caller writes the message here before `sign`. */
  readonly message: Buffer
  readonly #inner: Buffer
  /** One view per message length: `crypto.hash` hashes a whole view, and a view per call would be garbage. */
  readonly #innerViews: Buffer[]
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)

  /**
   * @param key 1 to 64 bytes
   * @param messageBytesMax the longest message, in bytes
   */
  constructor(key: Uint8Array, messageBytesMax: number) {
    if (key.length === 0 || key.length > BLOCK_BYTES) throw new RangeError('HMAC key must be 1 to 64 bytes')
    this.#inner = Buffer.alloc(BLOCK_BYTES + messageBytesMax)
    for (let index = 0; index < BLOCK_BYTES; index++) {
      const byte = key[index] ?? 0
      this.#inner[index] = byte ^ IPAD
      this.#outer[index] = byte ^ OPAD
    }
    this.message = this.#inner.subarray(BLOCK_BYTES)
    this.#innerViews = Array.from({ length: messageBytesMax + 1 }, (_, length) =>
      this.#inner.subarray(0, BLOCK_BYTES + length),
    )
  }

  /** HMAC of the first `length` bytes of `message`, 32 bytes in the given encoding. */
  sign(length: number, encoding: DigestEncoding): string {
    writeText(this.#outer, BLOCK_BYTES, this.innerHash(length))
    return hash('sha256', this.#outer, encoding)
  }

  /**
   * The HMAC's inner hash alone: SHA-256 of the padded key and the message. This is one hash call instead of two, 0.25 us.
   *
   * The result is pseudorandom if no padded message is the beginning of another (Bellare, Canetti, Krawczyk: Pseudorandom
   * functions revisited, 1996). That holds for messages of one length, and for ASCII texts, since padding starts with 0x80.
   *
   * @returns 32 one-byte characters
   */
  innerHash(length: number): string {
    const view = this.#innerViews[length]
    if (view === undefined) throw new RangeError(`HMAC message of ${length} bytes is longer than its buffer`)
    return hash('sha256', view, 'binary')
  }
}
