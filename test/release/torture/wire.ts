/** Requests as text, many keep-alive connections to one service, and the outcome of every request. */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

interface Reply {
  readonly status: number
  /** The stable code of a refusal; '' if there is none. */
  readonly code: string
  readonly head: string
  readonly body: string
}

/** Why there is no reply: none came in time; the connection was lost; or no connection was made, so that nothing was sent. */
type Silence = 'timeout' | 'lost' | 'unreachable'

export type Ending = Reply | Silence

interface PoolOptions {
  readonly port: number
  readonly connections: number
  /** After this time an answer is not awaited any longer. */
  readonly timeoutMs: number
}

export const JSON_TYPE = 'Content-Type: application/json'

/** @param line as "GET /challenge" @param headers as lines @param body one byte a character; undefined: none */
export function requestText(line: string, headers: readonly string[], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`]
  return `${[`${line} HTTP/1.1`, 'Host: powgate', ...headers, ...length].join('\r\n')}\r\n\r\n${body ?? ''}`
}

const RECONNECT_MS = 20

/** Sends each request on a free connection, or queues it for one. Lost connections are replaced. */
export class Pool {
  readonly #lines: readonly Line[]
  /** In turn: the service closes connections unused for seconds, perhaps while a request is on its way. */
  readonly #free: Line[]
  readonly #waiting: ((line: Line) => void)[] = []
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#lines = Array.from({ length: options.connections }, () => new Line(options))
    this.#free = [...this.#lines]
  }

  call(request: string): Promise<Ending> {
    return this.#send(request, false)
  }

  /** Sends a request and hangs up, so that its outcome is unknown. */
  abandon(request: string): Promise<Ending> {
    return this.#send(request, true)
  }

  async #send(request: string, hangsUp: boolean): Promise<Ending> {
    const line = this.#free.shift() ?? (await new Promise<Line>(resolve => this.#waiting.push(resolve)))
    // Delayed: callers that repeat requests at once would block the event loop.
    if (this.#isClosed) await sleep(RECONNECT_MS)
    const ending = this.#isClosed ? 'unreachable' : await line.ask(request, hangsUp)
    if (ending === 'unreachable') setTimeout(() => this.#give(line), RECONNECT_MS)
    else this.#give(line)
    return ending
  }

  #give(line: Line): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free.push(line)
    else next(line)
  }

  /** Ends all connections. Unanswered requests are lost, queued and later ones unreachable. May be called more than once. */
  close(): void {
    this.#isClosed = true
    for (const line of this.#lines) line.drop('lost')
    for (const resolve of this.#waiting.splice(0)) resolve(this.#lines[0]!)
  }
}

/** One connection with at most one unanswered request. It connects when there is something to send. */
class Line {
  readonly #options: PoolOptions
  #socket: Socket | undefined
  #isConnected = false
  #received = ''
  #end: (ending: Ending) => void = () => {}

  constructor(options: PoolOptions) {
    this.#options = options
  }

  ask(request: string, hangsUp: boolean): Promise<Ending> {
    return new Promise(resolve => {
      this.#received = ''
      const timer = setTimeout(() => this.drop('timeout'), this.#options.timeoutMs)
      this.#end = ending => {
        clearTimeout(timer)
        this.#end = () => {}
        resolve(ending)
      }
      const isOpen = this.#socket !== undefined
      const socket = this.#socket ?? this.#connect()
      const write = () => socket.write(request, 'latin1', hangsUp ? () => socket.destroy() : undefined)
      if (isOpen) write()
      else socket.once('connect', write)
    })
  }

  #connect(): Socket {
    const socket = connect({ port: this.#options.port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.once('connect', () => (this.#isConnected = true))
    socket.on('data', (text: string) => this.#read(text))
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => {
      if (socket === this.#socket) this.drop(this.#isConnected ? 'lost' : 'unreachable')
    })
    return socket
  }

  drop(why: Silence): void {
    const silence = why === 'timeout' && !this.#isConnected ? 'unreachable' : why
    this.#forget()
    this.#end(silence)
  }

  #forget(): void {
    this.#socket?.destroy()
    this.#socket = undefined
    this.#isConnected = false
  }

  #read(text: string): void {
    this.#received += text
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = this.#received.slice(0, headEnd)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const body = this.#received.slice(headEnd + 4, headEnd + 4 + length)
    if (body.length < length) return
    if (/\r\nconnection: close/i.test(head)) this.#forget()
    const code = /"code":"([\w-]+)"/.exec(body)?.[1] ?? ''
    this.#end({ status: Number(head.slice(9, 12)), code, head, body })
  }
}
