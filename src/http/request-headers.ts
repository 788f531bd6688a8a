/** Reads a request's head. Everything here must be called before the request's handler returns. */

import type { HttpRequest } from 'uWebSockets.js'
import type { AddressSet } from '../addresses/address.ts'

/** Tells how the body's end is known, and whether a proxy and this server agree on it. */
export type Framing =
  | 'length'
  /** The answer ends the connection, because trailers could be taken for a request. */
  | 'chunks'
  /** Another server may take the body for the next request. */
  | 'ambiguous'

/** Any other coding is ambiguous, because uWebSockets.js takes it for chunks. */
function framingOf(transferEncoding: string): Framing {
  return transferEncoding.toLowerCase() === 'chunked' ? 'chunks' : 'ambiguous'
}

/**
 * The field of an absent header is empty, or undefined from `readProxyHead`. Of repeated headers the first counts, even an empty one.
 * X-Forwarded-For lines are joined and the last X-Request-Id counts, because proxies append theirs; both are read only from trusted
 * proxies.
 */
type RequestHead = Readonly<typeof ABSENT>

/** A head without any header. `readHead` makes its fields in the same order, so V8 gives all heads one hidden class. */
const ABSENT = {
  siteKey: undefined as string | undefined,
  origin: undefined as string | undefined,
  fetchSite: undefined as string | undefined,
  authorization: undefined as string | undefined,
  contentType: undefined as string | undefined,
  connection: undefined as string | undefined,
  expect: undefined as string | undefined,
  framing: 'length' as Framing,
  forwardedFor: '',
  requestId: '',
}

/**
 * Reads the request of a client, who shares the connection with nobody: a second length could smuggle only a request of its own. Takes
 * 0.08 us a header that is read, however many the request has.
 *
 * @param isCrossOrigin whether pages of any origin may call the endpoint (`ExchangeRules`)
 */
export function readHead(request: HttpRequest, isCrossOrigin: boolean): RequestHead {
  const isPost = request.getMethod() === 'post'
  const coding = isPost ? request.getHeader('transfer-encoding') : ''
  return {
    // No endpoint uses both this and Authorization.
    siteKey: isCrossOrigin ? request.getHeader('x-site-key') : '',
    origin: request.getHeader('origin'),
    fetchSite: request.getHeader('sec-fetch-site'),
    authorization: isCrossOrigin ? '' : request.getHeader('authorization'),
    contentType: request.getHeader('content-type'),
    connection: request.getHeader('connection'),
    expect: isPost ? request.getHeader('expect') : '',
    framing: coding === '' ? 'length' : framingOf(coding),
    forwardedFor: '',
    requestId: '',
  }
}

// `takeHeader` writes these. A closure for each request would be allocated instead.
let head = ABSENT
let lengths = 0

/**
 * Reads all headers of a trusted proxy's request in one pass, because `getHeader` returns only the first X-Forwarded-For line, and
 * reading the others by name takes 0.9 us more. A second length is refused, because several clients share a proxy's connection.
 */
export function readProxyHead(request: HttpRequest): RequestHead {
  lengths = 0
  head = { ...ABSENT }
  request.forEach(takeHeader)
  if (lengths > 1) head.framing = 'ambiguous'
  return head
}

function takeHeader(name: string, value: string): void {
  switch (name) {
    case 'origin':
      head.origin ??= value
      break
    case 'expect':
      head.expect ??= value
      break
    case 'x-site-key':
      head.siteKey ??= value
      break
    case 'connection':
      head.connection ??= value
      break
    case 'content-type':
      head.contentType ??= value
      break
    case 'x-request-id':
      head.requestId = value
      break
    case 'authorization':
      head.authorization ??= value
      break
    case 'sec-fetch-site':
      head.fetchSite ??= value
      break
    case 'content-length':
      lengths++
      break
    case 'x-forwarded-for':
      head.forwardedFor = head.forwardedFor === '' ? value : `${head.forwardedFor},${value}`
      break
    case 'transfer-encoding':
      lengths++
      head.framing = framingOf(value)
  }
}

/** True if it is clear where the body ends, so that the request can be refused without an exchange. Only a proxy's can have two lengths that matter. */
export function endsPlainly(request: HttpRequest, trustedProxies: AddressSet): boolean {
  if (request.getHeader('transfer-encoding') !== '') return false
  return trustedProxies.isEmpty || readProxyHead(request).framing === 'length'
}

export interface ContentRequest {
  readonly path: string
  /** Empty if absent. */
  readonly acceptEncoding: string
  readonly ifNoneMatch: string
}

export function contentRequest(request: HttpRequest): ContentRequest {
  return {
    path: request.getUrl(),
    acceptEncoding: request.getHeader('accept-encoding'),
    ifNoneMatch: request.getHeader('if-none-match'),
  }
}
