/**
 * Listens in place of the HTTP server where proxies tell the client's address by a PROXY protocol header, reads the header,
 * and passes the rest on to the HTTP server on loopback.
 *
 * uWebSockets.js can read such headers, but it takes one before every request of a connection, so a client whose bytes
 * a proxy passes on as they are (a balancer for TCP) need only send one itself to be whoever it likes. It also gives no
 * answer where a header has more than 24 bytes of extensions, which cloud balancers add. So it is never asked.
 *
 * The HTTP server learns the client's address from the one that its peer has: each connection is passed on from a
 * loopback address of its own, drawn at random from 127.128.0.0/10, which takes no byte of the connection itself. Other programs
 * of the machine can connect to the HTTP server's port too, also from such an address: only the first connection from an address
 * that is awaited is let in, and nobody knows that address before.
 */

import { randomInt } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  type Address,
  type AddressSet,
  addressFromBytes,
  formatAddress,
  parseAddress,
} from '../domain/address.ts'
import { readProxyHeader } from '../domain/proxy-header.ts'

export interface RelayOptions {
  /** Who must send a header. Others may not: they are clients. */
  readonly trustedProxies: AddressSet
  /** Where the HTTP server listens on 127.0.0.1. */
  readonly upstreamPort: number
  /** Told of connections that a trusted proxy began wrongly. */
  readonly refused: (peer: Address, why: string) => void
  /** Above that, new ones are closed. */
  readonly connectionsMax: number
  readonly crowded: () => void
  /** A connection without a byte either way for this long is ended. */
  readonly silentMs: number
}

/** Proxies send it with their first segment; however slowly the rest comes. */
const HEADER_MS = 5000
/** When the HTTP server has ended its side: for a client to take what it was sent before that. */
const LAST_WORDS_MS = 5000
const SLOTS = 2 ** 22
/** For what a connection has left in the HTTP server's buffers. */
const SLOT_KEPT_MS = 1000
const EMPTY: Buffer = Buffer.alloc(0)

export class ProxyRelay {
  readonly #options: RelayOptions
  readonly #server: Server
  /** The loopback address that a connection is passed on from -> its client. */
  readonly #clients = new Map<Address, Address>()
  /** Of these, those whose connection the HTTP server has not accepted yet. */
  readonly #awaited = new Set<Address>()
  /** Of clients, those whose header is still awaited too. */
  connections = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, client => this.#accept(client))
  }

  /** Workers share the port: the primary accepts, and hands connections out in turn. */
  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  /** Accepts no more; connections go on. */
  close(): void {
    this.#server.close()
  }

  /** Whether a new connection to the HTTP server is one of ours. */
  admits(peer: Address): boolean {
    return this.#awaited.delete(peer)
  }

  /** Whom the HTTP server's peer speaks for; undefined if its connection has long ended. */
  clientOf(peer: Address): Address | undefined {
    return this.#clients.get(peer)
  }

  #accept(client: Socket): void {
    client.on('error', ignore) // 'close' follows
    if (this.connections >= this.#options.connectionsMax) {
      this.#options.crowded()
      client.destroy()
      return
    }
    this.connections++
    client.once('close', () => this.connections--)
    const peer = addressOfSocket(client)
    if (peer === undefined) client.destroy()
    else if (this.#options.trustedProxies.has(peer)) this.#readHeader(client, peer)
    else this.#passOn(client, peer, EMPTY)
  }

  #readHeader(client: Socket, peer: Address): void {
    let bytes: Buffer = EMPTY
    const refuse = (why: string) => {
      this.#options.refused(peer, why)
      client.destroy()
    }
    // Who says nothing at all is looking whether the port is open.
    const timer = setTimeout(
      () => (bytes.length > 0 ? refuse('its header does not end') : client.destroy()),
      HEADER_MS,
    )
    client.once('close', () => clearTimeout(timer))
    const take = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const header = readProxyHeader(bytes)
      if (header.status === 'incomplete') return
      client.off('data', take)
      clearTimeout(timer)
      client.pause()
      if (header.status === 'wrong') refuse(header.why)
      else this.#passOn(client, header.source ?? peer, bytes.subarray(header.bytes))
    }
    client.on('data', take)
    client.resume()
  }

  /** @param first what has come from the client already */
  #passOn(client: Socket, address: Address, first: Buffer): void {
    if (client.destroyed) return
    const slot = this.#freeSlot()
    this.#clients.set(slot, address)
    this.#awaited.add(slot)
    const upstream = connect({
      host: '127.0.0.1',
      port: this.#options.upstreamPort,
      localAddress: formatAddress(slot),
      noDelay: true,
    })
    upstream.on('error', ignore)
    upstream.once('close', () => {
      this.#awaited.delete(slot)
      setTimeout(() => this.#clients.delete(slot), SLOT_KEPT_MS).unref()
      if (client.destroyed) return
      client.destroySoon() // what the server has said still goes out
      const timer = setTimeout(() => client.destroy(), LAST_WORDS_MS)
      client.once('close', () => clearTimeout(timer))
    })
    client.once('close', () => upstream.destroy())
    client.setTimeout(this.#options.silentMs, () => client.destroy())
    if (first.length > 0) upstream.write(first)
    client.pipe(upstream)
    upstream.pipe(client)
  }

  #freeSlot(): Address {
    for (;;) {
      const slot = slotAddress(randomInt(SLOTS))
      if (!this.#clients.has(slot)) return slot
    }
  }
}

function slotAddress(slot: number): Address {
  return addressFromBytes(Buffer.from([127, 128 + (slot >> 16), (slot >> 8) & 0xff, slot & 0xff]))!
}

function addressOfSocket({ remoteAddress }: Socket): Address | undefined {
  // A link-local peer's address carries its zone.
  return remoteAddress === undefined ? undefined : parseAddress(remoteAddress.replace(/%.*$/, ''))
}

function ignore(): void {}
