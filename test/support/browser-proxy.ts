/** A proxy between browsers and a real service that does to requests what networks and gateways do. */

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { bodyOf, LoopbackServer } from './browser-pages.ts'

/** Without more than a path and `delayMs`, a request only takes longer. */
export interface Fault {
  /** Path without query, or what it must match. */
  readonly path: string | RegExp
  /** How many requests it is done to, preflights not counted; 1 by default. */
  readonly times?: number
  /** Comes first. */
  readonly delayMs?: number
  /** Instead of the service's. */
  readonly answer?: FaultyAnswer
  /** The browser gets no answer. */
  readonly isDropped?: boolean
  /** The service gets the request, the browser no answer. */
  readonly isAnswerLost?: boolean
  /** What the service takes the browser's address for, this time. */
  readonly clientAddress?: string
}

export interface FaultyAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** JSON, unless it is text. */
  readonly body?: string | object
  /** As from a proxy that knows nothing of CORS: scripts cannot read the answer, not even its status. */
  readonly isWithoutCors?: boolean
}

/** As the service sends with every answer to browsers, errors included. */
const CORS = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Retry-After' }

/** A service trusts it that is started with POWGATE_TRUSTED_PROXIES=127.0.0.0/8. */
export class FaultyProxy extends LoopbackServer {
  /** What the service takes the browser's address for. */
  clientAddress = '198.51.100.1'
  /** While set, no request gets an answer, preflights included. */
  isOffline = false
  /** Each request that came, preflights too, such as `GET /challenge`. */
  readonly requests: string[] = []
  readonly #times: { readonly asked: string; readonly atMs: number }[] = []
  readonly #servicePort: number
  readonly #faults: { readonly fault: Fault; left: number }[] = []
  /** A connection that is kept alive would fail when the service is restarted. */
  readonly #agent = new Agent({ keepAlive: false })

  private constructor(servicePort: number) {
    const server = createServer((message, response) => void this.#take(message, response))
    super(server)
    this.#servicePort = servicePort
    // Chromium tries again by itself where a kept connection ends without an answer: then no fault would show.
    server.maxRequestsPerSocket = 1
  }

  static start(servicePort: number): Promise<FaultyProxy> {
    return new FaultyProxy(servicePort).listen()
  }

  /** Does this to the next requests of a path. Of several faults of one path, the earlier comes first. */
  fail(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 })
  }

  /** Forgets the faults that are left. */
  recover(): void {
    this.#faults.length = 0
    this.isOffline = false
  }

  /** How often something was asked for, such as `GET /challenge`. */
  count(request: string): number {
    return this.requests.filter(asked => asked === request).length
  }

  /** When those were asked for that `requests` still has, by `performance.now`. */
  timesOf(request: string): number[] {
    const times = this.#times.filter(({ asked }) => asked === request).map(({ atMs }) => atMs)
    return times.slice(times.length - this.count(request))
  }

  async #take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = message.url!.split('?', 1)[0]!
    const asked = `${message.method} ${path}`
    this.requests.push(asked)
    this.#times.push({ asked, atMs: performance.now() })
    const fault = message.method === 'OPTIONS' ? undefined : this.#nextFault(path)
    const body = await bodyOf(message)
    if (fault?.delayMs !== undefined) await new Promise(resolve => setTimeout(resolve, fault.delayMs))
    if (this.isOffline || fault?.isDropped) drop(response)
    else if (fault?.answer !== undefined) answer(response, fault.answer)
    else this.#forward(message, body, response, fault)
  }

  #nextFault(path: string): Fault | undefined {
    const next = this.#faults.find(({ fault, left }) => {
      return left > 0 && (typeof fault.path === 'string' ? fault.path === path : fault.path.test(path))
    })
    if (next !== undefined) next.left--
    return next?.fault
  }

  #forward(message: IncomingMessage, body: Buffer, response: ServerResponse, fault?: Fault): void {
    const address = fault?.clientAddress ?? this.clientAddress
    const onward = request(
      {
        host: '127.0.0.1',
        port: this.#servicePort,
        method: message.method!,
        path: message.url!,
        headers: { ...message.headers, 'x-forwarded-for': address },
        agent: this.#agent,
      },
      incoming => {
        if (fault?.isAnswerLost) {
          incoming.resume().on('end', () => drop(response))
          return
        }
        const { connection: _, 'keep-alive': __, ...headers } = incoming.headers
        response.writeHead(incoming.statusCode!, headers)
        incoming.pipe(response)
      },
    )
    onward.on('error', () => answer(response, { status: 502, isWithoutCors: true }))
    onward.end(body)
  }
}

function drop(response: ServerResponse): void {
  response.destroy()
}

function answer(response: ServerResponse, { status, headers, body = '', isWithoutCors }: FaultyAnswer): void {
  const isText = typeof body === 'string'
  const type = isText ? 'text/plain' : 'application/json'
  response.writeHead(status, { 'Content-Type': type, ...(isWithoutCors ? {} : CORS), ...headers })
  response.end(isText ? body : JSON.stringify(body))
}
