/** A TCP proxy on loopback in front of Redis, or of the service, that disturbs the connections in a chosen way. */

import { connect, createServer, type Server, type Socket } from 'node:net'
import { listenAnywhere } from './ports.ts'

/** What happens to the server's replies and to new connections. */
export type Illness =
  | { readonly kind: 'none' }
  /** A part of the first reply's first line gets through, then the connection is reset: no reply is ever whole. */
  | { readonly kind: 'cut'; readonly keep: (bytes: number) => number }
  /** Each byte of a reply is sent in a packet of its own. */
  | { readonly kind: 'bytes' }
  /** Each reply is delayed by this time; replies keep their order. */
  | { readonly kind: 'slow'; readonly delayMs: () => number }
  /** Nothing gets through in either direction, and no side is notified. Swallowed bytes are lost for good. */
  | { readonly kind: 'black-hole' }
  /** Connections are reset, also new ones. */
  | { readonly kind: 'refuse' }

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** Bytes of the connection were swallowed or cut off, so later bytes would make no sense. */
  isTorn: boolean
  /** Bytes of replies that are not yet sent to the client, each not before it is due. */
  readonly waiting: { readonly dueMs: number; readonly bytes: Buffer }[]
  /** Whether `#pass` is at work on them. */
  isPassing: boolean
}

export class SickProxy {
  port = 0
  readonly #server: Server
  readonly #target: number
  readonly #pairs = new Set<Pair>()
  #illness: Illness = { kind: 'none' }

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, client => this.#accept(client))
  }

  static async start(target: number): Promise<SickProxy> {
    const proxy = new SickProxy(target)
    proxy.port = await listenAnywhere(proxy.#server)
    return proxy
  }

  fall(illness: Illness): void {
    this.#illness = illness
    if (illness.kind === 'refuse') for (const { client } of this.#pairs) client.resetAndDestroy()
  }

  heal(): void {
    this.#illness = { kind: 'none' }
  }

  async stop(): Promise<void> {
    for (const { client, server } of this.#pairs) {
      client.destroy()
      server.destroy()
    }
    await new Promise(resolve => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.#illness.kind === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const server = connect({ port: this.#target, host: '127.0.0.1', noDelay: true })
    const pair: Pair = { client, server, isTorn: false, waiting: [], isPassing: false }
    this.#pairs.add(pair)
    client.on('data', chunk => {
      if (!this.#swallows(pair)) server.write(chunk)
    })
    server.on('data', chunk => {
      if (!this.#swallows(pair)) this.#reply(pair, chunk)
    })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('error', () => {}) // 'close' follows
      socket.on('close', () => {
        // In a black hole the client is not notified of the server's end: the pair stays, for `stop` and 'refuse'.
        if (pair.isTorn && socket === server) return
        this.#pairs.delete(pair)
        other.destroy()
      })
    }
  }

  #swallows(pair: Pair): boolean {
    if (this.#illness.kind === 'black-hole') pair.isTorn = true
    return pair.isTorn
  }

  #reply(pair: Pair, chunk: Buffer): void {
    const illness = this.#illness
    if (illness.kind === 'cut') {
      const { client } = pair
      const part = chunk.subarray(0, illness.keep(chunk.indexOf('\r\n') + 2))
      pair.isTorn = true // the next bytes would be read as the rest of the cut reply
      client.write(part, () => client.resetAndDestroy())
      return
    }
    const afterMs = illness.kind === 'slow' ? illness.delayMs() : 0
    const dueMs = performance.now() + afterMs
    if (illness.kind !== 'bytes') pair.waiting.push({ dueMs, bytes: chunk })
    else for (const byte of chunk) pair.waiting.push({ dueMs, bytes: Buffer.of(byte) })
    if (!pair.isPassing) this.#pass(pair)
  }

  /** Sends waiting bytes in order, each in an event-loop turn of its own. */
  #pass(pair: Pair): void {
    const [first] = pair.waiting
    pair.isPassing = first !== undefined && !pair.client.destroyed && !this.#swallows(pair)
    if (!pair.isPassing) return
    const waitMs = first!.dueMs - performance.now()
    if (waitMs > 0) setTimeout(() => this.#pass(pair), Math.ceil(waitMs))
    else {
      pair.client.write(pair.waiting.shift()!.bytes)
      setImmediate(() => this.#pass(pair))
    }
  }
}
