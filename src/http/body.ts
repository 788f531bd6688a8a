/** Collects a request's body from its chunks. Each is copied once or twice, however many there are. */
export class BodyBytes {
  readonly #bytesMax: number
  #bytes = EMPTY
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Copies a chunk, because uWebSockets.js reuses the chunk's memory.
   *
   * @returns whether there was room
   */
  add(chunk: ArrayBuffer): boolean {
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) return false
    if (length > this.#bytes.length) {
      // The size doubles, because a client may send a body byte by byte.
      const bytes = Buffer.allocUnsafe(Math.min(this.#bytesMax, 2 * length))
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    this.#bytes.set(new Uint8Array(chunk), this.#length)
    this.#length = length
    return true
  }

  /**
   * Adds the last chunk and returns the whole body. Most bodies are one chunk, which is not copied.
   *
   * @returns bytes that are valid as long as the chunk is; undefined if there was no room
   */
  with(chunk: ArrayBuffer): Buffer | undefined {
    if (this.#length === 0 && chunk.byteLength <= this.#bytesMax) return Buffer.from(chunk)
    return this.add(chunk) ? this.#bytes.subarray(0, this.#length) : undefined
  }
}

const EMPTY = Buffer.alloc(0)
