/** The service's routes in this process, with a gate that admits nothing, or what the test says: the answers of an overloaded service. */

import { type TemplatedApp, type us_listen_socket, us_listen_socket_close } from 'uWebSockets.js'
import type { TestContext } from 'node:test'
import { AddressSet } from '../../src/addresses/address.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { Work } from '../../src/domain/endpoint.ts'
import type { Service } from '../../src/endpoints/service.ts'
import { findWidget, widgetRoutes } from '../../src/http/assets.ts'
import type { ContentRoute } from '../../src/http/content.ts'
import type { ExchangeHost } from '../../src/http/exchange-host.ts'
import { buildApp } from '../../src/routes.ts'
import { freePort } from './ports.ts'

/** Listens on a free port of 127.0.0.1. */
export async function listenWith(app: TemplatedApp) {
  const port = await freePort()
  const socket = await new Promise<us_listen_socket | false>(resolve =>
    app.listen('127.0.0.1', port, resolve),
  )
  if (socket === false) throw new Error(`the port ${port} is taken`)
  const stop = () => {
    us_listen_socket_close(socket)
    app.close()
  }
  return { port, stop }
}

const answerFile: ContentRoute['handle'] = exchange =>
  exchange.answer({ status: 200, body: 'a file', headers: [], hasOwnType: true })

interface RefusingOptions {
  /** Addresses or CIDRs of peers that may forward requests of other clients. */
  readonly trustedProxies?: readonly string[]
  readonly admits?: (work: Work) => boolean
}

/** A server that ends with the test. */
export async function startRefusingServer(t: TestContext, options: RefusingOptions = {}) {
  const { trustedProxies = [], admits = () => false } = options
  let refused = 0
  let seen = 0 // requests that were reported to the gate, but needed no admission
  const host: ExchangeHost = {
    trustedProxies: new AddressSet(trustedProxies),
    isEveryPeerTrusted: false,
    relay: undefined,
    onForwardingIgnored: () => {},
    onForwardingMalformed: () => {},
    isDraining: false,
    ...{ isCrowded: false, mayHold: () => true },
    inFlight: 0,
    observer: { answered: () => {}, aborted: () => {}, faulted: () => {}, shed: () => refused++ },
    gate: { isShedding: true, admits, countOther: () => seen++ },
    newRequestId: () => '',
  }
  // Refused requests use no other part of the service.
  const service = { settings: loadConfig({}) } as unknown as Service
  const file = { path: '/file', methods: ['get', 'head'], handle: answerFile } as const
  const app = buildApp(service, host, [file, ...widgetRoutes(findWidget()!)])
  const { port, stop } = await listenWith(app)
  t.after(stop)
  return { port, url: `http://127.0.0.1:${port}`, refused: () => refused, seen: () => seen }
}
