/**
 * Reads PROXY protocol headers in front of the HTTP server, and passes what follows on to it over loopback.
 *
 * uWebSockets.js would accept such a header before every request: behind a TCP balancer, which passes bytes on unchanged, a
 * client could claim any address. It also never answers a header with over 24 bytes of extensions, which cloud
 * balancers add.
 *
 * Each connection is passed on from its own random loopback address (its alias, in 127.128.0.0/10), by which the HTTP server
 * finds the client. Only the first connection from an awaited alias is let in, and nobody can know the alias before, so no other
 * program can pretend to be the relay.
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
} from '../addresses/address.ts'
import { readProxyHeader } from '../addresses/proxy-header.ts'

interface RelayOptions {
  /** These must send a header. All other peers are clients, whose bytes are never read as a header. */
  readonly trustedProxies: AddressSet
  /** A port on 127.0.0.1. */
  readonly upstreamPort: number
  /** A wrong header, or none. */
  readonly refused: (peer: Address, why: string) => void
  readonly connectionsMax: number
  readonly crowded: () => void
  /** A connection without a byte in either direction is ended after this. */
  readonly silentMs: number
}

/** Proxies send the header in their first segment. */
const HEADER_MS = 5000
/** A client has this long to take the last bytes. */
const LAST_BYTES_MS = 5000
const ALIASES = 2 ** 22
/** The HTTP server may still hold requests of an ended connection for this long. */
const ALIAS_KEPT_MS = 1000
const EMPTY: Buffer = Buffer.alloc(0)

export class ProxyRelay {
  readonly #options: RelayOptions
  readonly #server: Server
  readonly #clients = new Map<Address, Address>()
  readonly #nameless = new Set<Address>()
  /** Aliases that the HTTP server has not accepted yet. */
  readonly #awaited = new Set<Address>()
  connections = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#server = createServer({ noDelay: true, pauseOnConnect: true, allowHalfOpen: true }, client =>
      this.#accept(client),
    )
  }

  /** node:cluster's primary process accepts connections for all workers. */
  async listen(host: string, port: number): Promise<void> {
    this.#server.listen({ host, port })
    await once(this.#server, 'listening')
  }

  /** Stops accepting; open connections continue. */
  close(): void {
    this.#server.close()
  }

  /** True if a new peer is this relay. A second call for the same peer returns false. */
  admits(peer: Address): boolean {
    return this.#awaited.delete(peer)
  }

  /** undefined once the connection ended a second ago. */
  clientOf(peer: Address): Address | undefined {
    return this.#clients.get(peer)
  }

  /** True if the header named no client. X-Forwarded-For is then ignored, because the client could have written it. */
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
    // Sending nothing only tests whether the port is open.
    const timer = setTimeout(
      () => (bytes.length > 0 ? refuse('its header does not end') : client.destroy()),
      HEADER_MS,
    )
    client.once('close', () => clearTimeout(timer))
    const leave = () => client.destroy()
    client.once('end', leave)
    const take = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const header = readProxyHeader(bytes)
      if (header.status === 'incomplete') return
      client.off('data', take)
      client.off('end', leave)
      clearTimeout(timer)
      client.pause()
      if (header.status === 'wrong') refuse(header.why)
      else
        this.#passOn(client, header.source ?? peer, bytes.subarray(header.bytes), header.source === undefined)
    }
    client.on('data', take)
    client.resume()
  }

  #passOn(client: Socket, address: Address, first: Buffer, isNameless = false): void {
    if (client.destroyed) return
    const alias = this.#freeAlias()
    this.#clients.set(alias, address)
    if (isNameless) this.#nameless.add(alias)
    this.#awaited.add(alias)
    const upstream = connect({
      host: '127.0.0.1',
      port: this.#options.upstreamPort,
      localAddress: formatAddress(alias),
      noDelay: true,
    })
    upstream.on('error', ignore)
    upstream.once('close', () => {
      this.#awaited.delete(alias)
      const forget = () => {
        this.#clients.delete(alias)
        this.#nameless.delete(alias)
      }
      setTimeout(forget, ALIAS_KEPT_MS).unref()
      if (client.destroyed) return
      client.destroySoon() // Bytes that the server has sent still go out.
      const timer = setTimeout(() => client.destroy(), LAST_BYTES_MS)
      client.once('close', () => clearTimeout(timer))
    })
    client.once('close', () => upstream.destroy())
    client.setTimeout(this.#options.silentMs, () => client.destroy())
    if (first.length > 0) upstream.write(first)
    client.pipe(upstream)
    upstream.pipe(client)
  }

  #freeAlias(): Address {
    for (;;) {
      const alias = aliasOf(randomInt(ALIASES))
      if (!this.#clients.has(alias)) return alias
    }
  }
}

function aliasOf(index: number): Address {
  return addressFromBytes(Buffer.from([127, 128 + (index >> 16), (index >> 8) & 0xff, index & 0xff]))!
}

function addressOfSocket({ remoteAddress }: Socket): Address | undefined {
  // A link-local address carries its zone.
  return remoteAddress === undefined ? undefined : parseAddress(remoteAddress.replace(/%.*$/, ''))
}

function ignore(): void {}
