/**
 * One request and its answer. Only this file answers through uWebSockets.js, because its rules are strict:
 *
 * - A request is readable only inside its handler, a body chunk until its callback returns.
 * - A response must not be touched after its client left.
 * - A handler that neither answers nor sets an abort handler ends the process.
 * - A client that sends another request before it has taken the whole answer loses its connection.
 *
 *   answer -> must the connection end? -> timer     -> answerNow, close
 *          -> is this tick full?       -> next tick -> answer
 *          -> neither                               -> answerNow
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type Address, addressFromBytes } from '../addresses/address.ts'
import { forwardedAddress } from '../addresses/forwarded-for.ts'
import type { RefusalSubject } from '../domain/ending.ts'
import { isForeign } from '../domain/origin.ts'
import type { Refusal } from '../domain/outcome.ts'
import { DEMO_KEY_PREFIX } from '../domain/site.ts'
import { BodyBytes } from './body.ts'
import type { ExchangeHost, ExchangeRules } from './exchange-host.ts'
import { CORS_JSON_TYPE, HEADER_BREAK, JSON_TYPE, type Reply, refusalReply, STATUS_LINES } from './replies.ts'
import { type Framing, readHead, readProxyHead } from './request-headers.ts'

/** Other characters could forge a log line or a header. */
const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/

/**
 * An oversized body is read up to this size before it is refused: a proxy that is cut off while it sends answers 502. nginx
 * itself refuses larger bodies.
 */
const EXCESS_BYTES_MAX = 2 ** 20

/** A body must arrive within this time. uWebSockets.js allows any time at 16 KB/s. */
const BODY_MS_MAX = 10_000
/** The number of chunks in one body. Each takes 1 us, and one read can bring 80,000 chunks of one byte. */
const CHUNKS_MAX = 10_000
/** The client must have taken the whole answer this long after its request had come. */
const TAKE_MS_MAX = 15_000

/**
 * This share of bare answers (without a body) ends the connection, so that uWebSockets.js buffers 64 of them on average, or 20 KB,
 * for a client that reads nothing.
 */
const BARE_LAST_SHARE = 1 / 64

/** In a crowd longer bodies end no connection: `end` would hold it for a client that reads slowly, and `tryEnd` cannot close it. */
const CROWD_BYTES_MAX = 16_384

/** Builds of uWebSockets.js for Node.js 24 end a connection with `endWithoutBody`, and not with `tryEnd`. */
const ENDS_WITHOUT_BODY = process.versions.modules === '137'

/**
 * Reading pauses while a request waits. Otherwise, once its client ends its sending side, uWebSockets.js closes the connection,
 * and a token is spent without an answer. A pause takes 3 us, so only 16 requests in 10 ms get one.
 */
const [PAUSES_MAX, PAUSES_MS] = [16, 10]
let pauses = 0
let pausesSinceMs = 0

/**
 * The number of answers in one tick of the event loop. A further answer waits, and a client that pipelines thereby loses its
 * connection. One read can bring 10,000 requests, and answering them all would delay everyone else by a second.
 */
const ANSWERS_AT_ONCE_MAX = 64
let answersAtOnce = 0

/** The address of a client that left before it was read. */
const GONE: Address = ''

/** Arguments of `#writeCorked`, which runs before `cork` returns. A closure for each answer would take 0.6 us. */
let corked: Exchange | undefined
let corkedReply: Reply | undefined

export class Exchange {
  // Values of headers: empty if the request lacks one, or its route needs none.
  readonly siteKey: string
  readonly origin: string
  readonly #fetchSite: string
  readonly contentType: string
  readonly authorization: string
  /** What follows the `?` of the address; empty on cross-origin routes, which have no use for it. */
  readonly query: string
  /**
   * True if a page of another service uses a site of the demo, whose keys all services share. For other sites it is always false.
   * Browsers send Sec-Fetch-Site only with HTTPS or to a local name, so without it Origin and Host decide.
   */
  readonly isFromForeignPage: boolean
  readonly address: Address
  readonly #host: ExchangeHost
  readonly rules: ExchangeRules
  readonly #response: HttpResponse
  readonly #isHead: boolean
  readonly #framing: Framing
  /** The client sent `Connection: close`, so uWebSockets.js ends the connection. */
  readonly #isCloseAsked: boolean
  /** `100 Continue` was sent. uWebSockets.js writes only one status line, so that of the answer needs another way: `#writeStatus`. */
  readonly #hasContinued: boolean
  // The fields below change.
  /** When the request's head had come; from the end of `readBody` on, when its body had. */
  receivedAtMs = performance.now()
  #requestId = ''
  #isInCallback = false
  #isBodyPending = false
  #isPaused = false
  /** The answer ends the connection, and waits for the timer of `#answerLast`. */
  #isLastAnswer = false
  #isOver = false
  /** Closing the connection must wait for the end of the cork: inside it, the answer would stay unsent. */
  #closesAfterCork = false

  constructor(response: HttpResponse, request: HttpRequest, host: ExchangeHost, rules: ExchangeRules) {
    // The request is readable only now. Its peer tells whether a trusted proxy sent it, which decides what headers are read; the headers
    // tell the client's address. The last lines put the request in flight, until its answer or its abort.
    this.#host = host
    this.#response = response
    this.rules = rules
    const { isCrossOrigin } = rules
    const { isEveryPeerTrusted, relay } = host
    // Behind the relay, the socket's peer is an alias: `clientOf` tells who connected to the relay (proxy-relay.ts).
    const socketPeer = isEveryPeerTrusted ? undefined : peerOf(response)
    const relayed = socketPeer === undefined ? undefined : relay?.clientOf(socketPeer)
    const peer = relay === undefined ? socketPeer : relayed?.address
    const isProxy = isEveryPeerTrusted || (peer !== undefined && host.trustedProxies.has(peer))
    // A trusted proxy whose PROXY header names no client passes on a client's own headers: they are ignored, without a report.
    const isTrusted = isProxy && relayed?.isNameless !== true
    const head = isTrusted ? readProxyHead(request) : readHead(request, isCrossOrigin)
    if (!isProxy && peer !== undefined && request.getHeader('x-forwarded-for') !== '')
      host.onForwardingIgnored(peer)
    this.address = (isTrusted ? this.#clientOf(head.forwardedFor, peer) : peer) ?? GONE
    this.siteKey = (isCrossOrigin && head.siteKey) || ''
    this.origin = head.origin ?? ''
    this.#fetchSite = head.fetchSite ?? ''
    this.isFromForeignPage =
      this.siteKey.startsWith(DEMO_KEY_PREFIX) &&
      this.#fetchSite !== 'same-origin' &&
      isForeign(this.origin, request.getHeader('host'))
    this.authorization = (!isCrossOrigin && head.authorization) || ''
    this.contentType = head.contentType ?? ''
    this.query = isCrossOrigin ? '' : (request.getQuery() ?? '')
    // uWebSockets.js sends 100 Continue by itself, but only if the header is in lower case.
    this.#hasContinued = head.expect !== '100-continue' && /100-continue/i.test(head.expect ?? '')
    if (this.#hasContinued) response.writeStatus(`100 Continue${HEADER_BREAK}`)
    this.#isCloseAsked = isClose(head.connection)
    if (REQUEST_ID.test(head.requestId)) this.#requestId = head.requestId
    const method = request.getMethod()
    this.#isHead = method === 'head'
    // Only a POST may have chunks: with another method they may hide a request from the proxy before this server.
    this.#framing = head.framing === 'chunks' && method !== 'post' ? 'ambiguous' : head.framing
    host.inFlight++
    response.onAborted(() => {
      if (!this.#isOver) host.observer.aborted(rules.endpoint)
      this.#end()
    })
  }

  /** @param proxy the peer, if it is known already */
  #clientOf(forwardedFor: string, proxy: Address | undefined): Address | undefined {
    const client = forwardedAddress(forwardedFor, this.#host.trustedProxies)
    if (client !== undefined) return client
    const sender = proxy ?? peerOf(this.#response)
    if (forwardedFor !== '' && sender !== undefined) this.#host.onForwardingMalformed(sender)
    return sender
  }

  /** The page has the service's own origin, so its browser leaves Origin out of a GET. */
  get isSameOrigin(): boolean {
    return this.origin === '' && this.#fetchSite === 'same-origin'
  }

  /** Backends send neither header; `none` is a person's own navigation. */
  get isFromPage(): boolean {
    return this.origin !== '' || (this.#fetchSite !== '' && this.#fetchSite !== 'none')
  }

  /** The id that a trusted proxy gave, or one made at the first use. An answer carries it only if there is one by then. */
  get requestId(): string {
    if (this.#requestId === '') this.#requestId = this.#host.newRequestId()
    return this.#requestId
  }

  /** @param done called once unless the client leaves; undefined above `bytesMax`, else bytes valid until it returns */
  readBody(bytesMax: number, done: (body: Buffer | undefined) => void): void {
    const body = new BodyBytes(bytesMax)
    let excessBytes = 0
    let chunks = 0
    let isDone = false
    this.#isBodyPending = true
    this.#response.onData((chunk, isLast) => {
      if (this.#isOver) return
      if (++chunks > CHUNKS_MAX) return void this.#response.close()
      if (isDone) return // the rest of an oversized body
      if (!isLast) {
        if (performance.now() - this.receivedAtMs > BODY_MS_MAX) return void this.#response.close()
        if (excessBytes === 0 && body.add(chunk)) return
        excessBytes += chunk.byteLength
        if (excessBytes <= EXCESS_BYTES_MAX) return
      }
      // The body is complete, or far too large: then more of it comes, and the answer ends the connection.
      isDone = true
      this.receivedAtMs = performance.now() // a client that sends slowly must not make the service look slow
      this.#isBodyPending = !isLast
      this.#runInCallback(done, excessBytes > 0 ? undefined : body.finish(chunk))
    })
  }

  /** Runs the first step, unless the client has left, or the body's end is ambiguous: it could hide another request. */
  begin(step: (exchange: Exchange) => void): void {
    if (this.address === GONE)
      this.#response.close() // calls the abort handler
    else if (this.#framing === 'ambiguous') this.refuse({ reason: 'length-ambiguous' })
    else this.#runInCallback(step, this)
  }

  #runInCallback<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    this.#isInCallback = true
    this.#run(step, argument)
    this.#isInCallback = false
    if (!this.#isOver && !this.#isBodyPending && !this.#isPaused) this.#pause()
  }

  /** `receivedAtMs` is the time of this callback, too, which saves reading the clock. */
  #pause(): void {
    if (this.receivedAtMs - pausesSinceMs > PAUSES_MS) {
      pausesSinceMs = this.receivedAtMs
      pauses = 0
    }
    if (++pauses > PAUSES_MAX) return
    this.#isPaused = true
    this.#response.pause()
  }

  /** An exception becomes an answer and never ends the process. */
  #run<Argument, Result>(step: (argument: Argument) => Result, argument: Argument): Result | undefined {
    try {
      return step(argument)
    } catch (error) {
      this.#host.observer.faulted(this, this.rules.endpoint, error)
      this.refuse({ reason: 'internal' })
      return undefined
    }
  }

  /** Returns the step as a callback, which does nothing and returns undefined once the exchange is over. */
  guard<Value, Result = unknown>(step: (value: Value) => Result): (value: Value) => Result | undefined {
    return value => (this.#isOver ? undefined : this.#run(step, value))
  }

  refuse(refusal: Refusal, subject?: RefusalSubject): void {
    this.answer(refusalReply(this.rules.style, refusal, subject))
  }

  answer(reply: Reply): void {
    if (this.#isOver) return
    if (!this.#isLastAnswer && this.#mustEndConnection(reply)) this.#answerLast(reply)
    // In the next tick `answer` decides anew, because the service may drain by then. Outside a callback no tick is full.
    else if (this.#isTickFull()) setImmediate(() => this.answer(reply))
    else this.#answerNow(reply)
  }

  #answerNow(reply: Reply): void {
    // The observer comes first: if it logs a line, that makes the request id, which the answer then carries.
    this.#host.observer.answered(this, this.rules.endpoint, reply.status, reply.ending)
    this.#end()
    corked = this
    corkedReply = reply
    this.#response.cork(Exchange.#writeCorked)
  }

  #mustEndConnection({ status, body }: Reply): boolean {
    const { isDraining, isCrowded } = this.#host
    // After an answer in its callback, uWebSockets.js itself ends the connection.
    if ((this.#isCloseAsked || endsInCrowd(this.#host, body)) && !this.#isInCallback) return true
    // The rest of an oversized body, or trailers after chunks, could be taken for a request.
    if (this.#isBodyPending || this.#framing !== 'length') return true
    const isBare = status === 304 || this.#isHead
    return isBare && (isDraining || isCrowded || (!this.#isCloseAsked && Math.random() < BARE_LAST_SHARE))
  }

  /**
   * Delays the answer, because `Connection: close` is not enough: uWebSockets.js serves what follows in the same TCP segment, but
   * ends a connection that sends more before it is answered. The delay must be a timer. uWebSockets.js frees closed connections
   * just before setImmediate callbacks, so closing one in such a callback can leak 464 bytes (test/http/closed-connections.test.ts).
   */
  #answerLast(reply: Reply): void {
    this.#isLastAnswer = true
    setTimeout(() => {
      if (!this.#isOver) this.#answerNow(reply)
      if (this.#closesAfterCork) this.#response.close()
    }, 0)
  }

  /**
   * Counts the answers that need no store, which are all made within the callback of one read. Those with `Connection: close` need no
   * count: uWebSockets.js ends their connection after 16 KiB of answers.
   */
  #isTickFull(): boolean {
    if (!this.#isInCallback || this.#isCloseAsked) return false
    if (answersAtOnce === 0) setImmediate(() => (answersAtOnce = 0))
    return ++answersAtOnce > ANSWERS_AT_ONCE_MAX
  }

  static #writeCorked(): void {
    corked!.#write(corkedReply!)
  }

  #write({ status, body, headers, hasOwnType, jsonType }: Reply): void {
    const response = this.#response
    const closes = this.#isLastAnswer || this.#host.isDraining || endsInCrowd(this.#host, body)
    if (this.#isPaused) response.resume()
    this.#writeStatus(status)
    if (this.#isCloseAsked) response.writeHeader('Connection', 'close')
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (!hasOwnType) {
      if (this.#requestId !== '') response.writeHeader('X-Request-Id', this.#requestId)
      const usualType = this.rules.isCrossOrigin ? CORS_JSON_TYPE : JSON_TYPE
      response.writeHeader('Content-Type', jsonType ?? usualType)
    }
    if (status === 304 || this.#isHead) this.#endWithoutBody(Buffer.byteLength(body), closes)
    else this.#endWithBody(body, closes)
  }

  #writeStatus(status: number): void {
    const line = STATUS_LINES[status]!
    // uWebSockets.js writes a header's name as it is, so the status line can be the start of one, here of a harmless Vary.
    if (this.#hasContinued) this.#response.writeHeader(`HTTP/1.1 ${line}${HEADER_BREAK}Vary`, 'Expect')
    else if (status !== 200) this.#response.writeStatus(line)
  }

  /**
   * `end` would buffer without bound for a client that sends requests and reads nothing. After `tryEnd`, uWebSockets.js ends
   * such a connection at the next request, or after 8 to 12 s. `tryEnd` needs a body, so every answer has one.
   */
  #endWithBody(body: Buffer | string, closes: boolean): void {
    if (closes) return void this.#response.end(body, true)
    const [, isEnded] = this.#response.tryEnd(body, 0) // 0: the length is the body's
    if (!isEnded) this.#endLater(typeof body === 'string' ? Buffer.from(body) : body)
  }

  #endLater(body: Buffer): void {
    const response = this.#response
    response.onWritable(offset => {
      const isLate = performance.now() - this.receivedAtMs > TAKE_MS_MAX
      if (!isLate) return response.tryEnd(body.subarray(offset), body.length)[0]
      response.close()
      return true
    })
  }

  /**
   * Sends the body's length alone, by `tryEnd`: after `endWithoutBody` with a length, most builds can neither end the connection nor
   * use it again.
   */
  #endWithoutBody(bytes: number, closes: boolean): void {
    if (closes && !this.#isCloseAsked) this.#response.writeHeader('Connection', 'close')
    if (closes && ENDS_WITHOUT_BODY) return void this.#response.endWithoutBody(bytes, true)
    const [, isEnded] = this.#response.tryEnd('', bytes)
    if (isEnded) return // there is no body, so the answer is complete
    if (closes)
      this.#closesAfterCork = true // `#answerLast` then closes: `answer` has sent it every bare answer that must
    else this.#response.endWithoutBody()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#host.inFlight--
  }
}

export function peerOf(response: HttpResponse): Address | undefined {
  return addressFromBytes(Buffer.from(response.getRemoteAddress()))
}

const endsInCrowd = ({ isCrowded }: ExchangeHost, body: Reply['body']) =>
  isCrowded && body.length <= CROWD_BYTES_MAX

/** uWebSockets.js takes any Connection header of five characters for `close`, and ends the connection. */
const isClose = (connection: string | undefined) => connection?.length === 5

/**
 * Returns a handler that refuses GET and POST requests unread, without an exchange.
 *
 * @param reply must have constant headers
 */
export function refuserOf(reply: Reply, host: ExchangeHost, { endpoint, isCrossOrigin }: ExchangeRules) {
  const headers = [['Content-Type', isCrossOrigin ? CORS_JSON_TYPE : JSON_TYPE], ...reply.headers] as const
  const line = STATUS_LINES[reply.status]!
  const body = Buffer.from(reply.body)
  return (response: HttpResponse, request: HttpRequest) => {
    response.writeStatus(line)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (isClose(request.getHeader('connection'))) response.writeHeader('Connection', 'close')
    // A client that reads no answers gets only what the system buffers.
    if (host.isCrowded) response.end(body, true)
    else if (!response.tryEnd(body, body.length)[1]) response.close()
    host.observer.shed(endpoint)
  }
}
