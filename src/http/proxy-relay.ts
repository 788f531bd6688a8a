/**
 * Listens in place of the HTTP server where proxies tell the client's address by a PROXY protocol header. The relay reads that
 * header, and passes the rest of the connection on to the HTTP server on loopback.
 *
 * uWebSockets.js can read such headers itself, but accepts one before every request of a connection. A balancer for TCP passes
 * its client's bytes on as they are, so a client could send a header and have any address. uWebSockets.js also gives no answer
 * to a header with more than 24 bytes of extensions, which cloud balancers add.
 *
 * The HTTP server learns the client's address from its peer's: each connection is passed on from a loopback address of its
 * own, drawn at random from 127.128.0.0/10. Other programs of the machine can connect to the HTTP server's port from such an
 * address too. Only the first connection from an awaited address is let in, and nobody knows that address before.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  type Address,
  type AddressSet,
  addressFromBytes,
  formatAddress,
  parseAddress,
} from '../domain/address.ts'
import { readProxyHeader } from '../domain/proxy-header.ts'

interface RelayOptions {
  /** Peers that must send a header. Other peers are clients, whose bytes are never read as a header. */
  readonly trustedProxies: AddressSet
  /** Where the HTTP server listens on 127.0.0.1. */
  readonly upstreamPort: number
  /** Called when a trusted proxy sent a wrong header, or none. */
  readonly refused: (peer: Address, why: string) => void
  /** Above this number, new connections are closed. */
  readonly connectionsMax: number
  readonly crowded: () => void
  /** After this time without a byte either way, a connection is ended. */
  readonly silentMs: number
}

/** Time for a whole header, which proxies send with their first segment. */
const HEADER_MS = 5000
/** Time for a client to take the last bytes, once the HTTP server has ended its side. */
const LAST_WORDS_MS = 5000
const SLOTS = 2 ** 22
/** A client's address is kept for this long, since the HTTP server may still hold requests of an ended connection. */
const SLOT_KEPT_MS = 1000
const EMPTY: Buffer = Buffer.alloc(0)

export class ProxyRelay {
  readonly #options: RelayOptions
  readonly #server: Server
  /** Client by the loopback address from which its connection is passed on. */
  readonly #clients = new Map<Address, Address>()
  /** Loopback addresses from which connections are passed on whose header gives no client. */
  readonly #nameless = new Set<Address>()
  /** Loopback addresses whose connection the HTTP server has not accepted yet. */
  readonly #awaited = new Set<Address>()
  /** Open connections of clients, including those whose header is incomplete. */
  connections = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, client => this.#accept(client))
  }

  /** Workers share the port: the primary process accepts, and hands connections out in turn. */
  async listen(host: string, port: number): Promise<void> {
    this.#server.listen({ host, port })
    await once(this.#server, 'listening')
  }

  /** Accepts no more connections; open ones go on. */
  close(): void {
    this.#server.close()
  }

  /** Whether a new connection to the HTTP server comes from this relay. */
  admits(peer: Address): boolean {
    return this.#awaited.delete(peer)
  }

  /** The client for whom the HTTP server's peer connected; undefined if that connection has long ended. */
  clientOf(peer: Address): Address | undefined {
    return this.#clients.get(peer)
  }

  /** Whether nobody knows whose bytes the connection brings: the proxy's own, or those of a client that it does not name. */
  isNameless(peer: Address): boolean {
    return this.#nameless.has(peer)
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
    // A peer that sends nothing at all tries whether the port is open.
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
      else
        this.#passOn(client, header.source ?? peer, bytes.subarray(header.bytes), header.source === undefined)
    }
    client.on('data', take)
    client.resume()
  }

  /** @param first bytes that the client has sent already */
  #passOn(client: Socket, address: Address, first: Buffer, isNameless = false): void {
    if (client.destroyed) return
    const slot = this.#freeSlot()
    this.#clients.set(slot, address)
    if (isNameless) this.#nameless.add(slot)
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
      const forget = () => {
        this.#clients.delete(slot)
        this.#nameless.delete(slot)
      }
      setTimeout(forget, SLOT_KEPT_MS).unref()
      if (client.destroyed) return
      client.destroySoon() // after the bytes that the server has sent
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
