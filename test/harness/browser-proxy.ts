/** A proxy between browsers and a real service, which disturbs requests as networks and gateways do. */

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { LoopbackServer } from './browser-pages.ts'

/** What happens to the requests of a path. With only a path they pass unharmed, with `delayMs` later. */
export interface Fault {
  /** Path without query, or a pattern for it. */
  readonly path: string | RegExp
  /** How many requests are affected, without preflights; 1 by default. */
  readonly times?: number
  /** Applied before everything else. */
  readonly delayMs?: number
  /** The request waits for this promise too. */
  readonly until?: Promise<void>
  readonly answer?: FaultyAnswer
  readonly isDropped?: boolean
  /** The service gets the request, the browser no answer. */
  readonly isAnswerLost?: boolean
  /** The client address that the service sees for this request. */
  readonly clientAddress?: string
}

export interface FaultyAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A string is sent as it is, an object as JSON. */
  readonly body?: string | object
}

/** The headers that the service sends with every answer to browsers, errors included. */
const CORS = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Retry-After' }

/** A service trusts this proxy if it was started with POWGATE_TRUSTED_PROXIES=127.0.0.0/8. */
export class FaultyProxy extends LoopbackServer {
  clientAddress = '198.51.100.1'
  /** Each request received, preflights too, such as `GET /challenge`. Tests and `addWidgetPage` empty it. */
  readonly requests: string[] = []
  /** The same requests with their times, but never emptied. */
  readonly #arrivals: { readonly asked: string; readonly atMs: number }[] = []
  readonly #servicePort: number
  readonly #faults: { readonly fault: Fault; left: number }[] = []
  /** Connections are not kept alive, because they would fail when the service is restarted. */
  readonly #agent = new Agent({ keepAlive: false })

  private constructor(servicePort: number) {
    const server = createServer((message, response) => void this.#take(message, response))
    super(server)
    this.#servicePort = servicePort
    // Chromium repeats a request by itself if a kept connection ends without an answer: then no fault would show.
    server.maxRequestsPerSocket = 1
  }

  static start(servicePort: number): Promise<FaultyProxy> {
    return new FaultyProxy(servicePort).listen()
  }

  /** Applies the fault to the next requests of its path. Of several faults of one path, the earlier one comes first. */
  fail(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 })
  }

  /** Holds the next request of a path until the returned function is called: a test can look at the page meanwhile without haste. */
  hold(path: string, answer?: FaultyAnswer): () => void {
    let release!: () => void
    const until = new Promise<void>(resolve => (release = resolve))
    this.fail({ path, until, ...(answer && { answer }) })
    return release
  }

  recover(): void {
    this.#faults.length = 0
  }

  count(request: string): number {
    return this.requests.filter(asked => asked === request).length
  }

  /** When these requests arrived, by `performance.now`, since a test last emptied `requests`. */
  timesOf(request: string): number[] {
    const times = this.#arrivals.filter(({ asked }) => asked === request).map(({ atMs }) => atMs)
    return times.slice(times.length - this.count(request)) // the others arrived before it was emptied
  }

  async #take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = message.url!.split('?', 1)[0]!
    const asked = `${message.method} ${path}`
    this.requests.push(asked)
    this.#arrivals.push({ asked, atMs: performance.now() })
    const fault = message.method === 'OPTIONS' ? undefined : this.#nextFault(path)
    const body = await buffer(message).catch(() => undefined)
    if (body === undefined) return // the browser broke off
    if (fault?.delayMs !== undefined) await new Promise(resolve => setTimeout(resolve, fault.delayMs))
    await fault?.until
    if (fault?.isDropped) response.destroy()
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
          incoming.resume().on('end', () => response.destroy())
          return
        }
        const { connection: _, 'keep-alive': __, ...headers } = incoming.headers
        response.writeHead(incoming.statusCode!, headers)
        pipeline(incoming, response, () => {}) // if the service ends in between, so does the answer
      },
    )
    // Like other proxies' own errors this has no CORS headers: scripts cannot read even its status.
    onward.on('error', () => response.writeHead(502, { 'Content-Type': 'text/plain' }).end())
    onward.end(body)
  }
}

function answer(response: ServerResponse, { status, headers, body = '' }: FaultyAnswer): void {
  const isText = typeof body === 'string'
  const type = isText ? 'text/plain' : 'application/json'
  response.writeHead(status, { 'Content-Type': type, ...CORS, ...headers })
  response.end(isText ? body : JSON.stringify(body))
}
