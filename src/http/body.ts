/** Collects a body from its chunks; copies each byte twice at most. */
export class BodyBytes {
  readonly #bytesMax: number
  #bytes = EMPTY
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(chunk: ArrayBuffer): boolean {
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) return false
    if (length > this.#bytes.length) {
      // The size doubles, because a client may send byte by byte.
      const bytes = Buffer.allocUnsafe(Math.min(this.#bytesMax, 2 * length))
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    this.#bytes.set(new Uint8Array(chunk), this.#length)
    this.#length = length
    return true
  }

  /** The body with its last chunk; undefined if too large. A single chunk is not copied, so the body is valid as long as it. */
  with(chunk: ArrayBuffer): Buffer | undefined {
    if (this.#length === 0 && chunk.byteLength <= this.#bytesMax) return Buffer.from(chunk)
    return this.add(chunk) ? this.#bytes.subarray(0, this.#length) : undefined
  }
}

const EMPTY = Buffer.alloc(0)
