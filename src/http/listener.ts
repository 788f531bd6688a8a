/** Accepts connections, directly or through the PROXY protocol relay. */

import {
  type HttpResponse,
  type TemplatedApp,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { type Address, type AddressSet, isV4 } from '../addresses/address.ts'
import { peerOf } from './exchange.ts'
import type { ExchangeHost } from './exchange-host.ts'
import { ProxyRelay, type RelayOptions } from './proxy-relay.ts'

interface ListenOptions extends Omit<RelayOptions, 'upstreamPort' | 'silentMs'> {
  readonly host: string
  readonly port: number
  readonly proxyProtocol: boolean
  /** A request waits for the store at most this long. */
  readonly storeDeadlineMs: number
}

/**
 * The relay ends a silent connection after this. Proxies should end theirs before (docs/reference/proxies.md: within 8 s). The HTTP server
 * would end it after 8 to 12 s, but thousands at once, which delays everybody.
 */
const RELAY_SILENT_MS = 8500
/** A connection that waits for the store is silent too: the answer, which comes by the deadline, must still get through. */
const STORE_MARGIN_MS = 1000

/**
 * Number of sockets on the port, each with a backlog of 512. At 10,000 new connections a second, one tick of the event loop of 50
 * ms fills one backlog, and further clients retry after a second.
 */
const LISTENERS = 8

/**
 * uWebSockets.js does not tell which connection has ended, so an idle one cannot be closed safely. Instead, while more than this share of
 * `connectionsMax` is open, answers end connections, so hardly any lasts 30 s, and a client may open few. One client then holds at most
 * three quarters.
 */
const CROWDED_SHARE = 1 / 2
/** A client may open this share of `connectionsMax` in HELD_MS. A long answer counts as one more, since it keeps its connection open. */
const HELD_SHARE = 1 / 16
const HELD_MS = 10_000

export interface Listener {
  /** Stops accepting; open connections continue. */
  close(): Promise<void>
  connections(): number
}

/** @returns undefined if it cannot listen */
export function listen(app: TemplatedApp, exchangeHost: ExchangeHost, options: ListenOptions) {
  const listenAs = options.proxyProtocol ? listenThroughRelay : listenDirectly
  return listenAs(app, exchangeHost, options)
}

async function listenDirectly(
  app: TemplatedApp,
  exchangeHost: ExchangeHost,
  { host, port, connectionsMax, onFull }: ListenOptions,
): Promise<Listener | undefined> {
  let connections = 0
  const heldMax = Math.max(1, connectionsMax * HELD_SHARE)
  exchangeHost.mayHold = limitHeld(exchangeHost.trustedProxies, heldMax, onFull)
  onConnection(app, (response, isOpened) => {
    connections += isOpened ? 1 : -1
    exchangeHost.isCrowded = connections > connectionsMax * CROWDED_SHARE && !exchangeHost.isEveryPeerTrusted
    if (!isOpened) return
    if (connections > connectionsMax) {
      onFull()
      response.close() // this handler is then called for its end
    } else closedInCrowd(exchangeHost, response)
  })
  const sockets: object[] = []
  while (sockets.length < LISTENERS) {
    const socket = await listenHttp(app, host, port)
    if (socket === false) return undefined
    sockets.push(socket)
  }
  const close = async () => {
    await untilNobodyWaits()
    for (const socket of sockets) us_listen_socket_close(socket)
  }
  return { close, connections: () => connections }
}

/** Closes the connection if its client may not hold one more. Asked of a new one, and before an answer that may be too long to close it. */
export function closedInCrowd(host: ExchangeHost, response: HttpResponse): boolean {
  const isClosed = host.isCrowded && !host.mayHold(peerOf(response))
  if (isClosed) response.close()
  return isClosed
}

/** Returns a function that counts its calls by client, and tells whether this one may hold a connection more. Trusted proxies may. */
function limitHeld(proxies: AddressSet, heldMax: number, onMore: () => void): ExchangeHost['mayHold'] {
  const counts = new Map<Address, number>()
  setInterval(() => counts.clear(), HELD_MS).unref()
  return peer => {
    if (peer === undefined || proxies.has(peer)) return true
    const client = isV4(peer) ? peer : peer.slice(0, 6) // one host may have an IPv6 /48
    const count = (counts.get(client) ?? 0) + 1
    counts.set(client, count)
    if (count > heldMax) onMore()
    return count <= heldMax
  }
}

async function listenThroughRelay(
  app: TemplatedApp,
  exchangeHost: ExchangeHost,
  { host, port, storeDeadlineMs, ...options }: ListenOptions,
): Promise<Listener | undefined> {
  const socket = await listenHttp(app, '127.0.0.1', 0)
  if (socket === false) return undefined
  const silentMs = Math.max(RELAY_SILENT_MS, storeDeadlineMs + STORE_MARGIN_MS)
  const relay = new ProxyRelay({ ...options, silentMs, upstreamPort: us_socket_local_port(socket) })
  exchangeHost.relay = relay
  onConnection(app, (response, isOpened) => {
    if (!isOpened) return
    const peer = peerOf(response)
    if (peer === undefined || !relay.letIn(peer)) response.close() // another program of this machine connected, or the client has left
  })
  try {
    await relay.listen(host, port)
  } catch {
    us_listen_socket_close(socket)
    return undefined
  }
  // The HTTP server keeps accepting what the relay has accepted but not passed on yet.
  return { close: async () => relay.close(), connections: () => relay.connections }
}

function onConnection(
  app: TemplatedApp,
  openedOrEnded: (response: HttpResponse, isOpened: boolean) => void,
): void {
  app.filter((response, change) => openedOrEnded(response, Number(change) > 0)) // builds differ in the type
}

const LOOPBACK_V4 = '127.0.0.0/8'

/**
 * True if the service listens on loopback and trusts all of it: every connection is then a trusted proxy's, and its address need not be
 * read, for which a /challenge would take 8 to 12 % more CPU time. It is so in `npm run bench:http`, and behind
 * a proxy on this machine, if HOST is 127.0.0.1 and you trust 127.0.0.0/8.
 */
export function isEveryPeerTrusted(
  options: Pick<ListenOptions, 'host' | 'trustedProxies' | 'proxyProtocol'>,
): boolean {
  const { host, trustedProxies, proxyProtocol } = options
  return host.startsWith('127.') && !proxyProtocol && trustedProxies.covers(LOOPBACK_V4)
}

function listenHttp(app: TemplatedApp, host: string, port: number): Promise<object | false> {
  return new Promise(resolve => app.listen(host, port, resolve))
}

const SHORT_TICK_MS = 0.1
const QUIET_WAIT_MS = 250

/**
 * Closing a listener resets connections that wait there. Each tick of the event loop accepts all waiting connections, so after a
 * short tick hardly any is left.
 */
async function untilNobodyWaits(): Promise<void> {
  const giveUpAt = performance.now() + QUIET_WAIT_MS
  let tickStart = 0
  for (;;) {
    const now = performance.now()
    if (now - tickStart < SHORT_TICK_MS || now > giveUpAt) return
    tickStart = now
    await new Promise(resolve => setImmediate(resolve))
  }
}
