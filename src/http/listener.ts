/** Accepts connections: the HTTP server itself, or a relay before it that reads PROXY protocol headers. */

import {
  type HttpResponse,
  type TemplatedApp,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { type Address, type AddressSet, addressFromBytes } from '../domain/address.ts'
import type { ExchangeHost } from './exchange-host.ts'
import { ProxyRelay } from './proxy-relay.ts'

interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly trustedProxies: AddressSet
  /** Whether trusted peers start their connections with a PROXY protocol header. */
  readonly proxyProtocol: boolean
  /** Above this number, new connections are closed. */
  readonly connectionsMax: number
  /** The longest wait of an answer for the store. */
  readonly storeDeadlineMs: number
  /** Called when a trusted proxy sent a wrong header, at most once in ten seconds. */
  readonly refused: (peer: Address, why: string, sinceLast: number) => void
  /** Called when connections were closed because there were too many, at most once in ten seconds. */
  readonly crowded: (sinceLast: number) => void
}

/**
 * Silence after which the relay ends a connection. The HTTP server would end silent ones after 8 to 12 s, but all of them
 * together every four seconds. With thousands, the relay would then delay other connections. Proxies end theirs earlier (8
 * s).
 */
const RELAY_SILENT_MS = 8500
const STORE_MARGIN_MS = 1000

/**
 * Sockets that listen on the port. In uWebSockets.js each has a fixed backlog of 512 connections. At 10,000 new connections a
 * second, a turn of 50 ms fills it, and further clients wait a second for their next try. The kernel spreads connections over
 * the sockets.
 */
const LISTENERS = 8

export interface Listener {
  /** Accepts no more connections; open ones go on. Resolves when nothing is accepted any more. */
  close(): Promise<void>
  connections(): number
  /** How many connections have been closed because there were too many. */
  refusedConnections(): number
}

/** @returns undefined if the address cannot be used or the port is taken */
export async function listen(
  app: TemplatedApp,
  host: ExchangeHost,
  options: ListenOptions,
): Promise<Listener | undefined> {
  let refused = 0
  const tellCrowded = seldom(options.crowded)
  const crowded = () => {
    refused++
    tellCrowded()
  }
  const refusedConnections = () => refused
  let connections = 0
  const { connectionsMax, proxyProtocol } = options
  const count = (response: HttpResponse, change: number) => {
    connections += Math.sign(change)
    if (change < 0) return
    if (host.relay !== undefined) {
      const peer = addressFromBytes(Buffer.from(response.getRemoteAddress()))
      if (peer === undefined || !host.relay.admits(peer)) response.close()
    } else if (connections > connectionsMax) {
      crowded()
      response.close() // the filter then counts the connection as ended
    }
  }
  app.filter((response, change) => count(response, Number(change))) // builds differ in the type
  if (!proxyProtocol) {
    const sockets: object[] = []
    while (sockets.length < LISTENERS) {
      const socket = await listenHttp(app, options.host, options.port)
      if (socket === false) return undefined
      sockets.push(socket)
    }
    const close = async () => {
      await untilNobodyWaits()
      for (const socket of sockets) us_listen_socket_close(socket)
    }
    return { close, connections: () => connections, refusedConnections }
  }
  const socket = await listenHttp(app, '127.0.0.1', 0)
  if (socket === false) return undefined
  const relay = new ProxyRelay({
    trustedProxies: options.trustedProxies,
    upstreamPort: us_socket_local_port(socket),
    refused: seldom((sinceLast, peer: Address, why: string) => options.refused(peer, why, sinceLast)),
    connectionsMax,
    crowded,
    silentMs: Math.max(RELAY_SILENT_MS, options.storeDeadlineMs + STORE_MARGIN_MS),
  })
  host.relay = relay
  try {
    await relay.listen(options.host, options.port)
  } catch {
    us_listen_socket_close(socket)
    return undefined
  }
  // The HTTP server goes on accepting: the relay may have accepted connections that it has not passed on yet.
  const close = async () => relay.close()
  return { close, connections: () => relay.connections, refusedConnections }
}

const LOOPBACK_V4 = '127.0.0.0/8'

/**
 * Whether every peer is a trusted proxy, so that its address need not be read. True only on a loopback listener with all of
 * 127.0.0.0/8 trusted: every program that connects runs on this machine, and could send from a trusted address.
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

/** An event-loop turn this short has just accepted all waiting connections. */
const SHORT_TURN_MS = 0.1
const QUIET_WAIT_MS = 250

/**
 * Waits until hardly any connection waits to be accepted. Closing the listener would reset those (unless
 * net.ipv4.tcp_migrate_req is 1). Each turn of the event loop accepts all waiting ones, so there is hardly ever one right
 * after a short turn.
 */
async function untilNobodyWaits(): Promise<void> {
  const giveUpAt = performance.now() + QUIET_WAIT_MS
  let turnStart = 0
  for (;;) {
    const now = performance.now()
    if (now - turnStart < SHORT_TURN_MS || now > giveUpAt) return
    turnStart = now
    await new Promise(resolve => setImmediate(resolve))
  }
}

const TELL_MS = 10_000

/** Passes on one call in ten seconds, with a count: a wrongly set up proxy does everything wrongly, so calls are many. */
function seldom<Details extends unknown[]>(
  tell: (sinceLast: number, ...details: Details) => void,
): (...details: Details) => void {
  let untold = 0
  let toldAtMs = Number.NEGATIVE_INFINITY
  return (...details) => {
    untold++
    const nowMs = performance.now()
    if (nowMs - toldAtMs < TELL_MS) return
    tell(untold, ...details)
    untold = 0
    toldAtMs = nowMs
  }
}
