/** Interfaces between an exchange (one request and its answer, exchange.ts) and its server: settings, observer, gate. */

import type { Address, AddressSet } from '../domain/address.ts'
import type { Ending } from '../domain/ending.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import type { WorkKind } from '../domain/overload.ts'
import type { ProxyRelay } from './proxy-relay.ts'
import type { Reply } from './replies.ts'

/** A group of paths whose exchanges are counted together. */
export const PARTS = [...ENDPOINT_NAMES, 'content', 'other'] as const
export type Part = (typeof PARTS)[number]

/** What is told of an exchange beside its ending. Texts are empty, and the address is undefined, until they are known. */
export interface ObservedExchange {
  readonly startedAtMs: number
  readonly requestId: string
  readonly siteKey: string
  readonly apiKeyId: string
  readonly nonce: string
  readonly origin: string
  readonly address: Address | undefined
}

/** Called once at the end of every exchange, and at faults. */
export interface ExchangeObserver {
  answered(exchange: ObservedExchange, part: Part, status: number, ending: Ending | undefined): void
  /** The client went away before the answer. */
  aborted(part: Part): void
  /** A request was shed, without an exchange. */
  shed(part: Part): void
  /** A step threw an exception. The exchange answers by itself after this call. */
  faulted(part: Part, error: unknown, exchange: ObservedExchange): void
}

/** The state of a server that its exchanges share. */
export interface ExchangeHost {
  readonly trustedProxies: AddressSet
  /** Whether every connection comes from a trusted proxy: see `isEveryPeerTrusted` in listener.ts. */
  readonly isEveryPeerTrusted: boolean
  /** The PROXY protocol relay, if there is one, which knows the client for whom a peer connected. */
  relay: Pick<ProxyRelay, 'admits' | 'clientOf' | 'isNameless'> | undefined
  /** Called with the sender of an X-Forwarded-For header that is not believed; undefined for a while after a call. */
  forwardingIgnored: ((peer: Address) => void) | undefined
  /** Whether the worker drains: every answer closes its connection. */
  isDraining: boolean
  /** Number of exchanges that are not answered yet. */
  underWay: number
  readonly observer: ExchangeObserver
  /** undefined if no request is shed. */
  readonly gate: Gate | undefined
  /** Makes a text that no other request has. */
  readonly newRequestId: () => string
}

/** Decides at the start of a request whether to shed it. */
export interface Gate {
  /** Whether `admits` and `seen` must be called. */
  readonly isShedding: boolean
  admits(work: WorkKind): boolean
  /** Notes a request that costs as much to refuse as to answer. */
  seen(): void
}

/** Settings that all exchanges of one path share. */
export interface ExchangeRules {
  readonly part: Part
  /** Whether pages of any site call the path: answers then have CORS headers, and requests a site key and an origin. */
  readonly isCrossOrigin: boolean
  /** The answer after an exception. */
  readonly faultReply: Reply
  /** The answer to a request whose end is ambiguous. */
  readonly ambiguousReply: Reply
}
