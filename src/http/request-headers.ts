/** Reads a request's head, within the request's handler: uWebSockets.js takes a request back when its handler returns. */

import type { HttpRequest } from 'uWebSockets.js'
import type { AddressSet } from '../domain/address.ts'

/** Where a request's body ends, as far as servers agree on it. */
export type Framing =
  | 'length'
  /** The answer is the last of the connection: see `Exchange`. */
  | 'chunks'
  /** Another server may read the head differently, and take this request's body for the next request. */
  | 'ambiguous'

/** uWebSockets.js takes any transfer coding for chunks. */
function framingOf(transferEncoding: string): Framing {
  return transferEncoding.toLowerCase() === 'chunked' ? 'chunks' : 'ambiguous'
}

/**
 * Header values; undefined or empty when absent. Of a header that comes twice, the first counts. Of X-Forwarded-For all lines
 * count, joined in order, and of X-Request-Id the last: proxies add a line after the client's. These two are read only if a
 * trusted proxy sent the request.
 */
type RequestHead = Readonly<typeof ABSENT>

/** All heads have this one shape, whatever headers come in which order. */
const ABSENT = {
  siteKey: undefined as string | undefined,
  origin: undefined as string | undefined,
  fetchSite: undefined as string | undefined,
  authorization: undefined as string | undefined,
  contentType: undefined as string | undefined,
  connection: undefined as string | undefined,
  framing: 'length' as Framing,
  forwardedFor: '',
  requestId: '',
}

/** Reads headers by name: 0.08 us for each name, however many headers there are. */
export function readHead(request: HttpRequest, isCrossOrigin: boolean): RequestHead {
  const coding = request.getMethod() === 'post' ? request.getHeader('transfer-encoding') : ''
  return {
    siteKey: isCrossOrigin ? request.getHeader('x-site-key') : '',
    origin: request.getHeader('origin'),
    fetchSite: request.getHeader('sec-fetch-site'),
    authorization: isCrossOrigin ? '' : request.getHeader('authorization'),
    contentType: request.getHeader('content-type'),
    connection: request.getHeader('connection'),
    framing: coding === '' ? 'length' : framingOf(coding),
    forwardedFor: '',
    requestId: '',
  }
}

let head = ABSENT
let lengths = 0

/**
 * Reads all headers of a trusted proxy's request, because `getHeader` gives only the first line of X-Forwarded-For. One pass
 * with one function takes 0.9 us less than a pass beside reads by name.
 *
 * On a proxy's connection the requests of several clients follow each other, so a second length makes the end ambiguous.
 */
export function readProxyHead(request: HttpRequest): RequestHead {
  lengths = 0
  head = { ...ABSENT }
  request.forEach(takeHeader)
  if (lengths > 1) head.framing = 'ambiguous'
  return head
}

/** Compares the length of the name first: V8 has not seen this text before, so each comparison of texts reads it. */
function takeHeader(name: string, value: string): void {
  switch (name.length) {
    case 6:
      if (name === 'origin') head.origin ??= value
      break
    case 10:
      if (name === 'x-site-key') head.siteKey ??= value
      else if (name === 'connection') head.connection ??= value
      break
    case 12:
      if (name === 'content-type') head.contentType ??= value
      else if (name === 'x-request-id') head.requestId = value
      break
    case 13:
      if (name === 'authorization') head.authorization ??= value
      break
    case 14:
      if (name === 'sec-fetch-site') head.fetchSite ??= value
      else if (name === 'content-length') lengths++
      break
    case 15:
      if (name === 'x-forwarded-for')
        head.forwardedFor = head.forwardedFor === '' ? value : `${head.forwardedFor},${value}`
      break
    case 17:
      if (name === 'transfer-encoding') {
        lengths++
        head.framing = framingOf(value)
      }
  }
}

export function hasForwardedFor(request: HttpRequest): boolean {
  return request.getHeader('x-forwarded-for') !== ''
}

/** Whether the end of the request is plain, so that the request can be answered without an exchange. */
export function endsPlainly(request: HttpRequest, trustedProxies: AddressSet): boolean {
  if (request.getHeader('transfer-encoding') !== '') return false
  if (trustedProxies.isEmpty) return true
  lengths = 0
  request.forEach(countLength)
  return lengths < 2
}

function countLength(name: string): void {
  if (name === 'content-length') lengths++
}

/** The headers by which files and pages are chosen. The endpoints need none of them, so an exchange does not read them. */
export interface ContentRequest {
  readonly path: string
  /** Header values, empty when absent. */
  readonly acceptEncoding: string
  readonly ifNoneMatch: string
}

/** To be called before the handler of the request returns. */
export function contentRequest(request: HttpRequest): ContentRequest {
  return {
    path: request.getUrl(),
    acceptEncoding: request.getHeader('accept-encoding'),
    ifNoneMatch: request.getHeader('if-none-match'),
  }
}

/** What follows the question mark of the address; empty without one. To be called before the handler returns. */
export function queryOf(request: HttpRequest): string {
  return request.getQuery() ?? ''
}
