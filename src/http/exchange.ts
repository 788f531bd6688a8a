/**
 * One request and its answer. Only this file answers through uWebSockets.js objects (request-headers.ts reads some more), because they
 * are unforgiving: a request may be read only inside its handler, a response never after its client has gone, body chunks only
 * until their callback returns, and a handler that neither answers nor watches for the abort ends the process.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type Address, addressFromBytes } from '../domain/address.ts'
import { forwardedAddress } from '../domain/client-address.ts'
import { BodyBytes } from './body.ts'
import type { ExchangeHost, ExchangeRules } from './exchange-host.ts'
import type { Framing } from './framing.ts'
import type { ContentReply, Reply } from './replies.ts'
import { readHead, readProxyHead } from './request-headers.ts'

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
 * Several headers in the value of one: uWebSockets.js writes it as it is, and four calls of `writeHeader` and a status line
 * take 0.25 us more than this one. Constants only: a line break in anything else would be a header that somebody
 * smuggles in.
 */
const HEADER_BREAK = '\r\n'
const CORS_BLOCK = `*${HEADER_BREAK}Access-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy, X-Request-Id`
const JSON_BLOCK = `application/json${HEADER_BREAK}Cache-Control: no-store`
const CORS_JSON_BLOCK = `${JSON_BLOCK}${HEADER_BREAK}Access-Control-Allow-Origin: ${CORS_BLOCK}`

/** Anything else could forge a line of a log, or a header. */
const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/

/**
 * Of a body that is too large, the rest is taken and thrown away before it is refused: a proxy whose connection is cut while it
 * sends gives its client a 502 instead. Beyond this the connection is closed; nginx itself refuses more than that.
 */
const EXCESS_BYTES_MAX = 2 ** 20

/**
 * A request whose body is not there by then is cut off. uWebSockets.js ends connections that send nothing for 8 to 12 s, or less
 * than 16 KB/s of a body, but not one that sends a large body at just that pace.
 */
const BODY_MS_MAX = 10_000
/** The same for a body in more chunks: each takes 1 us, and 80,000 of one byte can come in one read. */
const CHUNKS_MAX = 10_000
/** The same for a client that takes its answer so slowly, beyond what the system's buffers hold. */
const TAKE_MS_MAX = 15_000

/**
 * The share of answers without a body that end their connection. uWebSockets.js does not tell whether the client takes such an
 * answer, and keeps it until then. This share bounds what is kept for one connection: 64 answers on average, 20 KB.
 */
const BARE_LAST_SHARE = 1 / 64

/** In one turn of the event loop, of all connections. A client that pipelines fewer than that is served as usual. */
const ANSWERS_AT_ONCE_MAX = 64
let answersAtOnce = 0

/** Whose answer is written now: `cork` calls back before it returns. */
let corked: Exchange | undefined
let corkedReply: Reply | undefined

export class Exchange {
  /** The X-Site-Key header, or the site that an API key belongs to once that is known; empty without either. */
  siteKey: string
  /** What the request is about, for logs: told by the endpoint as soon as it knows; empty until then. */
  nonce = ''
  apiKeyId = ''
  /** Header values, empty when absent; what the path does not ask for is not read. */
  readonly origin: string
  /** The Sec-Fetch-Site header (Fetch Metadata). */
  readonly #fetchSite: string
  readonly contentType: string
  readonly authorization: string
  /** undefined if the client was gone before its address could be read. */
  readonly address: Address | undefined
  /** By `performance.now`. */
  readonly startedAtMs = performance.now()
  /** From a trusted proxy; empty until somebody asks for it. */
  #requestId = ''
  readonly #host: ExchangeHost
  readonly #rules: ExchangeRules
  readonly #response: HttpResponse
  readonly #isHead: boolean
  readonly #framing: Framing
  /** Whether its answer is the last of the connection. */
  #closes = false
  #isOver = false
  #isBodyPending = false
  /** Whether uWebSockets.js ends the connection with the answer, as the client has asked it to. */
  readonly #isClientsLast: boolean
  #isInCallback = false
  /** Whether its head is written, and the connection is yet to be ended. */
  #isUnended = false

  constructor(response: HttpResponse, request: HttpRequest, host: ExchangeHost, rules: ExchangeRules) {
    this.#host = host
    this.#response = response
    this.#rules = rules
    const { isCrossOrigin } = rules
    const peer = host.isEveryPeerTrusted ? undefined : this.#peer()
    const isTrusted = host.isEveryPeerTrusted || (peer !== undefined && host.trustedProxies.has(peer))
    const head = isTrusted ? readProxyHead(request) : readHead(request, isCrossOrigin)
    this.siteKey = (isCrossOrigin && head.siteKey) || ''
    this.origin = head.origin ?? ''
    this.#fetchSite = head.fetchSite ?? ''
    this.authorization = (!isCrossOrigin && head.authorization) || ''
    this.contentType = head.contentType ?? ''
    // As uWebSockets.js has it: a value of five characters is `close`.
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

  /** Who is at the other end of the connection. Takes 2 us: a system call, an ArrayBuffer and a Buffer. */
  #peer(): Address | undefined {
    const { relay } = this.#host
    const peer = addressFromBytes(Buffer.from(this.#response.getRemoteAddress()))
    return peer === undefined || relay === undefined ? peer : relay.clientOf(peer)
  }

  /** Whether a page of the service's own origin sent this: its browser leaves Origin out of a GET. */
  get isSameOrigin(): boolean {
    return this.origin === '' && this.#fetchSite === 'same-origin'
  }

  /** Whether a page in a browser sent this to another origin, or by POST: no backend sends these headers. */
  get isOfPage(): boolean {
    if (this.origin !== '') return true
    return this.#fetchSite !== '' && this.#fetchSite !== 'same-origin' && this.#fetchSite !== 'none'
  }

  /** Names this request in the log, and in its answer if anybody asked before that. */
  get requestId(): string {
    if (this.#requestId === '') this.#requestId = this.#host.newRequestId()
    return this.#requestId
  }

  /** For whoever has no address, because it has gone: there is nobody to answer, and no store to blame. */
  drop(): void {
    if (!this.#isOver) this.#response.close() // its abort handler runs
  }

  /** Whether it was answered or the client has gone. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Reads the body. Calls back once, unless the client goes away: with the bytes, which are valid only until the
   * callback returns, or with undefined if they exceed `bytesMax`.
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

  /** Runs the first step, unless another request may be hidden in the body of this one. */
  begin(step: (exchange: Exchange) => void): void {
    if (this.#framing === 'ambiguous') this.answer(this.#rules.ambiguousReply)
    else this.#runAtOnce(step, this)
  }

  /** Within a callback of uWebSockets.js. */
  #runAtOnce<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    this.#isInCallback = true
    this.run(step, argument)
    this.#isInCallback = false
  }

  /** Runs a step of the request: whatever it throws becomes an answer, never the end of the process. */
  run<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    try {
      step(argument)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The same for a callback; it is not called once the exchange is over. */
  guard<Argument>(step: (argument: Argument) => void): (argument: Argument) => void {
    return argument => {
      if (!this.#isOver) this.run(step, argument)
    }
  }

  /** Answers, once; nothing happens if the client has gone. */
  answer(reply: Reply): void {
    if (this.#isOver) return
    if (this.#isLast(this.#isHead)) return this.#answerLast(() => this.answer(reply))
    if (this.#mustWait()) return void setImmediate(() => this.answer(reply))
    this.#end()
    corked = this
    corkedReply = reply
    this.#response.cork(Exchange.#writeCorked)
    this.#host.observer.answered(this.#rules.part, reply.status, reply.outcome ?? 'ok', this.startedAtMs)
  }

  /** The same with a body that is no JSON. Apart from `answer`, which the three endpoints pay for. */
  answerContent(reply: ContentReply): void {
    if (this.#isOver) return
    const isBare = reply.status === 304 || this.#isHead
    if (this.#isLast(isBare)) return this.#answerLast(() => this.answerContent(reply))
    if (this.#mustWait()) return void setImmediate(() => this.answerContent(reply))
    this.#end()
    this.#response.cork(() => this.#writeContent(reply))
    this.#host.observer.answered(this.#rules.part, reply.status, 'ok', this.startedAtMs)
  }

  /**
   * Whether the connection must end with the answer, and that is not prepared yet.
   *
   * @param isBare whether the answer has no body
   */
  #isLast(isBare: boolean): boolean {
    if (this.#closes) return false
    // A client that has ended its side too takes an answer at once, or none: uWebSockets.js then ends the connection.
    if (this.#isClientsLast && !this.#isInCallback) return true
    // Of a body that is much too large, rather than receive the rest of it.
    if (this.#isBodyPending || this.#framing !== 'length') return true
    return isBare && (this.#host.isDraining || Math.random() < BARE_LAST_SHARE)
  }

  /**
   * What follows such a request is never looked at: uWebSockets.js takes trailers, and whatever else it does not know
   * of chunks, for the next request. `Connection: close` is not enough, since it serves what has come in the same
   * segment all the same. But while an answer is pending, it ends a connection that brings more: so none is given at once.
   *
   * By a timer, not by setImmediate (nor from within one, as the embedded store answers): uWebSockets.js lets go of closed
   * connections in the event loop's check phase, before that, and of one that is closed and forgotten by libuv in between it keeps
   * 464 bytes for ever (test/http/closed-connections.test.ts).
   */
  #answerLast(answer: () => void): void {
    this.#closes = true
    setTimeout(() => {
      answer()
      if (this.#isUnended) this.#response.close()
    }, 0)
  }

  /**
   * Whether the answer must wait for the end of the event-loop turn, since many were given at once in this one. uWebSockets.js reads
   * up to 512 KiB at once. That holds 10,000 pipelined requests, and while they were answered nobody else would be served for a
   * second. While an answer is pending, uWebSockets.js closes a connection that brings another request. Requests with
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

  /** One function for all answers, in place of a closure for each: 0.6 us. */
  static #writeCorked(): void {
    corked!.#write(corkedReply!)
  }

  #write({ status, body, headers }: Reply): void {
    const response = this.#response
    const { isCrossOrigin } = this.#rules
    const closes = this.#closes || this.#host.isDraining
    if (status !== 200) response.writeStatus(STATUS_LINES[status] ?? STATUS_LINES[503]!)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (this.#requestId !== '') response.writeHeader('X-Request-Id', this.#requestId)
    response.writeHeader('Content-Type', isCrossOrigin ? CORS_JSON_BLOCK : JSON_BLOCK)
    if (this.#isHead) this.#endHead(Buffer.byteLength(body), closes)
    else this.#endWith(body, closes)
  }

  /**
   * `end` would keep whatever the system does not take, without bound where a client asks on and on and reads nothing. An answer
   * that `tryEnd` has not ended is still pending: uWebSockets.js closes a connection that asks again before that, or whose
   * client takes nothing for 8 to 12 s. (Hence no answer is without a body or a length: it could not be tried.)
   */
  #endWith(body: Buffer | string, closes: boolean): void {
    if (closes) {
      this.#response.end(body, true)
      return
    }
    const [, isEnded] = this.#response.tryEnd(body, 0) // 0: the body is all there is
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
   * A length passed to `endWithoutBody` leaves the answer unfinished: neither is the connection ended, nor may another request
   * follow. And it takes no close without a length.
   */
  #endHead(bytes: number, closes: boolean): void {
    if (closes) this.#response.writeHeader('Connection', 'close')
    const [, isEnded] = this.#response.tryEnd('', bytes) // writes the length
    if (isEnded) return
    // Not within the cork, which would keep what was written.
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
 * Answers requests that are not looked at: nothing of them is read, and no exchange is made. For GET and POST alone.
 *
 * @param reply with headers that are constants
 */
export function refuserOf(reply: Reply, host: ExchangeHost, { part, isCrossOrigin }: ExchangeRules) {
  const headers = [['Content-Type', isCrossOrigin ? CORS_JSON_BLOCK : JSON_BLOCK], ...reply.headers]
  // All of it in the status line: one text to hand over instead of three.
  const head =
    STATUS_LINES[reply.status]! + headers.map(([name, value]) => `${HEADER_BREAK}${name}: ${value}`).join('')
  const body = Buffer.from(reply.body)
  return (response: HttpResponse) => {
    response.writeStatus(head)
    // Whoever asks on and reads nothing gets no more kept for it than the system's buffers hold.
    const [, isTaken] = response.tryEnd(body, body.length)
    if (!isTaken) response.close()
    host.observer.shed(part)
  }
}
