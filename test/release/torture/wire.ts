/** Requests as text, many keep-alive connections to one service, and the outcome of every request. */

import { connect, type Socket } from 'node:net'

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

export interface PoolOptions {
  readonly port: number
  readonly connections: number
  /** After this time an answer is not awaited any longer. */
  readonly timeoutMs: number
  /** The loopback address to call from. */
  readonly localAddress?: string
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
  readonly options: PoolOptions
  readonly #lines: Line[]
  readonly #free: Line[] = []
  readonly #waiting: Waiting[] = []
  #isClosed = false

  constructor(options: PoolOptions) {
    this.options = options
    this.#lines = Array.from({ length: options.connections }, () => new Line(this))
  }

  call(request: string): Promise<Ending> {
    return this.#send(request, false)
  }

  /** Sends a request and hangs up, so that its outcome is unknown. */
  abandon(request: string): Promise<Ending> {
    return this.#send(request, true)
  }

  #send(request: string, hangsUp: boolean): Promise<Ending> {
    return new Promise(resolve => {
      // Delayed: callers that repeat requests at once would block the event loop.
      if (this.#isClosed) return void setTimeout(resolve, RECONNECT_MS, 'unreachable')
      const waiting = { request, hangsUp, resolve }
      // In turn: the service closes connections unused for seconds, perhaps while a request is on its way.
      const line = this.#free.shift()
      if (line === undefined) this.#waiting.push(waiting)
      else line.take(waiting)
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Ends all connections. Unanswered requests are lost, queued and later ones unreachable. May be called more than once. */
  close(): void {
    this.#isClosed = true
    for (const line of this.#lines) line.close()
    for (const { resolve } of this.#waiting.splice(0)) resolve('unreachable')
  }

  /** Called by a line that can send another request. */
  freed(line: Line): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#free.push(line)
    else line.take(waiting)
  }
}

interface Waiting {
  readonly request: string
  readonly hangsUp: boolean
  readonly resolve: (ending: Ending) => void
}

/** One connection with at most one unanswered request. It connects when there is something to send. */
class Line {
  readonly #pool: Pool
  #socket: Socket | undefined
  #isConnected = false
  #underWay: Waiting | undefined
  #timer: NodeJS.Timeout | undefined
  #received = ''

  constructor(pool: Pool) {
    this.#pool = pool
    pool.freed(this)
  }

  take(waiting: Waiting): void {
    this.#underWay = waiting
    this.#received = ''
    this.#timer = setTimeout(() => this.#drop('timeout'), this.#pool.options.timeoutMs)
    if (this.#isConnected) this.#write(this.#socket!, waiting)
    else this.#connect()
  }

  close(): void {
    this.#drop('lost')
  }

  #connect(): void {
    const { port, localAddress } = this.#pool.options
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, ...(localAddress && { localAddress }) })
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.once('connect', () => {
      this.#isConnected = true
      if (this.#underWay !== undefined) this.#write(socket, this.#underWay)
    })
    socket.on('data', (text: string) => this.#read(text))
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => {
      if (socket === this.#socket) this.#drop(this.#isConnected ? 'lost' : 'unreachable')
    })
  }

  #write(socket: Socket, { request, hangsUp }: Waiting): void {
    if (hangsUp) socket.write(request, 'latin1', () => socket.destroy())
    else socket.write(request, 'latin1')
  }

  #drop(why: Silence): void {
    const silence = why === 'timeout' && !this.#isConnected ? 'unreachable' : why
    this.#socket?.destroy()
    this.#socket = undefined
    this.#isConnected = false
    if (this.#underWay !== undefined) this.#end(silence)
  }

  #read(text: string): void {
    this.#received = this.#received === '' ? text : this.#received + text
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = this.#received.slice(0, headEnd)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#received.length < headEnd + 4 + length) return
    const body = this.#received.slice(headEnd + 4, headEnd + 4 + length)
    const code = /"code":"([\w-]+)"/.exec(body)?.[1] ?? ''
    const isLast = /\r\nconnection: close/i.test(head)
    if (isLast) {
      this.#socket?.destroy()
      this.#socket = undefined
      this.#isConnected = false
    }
    this.#end({ status: Number(head.slice(9, 12)), code, head, body })
  }

  #end(ending: Ending): void {
    clearTimeout(this.#timer)
    const waiting = this.#underWay
    if (waiting === undefined) return
    this.#underWay = undefined
    waiting.resolve(ending)
    if (this.#pool.isClosed) return
    if (ending === 'unreachable') setTimeout(() => this.#pool.freed(this), RECONNECT_MS)
    else this.#pool.freed(this)
  }
}

/** Acts that are repeated side by side over the connections of some pools, until stopped or until the case has ended. */
export class Lanes {
  readonly #pools: readonly Pool[]
  readonly #lanes: Promise<void>[] = []
  #isOn = true

  /** @param run its services are stopped after this constructor's endings have run */
  constructor(run: { defer(ending: () => unknown): void }, pools: readonly Pool[]) {
    this.#pools = pools
    run.defer(() => this.stop())
    run.defer(() => this.#close())
  }

  start(act: () => Promise<unknown>): void {
    const repeat = async () => {
      while (this.#isOn) await act()
    }
    this.#lanes.push(repeat())
  }

  /** Resolves when the last acts have ended. May be called more than once. */
  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
    this.#close()
  }

  #close(): void {
    this.#isOn = false
    for (const pool of this.#pools) pool.close()
  }
}
