/** Where connections come in: the HTTP server itself, or before it who reads PROXY protocol headers. */

import { type TemplatedApp, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js'
import { type Address, type AddressSet, formatAddress } from '../domain/address.ts'
import type { ExchangeHost } from './exchange.ts'
import { ProxyRelay } from './proxy-relay.ts'

export interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly trustedProxies: AddressSet
  /** Whether trusted peers start their connections with a PROXY protocol header. */
  readonly proxyProtocol: boolean
  /** Told of connections that a trusted proxy began wrongly, at most one in ten seconds. */
  readonly refused: (peer: string, why: string, sinceLast: number) => void
}

export interface Listener {
  /** Accepts no more; connections go on. */
  close(): void
}

/** @returns undefined if the address cannot be used or the port is taken */
export async function listen(
  app: TemplatedApp,
  host: ExchangeHost,
  options: ListenOptions,
): Promise<Listener | undefined> {
  if (!options.proxyProtocol) {
    const socket = await listenHttp(app, options.host, options.port)
    return socket === false ? undefined : { close: () => us_listen_socket_close(socket) }
  }
  const socket = await listenHttp(app, '127.0.0.1', 0)
  if (socket === false) return undefined
  const relay = new ProxyRelay({
    trustedProxies: options.trustedProxies,
    upstreamPort: us_socket_local_port(socket),
    refused: seldom(options.refused),
  })
  host.relay = relay
  const close = () => {
    relay.close()
    us_listen_socket_close(socket)
  }
  try {
    await relay.listen(options.host, options.port)
    return { close }
  } catch {
    close()
    return undefined
  }
}

function listenHttp(app: TemplatedApp, host: string, port: number): Promise<object | false> {
  return new Promise(resolve => app.listen(host, port, resolve))
}

const TELL_MS = 10_000

/** A proxy that is set up wrongly does everything wrongly. */
function seldom(tell: ListenOptions['refused']): (peer: Address, why: string) => void {
  let untold = 0
  let toldAtMs = Number.NEGATIVE_INFINITY
  return (peer, why) => {
    untold++
    const nowMs = performance.now()
    if (nowMs - toldAtMs < TELL_MS) return
    tell(formatAddress(peer), why, untold)
    untold = 0
    toldAtMs = nowMs
  }
}
