/** Clients that occupy a server's connections without using them, each kind in its own way. */

import { connect, type Socket } from 'node:net'

export interface SlowKind {
  readonly name: string
  /** The group that a case reports on. */
  readonly group: 'headers' | 'bodies' | 'idle' | 'readers'
  /** Bytes sent at once. */
  readonly start: string
  /** Bytes sent afterwards, at this interval. */
  readonly drip?: { readonly text: string; readonly everyMs: number }
  /** The client reads nothing. */
  readonly isDeaf?: true
}

const LINE = 'GET /challenge HTTP/1.1\r\nHost: powgate\r\n'
const BODY_HEAD =
  'POST /verify HTTP/1.1\r\nHost: powgate\r\nX-Site-Key: SITE\r\nContent-Type: application/json\r\n'
const ANSWERED = 'GET /nothing HTTP/1.1\r\nHost: powgate\r\n\r\n'
const LONG_ANSWER = 'GET /openapi.json HTTP/1.1\r\nHost: powgate\r\n\r\n'
const HEAD_ANSWER = 'HEAD /openapi.json HTTP/1.1\r\nHost: powgate\r\n\r\n'
const PREFLIGHT = 'OPTIONS /challenge HTTP/1.1\r\nHost: powgate\r\nOrigin: https://a.example\r\n\r\n'

/** `SITE` stands for the key of a site. */
export const SLOW_KINDS: readonly SlowKind[] = [
  {
    name: 'header, byte by byte',
    group: 'headers',
    start: `${LINE}X-A: `,
    drip: { text: 'a', everyMs: 1000 },
  },
  {
    name: 'header, line by line',
    group: 'headers',
    start: LINE,
    drip: { text: 'X-A: b\r\n', everyMs: 4000 },
  },
  { name: 'stops after the request line', group: 'headers', start: 'GET /challenge HTTP/1.1\r\n' },
  {
    name: 'header, byte by byte, after an answer',
    group: 'headers',
    start: `${ANSWERED}${LINE}X-A: `,
    drip: { text: 'a', everyMs: 1000 },
  },
  {
    name: 'body, byte by byte',
    group: 'bodies',
    start: `${BODY_HEAD}Content-Length: 4000\r\n\r\n`,
    drip: { text: ' ', everyMs: 1000 },
  },
  { name: 'stops in mid-body', group: 'bodies', start: `${BODY_HEAD}Content-Length: 4000\r\n\r\n{"nonce":` },
  {
    name: 'body in chunks, byte by byte',
    group: 'bodies',
    start: `${BODY_HEAD}Transfer-Encoding: chunked\r\n\r\n`,
    drip: { text: '1\r\n \r\n', everyMs: 1000 },
  },
  {
    name: 'a body that nobody asked for, byte by byte',
    group: 'bodies',
    start: 'POST /nothing HTTP/1.1\r\nHost: powgate\r\nContent-Length: 4000\r\n\r\n',
    drip: { text: ' ', everyMs: 1000 },
  },
  { name: 'says nothing', group: 'idle', start: '' },
  { name: 'says nothing after an answer', group: 'idle', start: ANSWERED },
]

const NOT_MODIFIED = 'GET /widget.js HTTP/1.1\r\nHost: powgate\r\nIf-None-Match: *\r\n\r\n'
const WRONG_METHOD = 'HEAD /challenge HTTP/1.1\r\nHost: powgate\r\n\r\n'
const INVALID = 'POST /verify HTTP/1.1\r\nHost: powgate\r\nContent-Length: 2\r\n\r\n{}'
/** The most bytes that uWebSockets.js reads at once, and a small number. */
const [PIPELINED_BYTES, SPARSE_BYTES] = [500_000, 16_000]

/** They request so much that the system's buffers overflow. */
export const DEAF_KINDS: readonly SlowKind[] = [
  { name: 'files', text: LONG_ANSWER },
  { name: 'heads', text: HEAD_ANSWER },
  { name: 'preflights', text: PREFLIGHT },
  { name: 'errors', text: ANSWERED },
  // Refused if there are more than can be answered.
  { name: 'challenges', text: `${LINE}\r\n` },
  { name: '304s, all at once', text: NOT_MODIFIED, bytes: PIPELINED_BYTES },
  { name: 'heads, all at once', text: HEAD_ANSWER, bytes: PIPELINED_BYTES },
  { name: 'wrong methods, all at once', text: WRONG_METHOD, bytes: PIPELINED_BYTES },
  { name: 'invalid bodies, all at once', text: INVALID, bytes: PIPELINED_BYTES },
].map(({ name, text, bytes = SPARSE_BYTES }) => ({
  name: `takes no answer: ${name}`,
  group: 'readers',
  start: text,
  drip: { text: text.repeat(Math.ceil(bytes / text.length)), everyMs: 20 },
  isDeaf: true,
}))

/** One connection, which records when the other side ended it. */
export class SlowClient {
  readonly kind: SlowKind
  /** By `performance.now`; undefined: not yet. */
  connectedAtMs: number | undefined
  endedAtMs: number | undefined
  bytesSent = 0
  readonly #socket: Socket
  #timer: NodeJS.Timeout | undefined

  /** @param header sent first for the PROXY protocol; empty: nothing */
  constructor(kind: SlowKind, port: number, siteKey: string, header: Buffer) {
    this.kind = kind
    const socket = connect({ port, host: '127.0.0.1' })
    this.#socket = socket
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => this.#ended())
    socket.once('end', () => this.#ended())
    socket.once('connect', () => {
      this.connectedAtMs = performance.now()
      this.#send(Buffer.concat([header, Buffer.from(kind.start.replaceAll('SITE', siteKey))]))
      const { drip } = kind
      // A client that reads nothing notices the end by a failed write.
      if (drip !== undefined) this.#timer = setInterval(() => this.#send(drip.text), drip.everyMs)
      if (kind.isDeaf) socket.pause()
      else socket.resume()
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #send(bytes: Buffer | string): void {
    if (bytes.length === 0 || this.#socket.writableLength > 0) return
    this.#socket.write(bytes)
    this.bytesSent += bytes.length
  }

  #ended(): void {
    this.endedAtMs ??= performance.now()
    clearInterval(this.#timer)
    this.#socket.destroy()
  }
}
