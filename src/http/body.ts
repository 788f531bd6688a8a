/** Collects a body from its chunks; each byte is copied once or twice, however many chunks there are. */
export class BodyBytes {
  readonly #bytesMax: number
  #bytes = EMPTY
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Copies, because uWebSockets.js reuses the chunk's memory.
   *
   * @returns whether there was room
   */
  add(chunk: ArrayBuffer): boolean {
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) return false
    if (length > this.#bytes.length) {
      // Doubling, because a client may send byte by byte.
      const bytes = Buffer.allocUnsafe(Math.min(this.#bytesMax, 2 * length))
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    this.#bytes.set(new Uint8Array(chunk), this.#length)
    this.#length = length
    return true
  }

  /**
   * Adds the last chunk and returns the body. A single chunk, the usual case, is not copied.
   *
   * @returns bytes valid as long as the chunk; undefined if there was no room
   */
  with(chunk: ArrayBuffer): Buffer | undefined {
    if (this.#length === 0 && chunk.byteLength <= this.#bytesMax) return Buffer.from(chunk)
    return this.add(chunk) ? this.#bytes.subarray(0, this.#length) : undefined
  }
}

const EMPTY = Buffer.alloc(0)
