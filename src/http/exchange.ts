/**
 * One request and its answer. Only this file answers through uWebSockets.js objects (request-headers.ts only reads), because
 * their rules are strict. A request may be read only inside its handler, and body chunks only until their callback returns.
 * A response must not be used after its client has gone. A handler that neither answers nor sets an abort handler ends the
 * process.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type Address, addressFromBytes } from '../domain/address.ts'
import { forwardedAddress } from '../domain/client-address.ts'
import { BodyBytes } from './body.ts'
import type { ExchangeHost, ExchangeRules } from './exchange-host.ts'
import type { ContentReply, Reply } from './replies.ts'
import { type Framing, hasForwardedFor, readHead, readProxyHead } from './request-headers.ts'

const STATUS_LINES: Readonly<Record<number, string>> = {
  200: '200 OK',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  429: '429 Too Many Requests',
  503: '503 Service Unavailable',
}

/**
 * Puts several headers into the value of one. uWebSockets.js writes a value as it is; four calls of `writeHeader` and a
 * status line would take 0.25 us more. Only constants may contain this: a client's line break would inject a header.
 */
const HEADER_BREAK = '\r\n'
const CORS_BLOCK = `*${HEADER_BREAK}Access-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, X-Powgate-Signals`
const JSON_BLOCK = `application/json${HEADER_BREAK}Cache-Control: no-store`
const CORS_JSON_BLOCK = `${JSON_BLOCK}${HEADER_BREAK}Access-Control-Allow-Origin: ${CORS_BLOCK}`

/** The head of an answer that pages may read, with one more header: each text that is passed on takes about 0.4 us. */
export function withHeader(name: string, value: string): string {
  return `${CORS_JSON_BLOCK}${HEADER_BREAK}${name}: ${value}`
}

/** Accepted request ids. Other characters could forge a log line or a header. */
const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/

/**
 * The rest of a body that is too large is received and discarded, up to this many bytes, before the refusal. If the
 * connection were cut while a proxy sends, the proxy would answer its client with 502. Beyond this number the connection is
 * closed; nginx itself refuses larger bodies.
 */
const EXCESS_BYTES_MAX = 2 ** 20

/**
 * A connection is closed if the request's body has not arrived in this time. uWebSockets.js ends a connection that sends
 * nothing for 8 to 12 s, or less than 16 KB/s of a body. A large body at just that rate would take much longer.
 */
const BODY_MS_MAX = 10_000
/** A connection is closed if a body has more chunks. Each takes 1 us, and 80,000 of one byte can arrive in one read. */
const CHUNKS_MAX = 10_000
/** A connection is closed if, after this time, a part of the answer still does not fit into the system's buffers. */
const TAKE_MS_MAX = 15_000

/**
 * The share of answers without a body that end their connection. uWebSockets.js keeps each such answer until the client has
 * received the answer, but reports nothing. The share bounds the memory for one connection: 64 answers on average, 20 KB.
 */
const BARE_LAST_SHARE = 1 / 64

/**
 * Whether `tryEnd` with an empty part of a body ends the answer, but not the connection. Newer builds of uWebSockets.js do
 * so; only such builds exist for Node.js 24.
 */
const ENDS_WITH_HEAD = process.versions.modules === '137'

/** Immediate answers in one event-loop turn, over all connections. A client that pipelines fewer requests is not delayed. */
const ANSWERS_AT_ONCE_MAX = 64
let answersAtOnce = 0

/** The exchange that is being answered, and its reply, for the callback of `cork`, which is called before `cork` returns. */
let corked: Exchange | undefined
let corkedReply: Reply | undefined

export class Exchange {
  /** The X-Site-Key header, or the site of the API key once that is known; empty without either. */
  siteKey: string
  /** Set by the endpoint for logs, as soon as the value is known; empty until then. */
  nonce = ''
  apiKeyId = ''
  /** Header values, empty if absent. Only headers that the path needs are read. */
  readonly origin: string
  /** The Sec-Fetch-Site header (Fetch Metadata). */
  readonly #fetchSite: string
  readonly contentType: string
  readonly authorization: string
  /** undefined if the client left before its address was read. */
  readonly address: Address | undefined
  readonly startedAtMs = performance.now()
  /** From a trusted proxy, or made at the first use of `requestId`; empty until then. */
  #requestId = ''
  readonly #host: ExchangeHost
  readonly #rules: ExchangeRules
  readonly #response: HttpResponse
  readonly #isHead: boolean
  readonly #framing: Framing
  /** Whether the answer is the last of the connection. */
  #closes = false
  #isOver = false
  #isBodyPending = false
  /** Whether the client has asked to end the connection with the answer, which uWebSockets.js then does. */
  readonly #isClientsLast: boolean
  #isInCallback = false
  /** Whether the peer is the proxy's only because no client is named: the headers may be a client's. */
  #isNameless = false
  /** Whether the answer's head is written, and the connection is still to be ended. */
  #isUnended = false

  constructor(response: HttpResponse, request: HttpRequest, host: ExchangeHost, rules: ExchangeRules) {
    this.#host = host
    this.#response = response
    this.#rules = rules
    const { isCrossOrigin } = rules
    const peer = host.isEveryPeerTrusted ? undefined : this.#peer()
    const isProxy = host.isEveryPeerTrusted || (peer !== undefined && host.trustedProxies.has(peer))
    const isTrusted = isProxy && !this.#isNameless
    const head = isTrusted ? readProxyHead(request) : readHead(request, isCrossOrigin)
    if (!isProxy && host.forwardingIgnored !== undefined && peer !== undefined && hasForwardedFor(request))
      host.forwardingIgnored(peer)
    this.siteKey = (isCrossOrigin && head.siteKey) || ''
    this.origin = head.origin ?? ''
    this.#fetchSite = head.fetchSite ?? ''
    this.authorization = (!isCrossOrigin && head.authorization) || ''
    this.contentType = head.contentType ?? ''
    // uWebSockets.js takes any value of five characters for `close`.
    this.#isClientsLast = head.connection?.length === 5
    if (REQUEST_ID.test(head.requestId)) this.#requestId = head.requestId
    const method = request.getMethod()
    this.#isHead = method === 'head'
    this.#framing = head.framing === 'chunks' && method !== 'post' ? 'ambiguous' : head.framing
    this.address = isTrusted
      ? (forwardedAddress(head.forwardedFor, host.trustedProxies) ?? peer ?? this.#peer())
      : peer
    host.underWay++
    response.onAborted(() => {
      if (!this.#isOver) host.observer.aborted(rules.part)
      this.#end()
    })
  }

  /** Address at the other end of the connection. Takes 2 us: a system call, an ArrayBuffer and a Buffer. */
  #peer(): Address | undefined {
    const { relay } = this.#host
    const peer = addressFromBytes(Buffer.from(this.#response.getRemoteAddress()))
    if (peer === undefined || relay === undefined) return peer
    this.#isNameless = relay.isNameless(peer)
    return relay.clientOf(peer)
  }

  /** Whether a page of the service's own origin sent this request. Its browser leaves Origin out of a GET. */
  get isSameOrigin(): boolean {
    return this.origin === '' && this.#fetchSite === 'same-origin'
  }

  /** Whether a page sent this request. No backend sends Origin or Sec-Fetch-Site; `none` is a person's own navigation. */
  get isOfPage(): boolean {
    return this.origin !== '' || (this.#fetchSite !== '' && this.#fetchSite !== 'none')
  }

  /** Identifies this request in the log, and in its answer if the id was used before. */
  get requestId(): string {
    if (this.#requestId === '') this.#requestId = this.#host.newRequestId()
    return this.#requestId
  }

  /** Drops a request whose client left before its address was read. */
  drop(): void {
    if (!this.#isOver) this.#response.close() // its abort handler runs
  }

  /** Whether the request was answered or its client has gone. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Reads the body and calls back once, unless the client goes away. The callback gets undefined if there are more bytes than
   * `bytesMax`; otherwise the bytes, which are valid only until the callback returns.
   */
  readBody(bytesMax: number, done: (body: Buffer | undefined) => void): void {
    const body = new BodyBytes(bytesMax)
    let excessBytes = 0
    let chunks = 0
    let isDone = false
    this.#isBodyPending = true
    this.#response.onData((chunk, isLast) => {
      if (this.#isOver) return
      const isLate = !isLast && performance.now() - this.startedAtMs > BODY_MS_MAX
      if (++chunks > CHUNKS_MAX || (isLate && !isDone)) {
        this.#response.close() // its abort handler runs
        return
      }
      if (isDone) return
      if (!isLast) {
        if (excessBytes === 0 && body.add(chunk)) return
        excessBytes += chunk.byteLength
        if (excessBytes <= EXCESS_BYTES_MAX) return
      }
      isDone = true
      this.#isBodyPending = !isLast
      this.#runAtOnce(done, excessBytes > 0 ? undefined : body.with(chunk))
    })
  }

  /** Runs the first step, unless the end of the body is ambiguous: another request may then be hidden in the body. */
  begin(step: (exchange: Exchange) => void): void {
    if (this.#framing === 'ambiguous') this.answer(this.#rules.ambiguousReply)
    else this.#runAtOnce(step, this)
  }

  /** Runs a step within a callback of uWebSockets.js. */
  #runAtOnce<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    this.#isInCallback = true
    this.run(step, argument)
    this.#isInCallback = false
  }

  /** Runs a step of the request. An exception becomes an answer, and never ends the process. */
  run<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    try {
      step(argument)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Makes a callback that does the same, and does nothing once the exchange is over. */
  guard<Argument>(step: (argument: Argument) => void): (argument: Argument) => void {
    return argument => {
      if (!this.#isOver) this.run(step, argument)
    }
  }

  /** Answers the request, once. Does nothing if the client has gone. */
  answer(reply: Reply): void {
    if (this.#isOver) return
    if (this.#isLast(this.#isHead)) return this.#answerLast(() => this.answer(reply))
    if (this.#mustWait()) return void setImmediate(() => this.answer(reply))
    // Before the answer, which bears the request's id if a line of the log does.
    this.#host.observer.answered(this, this.#rules.part, reply.status, reply.ending)
    this.#end()
    corked = this
    corkedReply = reply
    this.#response.cork(Exchange.#writeCorked)
  }

  /** Answers with a body other than JSON. `answer` is separate, to be faster for the endpoints. */
  answerContent(reply: ContentReply): void {
    if (this.#isOver) return
    const isBare = reply.status === 304 || this.#isHead
    if (this.#isLast(isBare)) return this.#answerLast(() => this.answerContent(reply))
    if (this.#mustWait()) return void setImmediate(() => this.answerContent(reply))
    this.#host.observer.answered(this, this.#rules.part, reply.status, undefined)
    this.#end()
    this.#response.cork(() => this.#writeContent(reply))
  }

  /**
   * Whether the connection must end with the answer, and `#answerLast` has not prepared this yet.
   *
   * @param isBare whether the answer has no body
   */
  #isLast(isBare: boolean): boolean {
    if (this.#closes) return false
    // Once the client has ended its side too, uWebSockets.js ends the connection: an answer after the callback is too late.
    if (this.#isClientsLast && !this.#isInCallback) return true
    // The rest of a much too large body is not to be received.
    if (this.#isBodyPending || this.#framing !== 'length') return true
    return isBare && (this.#host.isDraining || (!this.#isClientsLast && Math.random() < BARE_LAST_SHARE))
  }

  /**
   * Bytes after such a request must not be read as another request. uWebSockets.js takes trailers, and other unknown parts of
   * chunks, for the next request. `Connection: close` is not enough: requests in the same TCP segment are still served. But
   * while an answer is pending, uWebSockets.js ends a connection that sends more. So the answer is delayed.
   *
   * The delay is a timer, not setImmediate (nor the setImmediate in which the embedded store answers). uWebSockets.js frees
   * closed connections in the event loop's check phase, before setImmediate callbacks run. Of a connection that is closed
   * after that, and released by libuv before the next check phase, 464 bytes leak (test/http/closed-connections.test.ts).
   */
  #answerLast(answer: () => void): void {
    this.#closes = true
    setTimeout(() => {
      answer()
      if (this.#isUnended) this.#response.close()
    }, 0)
  }

  /**
   * Whether the answer must wait for the end of the event-loop turn, because this turn has already given many. uWebSockets.js
   * reads up to 512 KiB at once. That can be 10,000 pipelined requests; their immediate answers would delay all other clients
   * by a second. While an answer is pending, uWebSockets.js closes a connection that sends another request. Connections with
   * `Connection: close` end after 16 KiB of answers anyway.
   */
  #mustWait(): boolean {
    if (!this.#isInCallback || this.#isClientsLast) return false
    if (answersAtOnce === 0) setImmediate(() => (answersAtOnce = 0))
    return ++answersAtOnce > ANSWERS_AT_ONCE_MAX
  }

  #writeContent({ status, body, headers }: ContentReply): void {
    const response = this.#response
    const closes = this.#closes || this.#host.isDraining
    response.writeStatus(STATUS_LINES[status] ?? STATUS_LINES[503]!)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (status === 304 || this.#isHead) this.#endHead(Buffer.byteLength(body), closes)
    else this.#endWith(body, closes)
  }

  /** One function for all answers: a closure for each would take 0.6 us. */
  static #writeCorked(): void {
    corked!.#write(corkedReply!)
  }

  #write({ status, body, headers, head }: Reply): void {
    const response = this.#response
    const { isCrossOrigin } = this.#rules
    const closes = this.#closes || this.#host.isDraining
    if (status !== 200) response.writeStatus(STATUS_LINES[status] ?? STATUS_LINES[503]!)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (this.#requestId !== '') response.writeHeader('X-Request-Id', this.#requestId)
    response.writeHeader('Content-Type', head ?? (isCrossOrigin ? CORS_JSON_BLOCK : JSON_BLOCK))
    if (this.#isHead) this.#endHead(Buffer.byteLength(body), closes)
    else this.#endWith(body, closes)
  }

  /**
   * `end` would buffer everything that the system's buffers do not take, without bound if a client sends requests and reads
   * nothing. With `tryEnd`, an answer that is not yet sent stays pending. uWebSockets.js then closes the connection if the
   * client sends another request, or reads nothing for 8 to 12 s. (`tryEnd` needs a body or a length, so every answer has one.)
   */
  #endWith(body: Buffer | string, closes: boolean): void {
    if (closes) {
      this.#response.end(body, true)
      return
    }
    const [, isEnded] = this.#response.tryEnd(body, 0) // 0: the length is the body's
    if (!isEnded) this.#endLater(typeof body === 'string' ? Buffer.from(body) : body)
  }

  #endLater(body: Buffer): void {
    const response = this.#response
    response.onWritable(offset => {
      if (performance.now() - this.startedAtMs > TAKE_MS_MAX) {
        response.close()
        return true
      }
      return response.tryEnd(body.subarray(offset), body.length)[0]
    })
  }

  /**
   * `endWithoutBody` with a length leaves the answer unfinished: the connection does not end, and no other request may follow.
   * Without a length, `endWithoutBody` cannot end the connection. On Node.js 24 both are otherwise.
   */
  #endHead(bytes: number, closes: boolean): void {
    if (closes) this.#response.writeHeader('Connection', 'close')
    if (closes && ENDS_WITH_HEAD) return void this.#response.endWithoutBody(bytes, true)
    const [, isEnded] = this.#response.tryEnd('', bytes) // writes the Content-Length
    if (isEnded) return
    // To close within the cork would leave the head unsent.
    if (closes) this.#isUnended = true
    else this.#response.endWithoutBody()
  }

  #fail(error: unknown): void {
    this.#host.observer.faulted(this.#rules.part, error, this)
    this.answer(this.#rules.faultReply)
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#host.underWay--
  }
}

/**
 * Makes a function that sheds a request, without reading it or making an exchange. For GET and POST only.
 *
 * @param reply whose headers are constants
 */
export function refuserOf(reply: Reply, host: ExchangeHost, { part, isCrossOrigin }: ExchangeRules) {
  const headers = [['Content-Type', isCrossOrigin ? CORS_JSON_BLOCK : JSON_BLOCK], ...reply.headers]
  // The headers are part of the status line, so that one text is passed on instead of three.
  const head =
    STATUS_LINES[reply.status]! + headers.map(([name, value]) => `${HEADER_BREAK}${name}: ${value}`).join('')
  const body = Buffer.from(reply.body)
  return (response: HttpResponse) => {
    response.writeStatus(head)
    // A client that reads no answers takes no more memory than the system's buffers.
    const [, isTaken] = response.tryEnd(body, body.length)
    if (!isTaken) response.close()
    host.observer.shed(part)
  }
}
