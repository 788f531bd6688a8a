/** What has come of a request's body: chunk after chunk, each copied once or twice however many there are. */
export class BodyBytes {
  readonly #bytesMax: number
  #bytes = EMPTY
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Copies it, since uWebSockets.js reuses the chunk's memory.
   *
   * @returns whether there was room
   */
  add(chunk: ArrayBuffer): boolean {
    const length = this.#length + chunk.byteLength
    if (length > this.#bytesMax) return false
    if (length > this.#bytes.length) {
      // Most bodies are one chunk. What grows doubles, since a client may send it byte by byte.
      const capacity = this.#length === 0 ? length : Math.min(this.#bytesMax, 2 * length)
      const bytes = Buffer.allocUnsafe(capacity)
      this.#bytes.copy(bytes, 0, 0, this.#length)
      this.#bytes = bytes
    }
    this.#bytes.set(new Uint8Array(chunk), this.#length)
    this.#length = length
    return true
  }

  /** All of it, valid until the next chunk. */
  get bytes(): Buffer {
    return this.#bytes.length === this.#length ? this.#bytes : this.#bytes.subarray(0, this.#length)
  }
}

const EMPTY = Buffer.alloc(0)
