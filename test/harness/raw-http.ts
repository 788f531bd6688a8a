/** HTTP byte by byte, for requests that no well-behaved client sends. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, parse } from './http.ts'

export interface RawAnswer extends Pick<Answer, 'status' | 'json'> {
  /** Names in lower case; the values of a repeated name are joined by ', '. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const ANSWER_MS = 60_000

/**
 * @param line such as `GET /challenge`
 * @param headers as lines
 * @param body one byte a character, sent with its length; undefined: none
 */
export function requestText(line: string, headers: readonly string[] = [], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`]
  return `${[`${line} HTTP/1.1`, 'Host: powgate', ...headers, ...length].join('\r\n')}\r\n\r\n${body ?? ''}`
}

export class RawConnection {
  readonly socket: Socket
  #bytes = Buffer.alloc(0)
  isClosed = false
  /** Called when bytes have come, or the end. A connection has one reader at a time. */
  #changed: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', chunk => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#changed()
    })
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => {
      this.isClosed = true
      this.#changed()
    })
  }

  static async open(port: number, from = '127.0.0.1'): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  /** Sends each part in a segment of its own, as far as a test can ensure. */
  async send(...parts: readonly (string | Buffer)[]): Promise<void> {
    for (const [index, part] of parts.entries()) {
      if (index > 0) await new Promise(resolve => setTimeout(resolve, 2))
      if (!this.isClosed) this.socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
    }
  }

  /** The next answer; undefined if the connection ends without one. Rejects if neither happens in time. */
  async answer(waitMs = ANSWER_MS): Promise<RawAnswer | undefined> {
    const giveUpAt = performance.now() + waitMs
    for (;;) {
      const read = readAnswer(this.#bytes)
      if (read !== undefined) {
        this.#bytes = this.#bytes.subarray(read.bytes)
        return read.answer
      }
      if (this.isClosed) return undefined
      const leftMs = giveUpAt - performance.now()
      if (leftMs <= 0) throw new Error(`no answer within ${waitMs} ms`)
      await this.#change(leftMs)
    }
  }

  /** Like `answer`, for a request that probably gets none: undefined after `ms`. */
  answerWithin(ms: number): Promise<RawAnswer | undefined> {
    return this.answer(ms).catch(() => undefined)
  }

  /**
   * @param quietMs after the last byte; the first may take a minute. Less than the 8 s after which uWebSockets.js ends any connection
   * @returns all that has come and was not read, and comes until the service ends the connection, or is quiet for so long
   */
  async rest(quietMs = 5000): Promise<{ readonly text: string; readonly isClosed: boolean }> {
    for (let length = -1; !this.isClosed && length !== this.#bytes.length; ) {
      length = this.#bytes.length
      await this.#change(length === 0 ? ANSWER_MS : quietMs)
    }
    const { isClosed } = this // by the service
    this.close()
    return { text: this.#bytes.toString('latin1'), isClosed }
  }

  async request(...parts: readonly (string | Buffer)[]): Promise<RawAnswer | undefined> {
    await this.send(...parts)
    return this.answer()
  }

  #change(waitMs: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, waitMs)
      this.#changed = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  close(): void {
    this.socket.destroy()
  }
}

/** The answer to a request on a connection of its own. */
export async function askAlone(port: number, from?: string, ...parts: readonly (string | Buffer)[]) {
  const connection = await RawConnection.open(port, from)
  return connection.request(...parts).finally(() => connection.close())
}

/** Knows answers with a Content-Length, or without a body: not those to HEAD, and none in chunks. */
function readAnswer(bytes: Buffer): { answer: RawAnswer; bytes: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  }
  const length = end + 4 + Number(headers['content-length'] ?? 0)
  if (bytes.length < length) return undefined
  const body = bytes.toString('utf8', end + 4, length)
  return {
    answer: { status: Number(statusLine.split(' ')[1]), headers, body, json: parse(body) },
    bytes: length,
  }
}
