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

export interface RelayOptions {
  /** These must send a header. All other peers are clients, whose bytes are never read as a header. */
  readonly trustedProxies: AddressSet
  /** A port on 127.0.0.1. */
  readonly upstreamPort: number
  /** A trusted proxy's header was wrong or did not end. One without a byte is not reported: a health check may test the port. */
  readonly onWrongHeader: (proxy: Address, why: string) => void
  readonly connectionsMax: number
  /** Called for each connection that was closed because of `connectionsMax`. */
  readonly onFull: () => void
  /** A connection without a byte in either direction is ended after this. */
  readonly silentMs: number
}

interface RelayedClient {
  /** The client's, or the proxy's if its header named no client. */
  readonly address: Address
  /** The header named no client. X-Forwarded-For is then ignored, because the client could have written it. */
  readonly isNameless: boolean
}

/** A proxy has this long, although it sends the header in its first segment. */
const HEADER_MS = 5000
/** A client has this long to take the last bytes. */
const LAST_BYTES_MS = 5000
const ALIASES = 2 ** 22
/** The HTTP server may still hold requests of an ended connection for this long. */
const ALIAS_KEPT_MS = 1000
/** If fewer connections are idle, the longest of the others is closed for a newcomer. */
const IDLE_SHARE_MIN = 1 / 4
const EMPTY: Buffer = Buffer.alloc(0)

export class ProxyRelay {
  readonly #options: RelayOptions
  readonly #server: Server
  /** Clients by the alias of their connection. */
  readonly #clients = new Map<Address, RelayedClient>()
  /** Aliases that the HTTP server has not accepted yet. */
  readonly #awaited = new Set<Address>()
  /** Connections whose clients sent nothing since they were accepted or answered, and the others. Those that are so longest come first. */
  readonly #idle = new Set<Socket>()
  readonly #asking = new Set<Socket>()

  constructor(options: RelayOptions) {
    this.#options = options
    // A client may end its direction after a request. It still gets the answer.
    const socketOptions = { noDelay: true, pauseOnConnect: true, allowHalfOpen: true }
    this.#server = createServer(socketOptions, client => this.#accept(client))
  }

  /** In a worker this asks node:cluster's primary process, which accepts connections and hands them to the workers in turn. */
  async listen(host: string, port: number): Promise<void> {
    this.#server.listen({ host, port })
    await once(this.#server, 'listening')
  }

  close(): void {
    this.#server.close()
  }

  get connections(): number {
    return this.#idle.size + this.#asking.size
  }

  /** True if a connection to the HTTP server comes from this relay. Lets an alias in once: a second call returns false. */
  letIn(alias: Address): boolean {
    return this.#awaited.delete(alias)
  }

  /** Returns undefined from a second after the connection's end. */
  clientOf(alias: Address): RelayedClient | undefined {
    return this.#clients.get(alias)
  }

  #accept(client: Socket): void {
    client.on('error', () => {}) // 'close' follows
    if (this.connections >= this.#options.connectionsMax) {
      // One host could hold all connections if the newcomer were closed; and with starts of requests, if only idle ones were.
      // Finding the first of 20,000 that come and go takes 7 us.
      this.#options.onFull()
      const [longest] = this.#idle.size > this.connections * IDLE_SHARE_MIN ? this.#idle : this.#asking
      this.#forget(longest!)
      longest!.destroy()
    }
    this.#idle.add(client)
    client.once('close', () => this.#forget(client))
    const sender = addressOfSocket(client)
    if (sender === undefined) client.destroy()
    else if (this.#options.trustedProxies.has(sender)) this.#readHeader(client, sender)
    else this.#passOn(client, sender, EMPTY)
  }

  #forget(client: Socket): boolean {
    return this.#idle.delete(client) || this.#asking.delete(client)
  }

  #readHeader(client: Socket, proxy: Address): void {
    let bytes: Buffer = EMPTY
    const refuse = (why: string) => {
      this.#options.onWrongHeader(proxy, why)
      client.destroy()
    }
    const timer = setTimeout(
      () => (bytes.length > 0 ? refuse('its header does not end') : client.destroy()),
      HEADER_MS,
    )
    client.once('close', () => clearTimeout(timer))
    const leave = () => client.destroy() // half-open, it would wait for HEADER_MS
    client.once('end', leave)
    const take = (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const header = readProxyHeader(bytes)
      if (header.status === 'incomplete') return
      client.off('data', take)
      client.off('end', leave)
      clearTimeout(timer)
      client.pause()
      if (header.status === 'wrong') return refuse(header.why)
      const { source, headerBytes } = header
      this.#passOn(client, source ?? proxy, bytes.subarray(headerBytes), source === undefined)
    }
    client.on('data', take)
    client.resume()
  }

  #passOn(client: Socket, address: Address, afterHeader: Buffer, isNameless = false): void {
    if (client.destroyed) return
    const alias = this.#freeAlias()
    this.#clients.set(alias, { address, isNameless })
    this.#awaited.add(alias)
    const upstream = connect({
      host: '127.0.0.1',
      port: this.#options.upstreamPort,
      localAddress: formatAddress(alias),
      noDelay: true,
    })
    upstream.on('error', () => {}) // 'close' follows, and ends the client
    upstream.once('close', () => {
      this.#awaited.delete(alias)
      setTimeout(() => this.#clients.delete(alias), ALIAS_KEPT_MS).unref()
      if (client.destroyed) return
      client.destroySoon() // Bytes that the server has sent still go out.
      const timer = setTimeout(() => client.destroy(), LAST_BYTES_MS)
      client.once('close', () => clearTimeout(timer))
    })
    client.once('close', () => upstream.destroy())
    client.setTimeout(this.#options.silentMs, () => client.destroy())
    const asks = () => this.#idle.delete(client) && this.#asking.add(client)
    client.on('data', asks)
    if (afterHeader.length > 0) {
      asks()
      upstream.write(afterHeader)
    }
    upstream.on('data', () => this.#forget(client) && this.#idle.add(client))
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
