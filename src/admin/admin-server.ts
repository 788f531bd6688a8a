/**
 * The admin port: health, readiness, metrics and further routes, without a password. A Host header, which every browser sends, must
 * name an address, localhost, this machine or one of POWGATE_ADMIN_HOSTS: a web page could point any other name here (DNS rebinding).
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, isIPv4, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { isLoopback } from '../addresses/address.ts'
import type { Config } from '../config/config.ts'
import { listenError } from '../config/ports.ts'
import type { Logger } from '../log/logger.ts'

/** What the admin port, its metrics and its dashboard ask of the primary process. */
export interface Supervisor {
  /** True while all workers run, and during a stop. */
  isHealthy(): boolean
  /** True while a worker can answer visitors; false from the start of a stop on. */
  isReady(): boolean
  /** Resolves once the totals are up to date. */
  askStats(): Promise<void>
  workersWanted(): number
}

export interface AdminRoute {
  readonly path: string
  /** GET and HEAD, whose body Node.js leaves out. An exception becomes a 500. */
  handle(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void | Promise<void>
}

/** A client may take this long for its headers, for its request, or between two reads of an answer. */
const SLOW_MS = 5000
const HEADER_BYTES_MAX = 8192
/** After so many requests a connection ends. Otherwise thousands of pipelined ones would delay others by seconds. */
const REQUESTS_PER_CONNECTION_MAX = 100
/** An answer that takes longer, for example because the store hangs, no longer holds up the next one. */
const TURN_MS = 1000
const CONNECTIONS_MAX = 256
/** One more connection without a request ends the oldest such connection, so a health check can always connect. */
const IDLE_MAX = 64

export function startAdminServer(
  { adminHost, adminHosts, adminPort }: Pick<Config, 'adminHost' | 'adminHosts' | 'adminPort'>,
  supervisor: Supervisor,
  routes: readonly AdminRoute[],
  log: Logger,
): Promise<Server | undefined> {
  if (adminPort === undefined) return Promise.resolve(undefined)
  if (!isLoopback(adminHost))
    log.warn(
      { adminHost, adminPort },
      'the admin port can be reached from other hosts and has no password: let a firewall keep others out',
    )
  const hostNames = [...adminHosts, hostname().toLowerCase()]
  const health = healthRoutes(supervisor)
  const byPath = new Map([...health, ...routes].map(route => [route.path, route]))
  const isHealthCheck = (request: IncomingMessage) => health.some(({ path }) => path === pathOf(request))
  const answerInTurn = oneEachTick()
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: SLOW_MS,
      requestTimeout: SLOW_MS,
      connectionsCheckingInterval: SLOW_MS / 10,
    },
    (request, response) => {
      const answer = () =>
        serve(request, response, byPath, hostNames).catch(error => {
          log.error({ event: 'fault', err: error, path: pathOf(request) }, 'the admin port ran into a fault')
          if (response.headersSent) response.destroy()
          else sendError(response, 500, 'internal', 'powgate ran into a fault; see its log.')
        })
      if (isHealthCheck(request)) void answer()
      else answerInTurn(request.socket, answer)
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX
  limitIdle(server)
  server.setTimeout(SLOW_MS) // This ends clients that do not read, too.
  return new Promise((resolve, reject) => {
    const address = { host: adminHost, port: adminPort }
    server.once('error', error => reject(listenError(address, error, 'POWGATE_ADMIN_')))
    server.listen(adminPort, adminHost, () => resolve(server))
    server.on('error', () => {}) // also of a later accept, which would end the service
  })
}

/** Answers one request per tick of the event loop, so pipelining delays no health check. */
function oneEachTick(): (socket: Socket, answer: () => Promise<void>) => void {
  const lastOfSocket = new WeakMap<Socket, Promise<void>>()
  let lastOfAll = Promise.resolve()
  return (socket, answer) => {
    const enqueue = () => {
      lastOfAll = lastOfAll.then(async () => {
        await setImmediate()
        if (!socket.destroyed) await Promise.race([answer(), sleep(TURN_MS, undefined, { ref: false })])
      })
      return lastOfAll
    }
    // Connections alternate, because each queues its next request only once the one before is answered.
    lastOfSocket.set(socket, (lastOfSocket.get(socket) ?? Promise.resolve()).then(enqueue))
  }
}

function limitIdle(server: Server): void {
  const idle = new Set<Socket>()
  const add = (socket: Socket) => {
    idle.add(socket)
    if (idle.size > IDLE_MAX) idle.values().next().value!.destroy() // the oldest
  }
  server.on('connection', socket => {
    add(socket)
    socket.once('close', () => idle.delete(socket))
  })
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.once('finish', () => !socket.destroyed && add(socket))
  })
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  routes: ReadonlyMap<string, AdminRoute>,
  hostNames: readonly string[],
): Promise<void> {
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('X-Content-Type-Options', 'nosniff')
  const { host } = request.headers
  if (host !== undefined && !isLocalName(host) && !hostNames.includes(hostNameOf(host)))
    return sendError(response, 403, 'host', 'Use an IP address, localhost or a name of POWGATE_ADMIN_HOSTS.')
  const path = pathOf(request)
  const route = routes.get(path)
  if (route === undefined) {
    const paths = [...routes.keys()].join(', ')
    sendError(response, 404, 'not-found', `There is no such path; there are ${paths}.`)
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    sendError(response, 405, 'method-not-allowed', 'The admin port takes GET and HEAD only.')
  } else {
    await route.handle(request, response, new URLSearchParams((request.url ?? '').slice(path.length)))
  }
}

function healthRoutes(supervisor: Supervisor): AdminRoute[] {
  const check = (path: string, isOk: () => boolean): AdminRoute => ({
    path,
    handle(_request, response) {
      const ok = isOk()
      sendJson(response, ok ? 200 : 503, { ok })
    },
  })
  return [check('/healthz', () => supervisor.isHealthy()), check('/readyz', () => supervisor.isReady())]
}

function pathOf({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

export function sendError(response: ServerResponse, status: number, code: string, error: string): void {
  sendJson(response, status, { error, code })
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(body))
}

function hostNameOf(host: string): string {
  return host.replace(/\.?(:\d*)?$/, '').toLowerCase()
}

/** True for an IP address or localhost, which no name server can point elsewhere. */
export function isLocalName(host: string): boolean {
  const name = hostNameOf(host)
  if (name.startsWith('[')) return name.endsWith(']') && isIP(name.slice(1, -1)) === 6
  return name === 'localhost' || name.endsWith('.localhost') || isIPv4(name)
}
