/**
 * What is read of a request besides an exchange's own headers. Within its handler: uWebSockets.js takes a request back when that
 * returns.
 */

import type { HttpRequest } from 'uWebSockets.js'
import type { ExchangeHost } from './exchange-host.ts'
import { type Framing, framingOf } from './framing.ts'

/** Whether it is plain where the request ends, so that it can be answered without an exchange. */
export function endsPlainly(request: HttpRequest, { trustedProxies }: ExchangeHost): boolean {
  if (request.getHeader('transfer-encoding') !== '') return false
  if (trustedProxies.isEmpty) return true
  let lengths = 0
  request.forEach(name => {
    if (name === 'content-length') lengths++
  })
  return lengths < 2
}

/** What files and pages are chosen by. The three endpoints do without, so an exchange does not read it. */
export interface ContentRequest {
  readonly path: string
  /** Header values, empty when absent. */
  readonly accept: string
  readonly acceptEncoding: string
  readonly ifNoneMatch: string
}

/** To be called before the handler of the request returns. */
export function contentRequest(request: HttpRequest): ContentRequest {
  return {
    path: request.getUrl(),
    accept: request.getHeader('accept'),
    acceptEncoding: request.getHeader('accept-encoding'),
    ifNoneMatch: request.getHeader('if-none-match'),
  }
}

/**
 * What a trusted proxy says: all X-Forwarded-For lines in order, joined, and the last X-Request-Id, because proxies that add a
 * line do so after the client's. `getHeader` gives only the first.
 *
 * Only on a proxy's connection do the requests of several clients follow each other, and here all lines are looked at
 * anyway (1.9 us): so here is where a second length is found.
 */
export function proxyHeaders(request: HttpRequest): ProxyHeaders {
  let forwardedFor = ''
  let requestId = ''
  let lengths = 0
  let framing: Framing = 'length'
  request.forEach((name, value) => {
    if (name === 'x-forwarded-for') forwardedFor = forwardedFor === '' ? value : `${forwardedFor},${value}`
    else if (name === 'x-request-id') requestId = value
    else if (name === 'content-length') lengths++
    else if (name === 'transfer-encoding') {
      lengths++
      framing = framingOf(value)
    }
  })
  return { forwardedFor, requestId, framing: lengths > 1 ? 'ambiguous' : framing }
}

export interface ProxyHeaders {
  readonly forwardedFor: string
  readonly requestId: string
  readonly framing: Framing
}
