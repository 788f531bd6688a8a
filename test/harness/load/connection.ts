/**
 * One keep-alive connection of the load generator, with at most one request under way. It reads the part of HTTP/1.1 that the
 * generator needs: answers with a Content-Length, as uWebSockets.js and HAProxy write them.
 */

import { connect, type Socket } from 'node:net'

export interface ConnectionOwner {
  /** What a good answer contains; empty: anything. */
  readonly marker: Buffer
  /** Called once, when the connection stands and a request can be sent. */
  connected(connection: Connection): void
  /** Called after each answer, when a request can be sent again. */
  answered(connection: Connection, latencyMs: number, isGood: boolean): void
  /** Called once, when the connection has ended though the owner did not call `close`. */
  lost(connection: Connection, problem: string): void
}

export class Connection {
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  /** The answer so far, in `#bytes` up to `#length`. All reads share a buffer, so what lies behind is left over from earlier answers. */
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  /** From when on the answer was waited for. */
  sinceMs = 0
  #isClosed = false

  constructor(owner: ConnectionOwner, port: number) {
    this.#owner = owner
    const callback = (length: number, buffer: Uint8Array) => this.#take(buffer as Buffer, length)
    const onread = { buffer: Buffer.alloc(4096), callback } // answers of the service are well below; longer ones come in pieces
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    this.#socket.once('connect', () => owner.connected(this))
    let problem = 'a connection was closed'
    this.#socket.once('error', error => {
      problem = `a connection failed: ${error.message}`
    })
    this.#socket.once('close', () => {
      if (!this.#isClosed) owner.lost(this, problem)
    })
  }

  /** @param sinceMs now, or when the request should have been sent */
  send(request: Buffer | string, sinceMs = performance.now()): void {
    this.#length = 0
    this.sinceMs = sinceMs
    this.#socket.write(request as string, 'latin1') // a Buffer, too, but the types have no such overload
  }

  /** The length of the answer that was just read, its head included. */
  get bytes(): number {
    return this.#length
  }

  get text(): string {
    return this.#bytes.toString('latin1', 0, this.#length)
  }

  /** Ends the connection by a reset, which leaves no port in TIME_WAIT: a minute has more connections than ports. */
  close(): void {
    this.#isClosed = true
    this.#socket.resetAndDestroy()
  }

  #take(chunk: Buffer, length: number): boolean {
    if (this.#length === 0) {
      this.#bytes = chunk
      this.#length = length
    } else {
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, this.#length), chunk.subarray(0, length)])
      this.#length = this.#bytes.length
    }
    const expected = answerLength(this.#bytes, this.#length)
    if (expected === this.#length) {
      const isGood = isGoodAnswer(this.#bytes, this.#length, this.#owner.marker)
      this.#owner.answered(this, performance.now() - this.sinceMs, isGood)
    } else if (expected !== undefined && this.#length > expected) {
      this.close()
      this.#owner.lost(this, `not one answer to one request: ${this.text}`)
    } else if (this.#bytes === chunk) {
      this.#bytes = Buffer.from(chunk.subarray(0, length)) // before the next read overwrites it
    }
    return true
  }
}

const HEAD_END = Buffer.from('\r\n\r\n')
const CONTENT_LENGTH = Buffer.from('\r\nContent-Length: ')
/** HAProxy writes header names in lower case. */
const CONTENT_LENGTH_LOWER = Buffer.from('\r\ncontent-length: ')
/** Where the status is in "HTTP/1.1 200 OK". */
const STATUS_OFFSET = 9
const [DIGIT_0, DIGIT_2, CARRIAGE_RETURN] = [0x30, 0x32, 0x0d]

/**
 * How long the answer at the start of `bytes` is, or undefined if its head is not complete. An answer without a length
 * is as long as its head.
 *
 * @param length how many of the bytes count; what lies behind is left over from earlier answers
 */
function answerLength(bytes: Buffer, length: number): number | undefined {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd < 0 || headEnd + HEAD_END.length > length) return undefined
  let field = bytes.indexOf(CONTENT_LENGTH)
  if (field < 0) field = bytes.indexOf(CONTENT_LENGTH_LOWER)
  let bodyLength = 0
  if (field >= 0 && field < headEnd) {
    for (let at = field + CONTENT_LENGTH.length; bytes[at] !== CARRIAGE_RETURN; at++)
      bodyLength = bodyLength * 10 + bytes[at]! - DIGIT_0
  }
  return headEnd + HEAD_END.length + bodyLength
}

/** Whether a whole answer has status 200 and contains the marker. */
function isGoodAnswer(bytes: Buffer, length: number, marker: Buffer): boolean {
  if (bytes[STATUS_OFFSET] !== DIGIT_2) return false
  if (bytes[STATUS_OFFSET + 1] !== DIGIT_0 || bytes[STATUS_OFFSET + 2] !== DIGIT_0) return false
  const at = bytes.indexOf(marker)
  return at >= 0 && at + marker.length <= length
}
