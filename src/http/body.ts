const EMPTY = Buffer.alloc(0)

/** Collects a body from its chunks. Its memory doubles as it grows, so each byte is copied about twice, however small the chunks. */
export class BodyBytes {
  readonly #bytesMax: number
  #bytes = EMPTY
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** @returns false if the body is now too large */
  add(chunk: ArrayBuffer): boolean {
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) return false
    if (length > this.#bytes.length) {
      const bytes = Buffer.allocUnsafe(Math.min(this.#bytesMax, 2 * length))
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    this.#bytes.set(new Uint8Array(chunk), this.#length)
    this.#length = length
    return true
  }

  /** Returns the whole body, or undefined if it is too large. A single chunk is not copied: it is valid until its callback returns. */
  finish(lastChunk: ArrayBuffer): Buffer | undefined {
    if (this.#length === 0 && lastChunk.byteLength <= this.#bytesMax) return Buffer.from(lastChunk)
    return this.add(lastChunk) ? this.#bytes.subarray(0, this.#length) : undefined
  }
}
