/**
 * One request and its answer. Only this file answers through uWebSockets.js (request-headers.ts reads), because its rules are
 * strict: a request is readable only inside its handler, a body chunk until its callback returns; a response must not be
 * touched after its client left; and a handler that neither answers nor sets an abort handler ends the process.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type Address, addressFromBytes } from '../domain/address.ts'
import { forwardedAddress } from '../domain/client-address.ts'
import { BodyBytes } from './body.ts'
import type { ExchangeHost, ExchangeRules } from './exchange-host.ts'
import type { ContentReply, Reply } from './replies.ts'
import { CORS_JSON_HEAD, HEADER_BREAK, JSON_HEAD, statusLine } from './replies.ts'
import { type Framing, hasForwardedFor, readHead, readProxyHead } from './request-headers.ts'

/** Other characters could forge a log line or a header. */
const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/

/**
 * This much of an oversized body is read and discarded before the refusal: if powgate hung up while a proxy sends, the proxy
 * would answer 502. Beyond it the connection is closed; nginx itself refuses such bodies.
 */
const EXCESS_BYTES_MAX = 2 ** 20

/** For a body to arrive. uWebSockets.js only ends connections that send nothing for 8 to 12 s, or less than 16 KB/s of it. */
const BODY_MS_MAX = 10_000
/** More chunks close the connection. Each takes 1 us, and one read can bring 80,000 of a byte each. */
const CHUNKS_MAX = 10_000
/** After its request: a client that is still taking its answer loses its connection. */
const TAKE_MS_MAX = 15_000

/**
 * This share of answers without a body ends the connection. uWebSockets.js holds such an answer until the client has received
 * it, without reporting that; so a connection holds 64 on average, or 20 KB.
 */
const BARE_LAST_SHARE = 1 / 64

/** Whether `tryEnd` with an empty body part leaves the connection open, as in builds of uWebSockets.js for Node.js 24. */
const ENDS_WITH_HEAD = process.versions.modules === '137'

/**
 * Nothing is read from a connection that waits for its answer: uWebSockets.js would close it if the client ended its sending
 * side, and a token would be spent without an answer. Costs 3 us, so only for so many requests in so many ms.
 */
const [PAUSES_MAX, PAUSES_MS] = [16, 10]
let pauses = 0
let pausesSinceMs = 0

/** Immediate answers per event-loop turn, over all connections; more wait for the next turn. */
const ANSWERS_AT_ONCE_MAX = 64
let answersAtOnce = 0

/** For the callback of `cork`, which runs before `cork` returns. */
let corked: Exchange | undefined
let corkedReply: Reply | undefined

export class Exchange {
  /** From X-Site-Key, or the API key's site once known; otherwise empty. */
  siteKey: string
  /** For logs; the endpoint sets them once known. */
  nonce = ''
  apiKeyId = ''
  /** Headers, empty if absent or if the path does not need them. */
  readonly origin: string
  /** Sec-Fetch-Site. */
  readonly #fetchSite: string
  readonly contentType: string
  readonly authorization: string
  /** undefined if the client left too early. */
  readonly address: Address | undefined
  readonly startedAtMs = performance.now()
  /** From a trusted proxy, or made when `requestId` is first used. */
  #requestId = ''
  readonly #host: ExchangeHost
  readonly #rules: ExchangeRules
  readonly #response: HttpResponse
  readonly #isHead: boolean
  readonly #framing: Framing
  /** Whether the answer ends the connection. */
  #closes = false
  #isOver = false
  #isBodyPending = false
  /** The client asked for `Connection: close`: uWebSockets.js closes, without telling those that keep connections. */
  readonly #isClientsLast: boolean
  #isInCallback = false
  /** The proxy names no client, so the headers may be a client's. */
  #isNameless = false
  /** `100 Continue`, which the client's body waits for, has taken the one status line that uWebSockets.js writes. */
  readonly #hasContinued: boolean
  /** The answer's head is written, but the connection must still be closed. */
  #isUnended = false
  #isPaused = false

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
    // uWebSockets.js sends it by itself, but only if asked in lower case.
    this.#hasContinued = head.expect !== '100-continue' && /100-continue/i.test(head.expect ?? '')
    if (this.#hasContinued) response.writeStatus(`100 Continue${HEADER_BREAK}`)
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

  /** Takes 2 us. Also sets `#isNameless`, which the constructor reads next. */
  #peer(): Address | undefined {
    const { relay } = this.#host
    const peer = addressFromBytes(Buffer.from(this.#response.getRemoteAddress()))
    if (peer === undefined || relay === undefined) return peer
    this.#isNameless = relay.isNameless(peer)
    return relay.clientOf(peer)
  }

  /** A page of the service's own origin; its browser leaves Origin out of a GET. */
  get isSameOrigin(): boolean {
    return this.origin === '' && this.#fetchSite === 'same-origin'
  }

  /** Backends send neither Origin nor Sec-Fetch-Site; `none` is a person's own navigation. */
  get isOfPage(): boolean {
    return this.origin !== '' || (this.#fetchSite !== '' && this.#fetchSite !== 'none')
  }

  /** For the log; the answer has it too if it was used before. */
  get requestId(): string {
    if (this.#requestId === '') this.#requestId = this.#host.newRequestId()
    return this.#requestId
  }

  /** For a client that left before its address was read. */
  drop(): void {
    if (!this.#isOver) this.#response.close() // its abort handler runs
  }

  /** Answered, or the client has left. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Calls back once, unless the client leaves: with undefined above `bytesMax`, else with bytes that are valid until the
   * callback returns.
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

  /** Runs the first step, unless the body's end is ambiguous: it could hide another request. */
  begin(step: (exchange: Exchange) => void): void {
    if (this.#framing === 'ambiguous') this.answer(this.#rules.ambiguousReply)
    else this.#runAtOnce(step, this)
  }

  /** For steps inside a uWebSockets.js callback. */
  #runAtOnce<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    this.#isInCallback = true
    this.run(step, argument)
    this.#isInCallback = false
    if (this.#isOver || this.#isBodyPending || this.#isPaused) return
    if (this.startedAtMs - pausesSinceMs > PAUSES_MS) {
      pausesSinceMs = this.startedAtMs
      pauses = 0
    }
    if (++pauses > PAUSES_MAX) return
    this.#isPaused = true
    this.#response.pause()
  }

  /** An exception becomes an answer and never ends the process. */
  run<Argument>(step: (argument: Argument) => void, argument: Argument): void {
    try {
      step(argument)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Like `run`, as a callback that does nothing once the exchange is over. */
  guard<Argument>(step: (argument: Argument) => void): (argument: Argument) => void {
    return argument => {
      if (!this.#isOver) this.run(step, argument)
    }
  }

  /** Answers once; does nothing if the client has left. */
  answer(reply: Reply): void {
    if (this.#isOver) return
    if (this.#isLast(this.#isHead)) return this.#answerLast(() => this.answer(reply))
    if (this.#mustWait()) return void setImmediate(() => this.answer(reply))
    // First, because the answer carries the request id if a log line did.
    this.#host.observer.answered(this, this.#rules.part, reply.status, reply.ending)
    this.#end()
    corked = this
    corkedReply = reply
    this.#response.cork(Exchange.#writeCorked)
  }

  /** For bodies other than JSON; apart from `answer`, to keep that one fast. */
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
   * Whether the connection must end with the answer, and `#answerLast` has not run yet.
   *
   * @param isBare the answer has no body
   */
  #isLast(isBare: boolean): boolean {
    if (this.#closes) return false
    // uWebSockets.js ends the connection once this client has closed its side, so an answer outside of the callback is the last.
    if (this.#isClientsLast && !this.#isInCallback) return true
    // The rest of an oversized body is not read, and nothing after chunks.
    if (this.#isBodyPending || this.#framing !== 'length') return true
    return isBare && (this.#host.isDraining || (!this.#isClientsLast && Math.random() < BARE_LAST_SHARE))
  }

  /**
   * Ends the connection so that leftover bytes are never read as another request: uWebSockets.js would take trailers, and
   * unknown parts of chunks, for one. `Connection: close` is not enough, because requests in the same TCP segment are still
   * served. So the answer is delayed: meanwhile uWebSockets.js ends a connection that sends more.
   *
   * The delay must be a timer. uWebSockets.js frees closed connections in the event loop's check phase, before setImmediate
   * callbacks run; a connection closed after that, and released by libuv before the next check phase, leaks 464 bytes
   * (test/http/closed-connections.test.ts).
   */
  #answerLast(answer: () => void): void {
    this.#closes = true
    setTimeout(() => {
      answer()
      if (this.#isUnended) this.#response.close()
    }, 0)
  }

  /**
   * Whether this event-loop turn has given so many answers that the next must wait. uWebSockets.js reads up to 512 KiB at once,
   * or 10,000 pipelined requests, and answering them all would delay everyone else by a second. While an answer is pending,
   * uWebSockets.js closes a connection that sends another request. With `Connection: close`, a connection ends after 16 KiB of
   * answers anyway.
   */
  #mustWait(): boolean {
    if (!this.#isInCallback || this.#isClientsLast) return false
    if (answersAtOnce === 0) setImmediate(() => (answersAtOnce = 0))
    return ++answersAtOnce > ANSWERS_AT_ONCE_MAX
  }

  #writeContent({ status, body, headers }: ContentReply): void {
    const closes = this.#closes || this.#host.isDraining
    this.#writeStatus(status)
    for (const [name, value] of headers) this.#response.writeHeader(name, value)
    if (status === 304 || this.#isHead) this.#endHead(Buffer.byteLength(body), closes)
    else this.#endWith(body, closes)
  }

  /** Static, because a closure per answer takes 0.6 us. */
  static #writeCorked(): void {
    corked!.#write(corkedReply!)
  }

  #write({ status, body, headers, head }: Reply): void {
    const response = this.#response
    const { isCrossOrigin } = this.#rules
    const closes = this.#closes || this.#host.isDraining
    this.#writeStatus(status)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (this.#requestId !== '') response.writeHeader('X-Request-Id', this.#requestId)
    response.writeHeader('Content-Type', head ?? (isCrossOrigin ? CORS_JSON_HEAD : JSON_HEAD))
    if (this.#isHead) this.#endHead(Buffer.byteLength(body), closes)
    else this.#endWith(body, closes)
  }

  #writeStatus(status: number): void {
    if (this.#isPaused) this.#response.resume()
    const line = statusLine(status)
    // A header's name is written as it is, so it can begin with the status line.
    if (this.#hasContinued) this.#response.writeHeader(`HTTP/1.1 ${line}${HEADER_BREAK}Vary`, 'Expect')
    else if (status !== 200) this.#response.writeStatus(line)
    if (this.#isClientsLast) this.#response.writeHeader('Connection', 'close')
  }

  /**
   * `tryEnd`, because `end` buffers what the system does not take: without bound if a client sends requests and reads nothing.
   * After `tryEnd` the answer stays pending, and uWebSockets.js closes the connection if the client sends another request, or
   * reads nothing for 8 to 12 s. `tryEnd` needs a body or a length, so every answer has one.
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
   * With a length, `endWithoutBody` leaves the answer unfinished: the connection does not end, and cannot be used again.
   * Without one, it cannot end the connection. Node.js 24 has neither fault.
   */
  #endHead(bytes: number, closes: boolean): void {
    if (closes && !this.#isClientsLast) this.#response.writeHeader('Connection', 'close')
    if (closes && ENDS_WITH_HEAD) return void this.#response.endWithoutBody(bytes, true)
    const [, isEnded] = this.#response.tryEnd('', bytes) // writes the Content-Length
    if (isEnded) return
    // Closing inside the cork would leave the head unsent.
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
 * Sheds GET and POST requests without reading them or making an exchange.
 *
 * @param reply with constant headers only
 */
export function refuserOf(reply: Reply, host: ExchangeHost, { part, isCrossOrigin }: ExchangeRules) {
  const headers = [['Content-Type', isCrossOrigin ? CORS_JSON_HEAD : JSON_HEAD], ...reply.headers]
  // In the status line, so that one text is passed on instead of three.
  const head =
    statusLine(reply.status) + headers.map(([name, value]) => `${HEADER_BREAK}${name}: ${value}`).join('')
  const body = Buffer.from(reply.body)
  return (response: HttpResponse) => {
    response.writeStatus(head)
    // Clients that read no answers get no more memory than the system's buffers.
    const [, isTaken] = response.tryEnd(body, body.length)
    if (!isTaken) response.close()
    host.observer.shed(part)
  }
}
