/** Interfaces between an exchange (one request and its answer, exchange.ts) and its server. */

import type { Address, AddressSet } from '../domain/address.ts'
import type { Ending } from '../domain/ending.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import type { WorkKind } from '../domain/overload.ts'
import type { ProxyRelay } from './proxy-relay.ts'
import type { Reply } from './replies.ts'

/** Paths that are counted together. */
export const PARTS = [...ENDPOINT_NAMES, 'content', 'other'] as const
export type Part = (typeof PARTS)[number]

/** What is reported of an exchange besides its ending. Texts are empty and the address undefined until known. */
export interface ObservedExchange {
  readonly startedAtMs: number
  readonly requestId: string
  readonly siteKey: string
  readonly apiKeyId: string
  readonly nonce: string
  readonly origin: string
  readonly address: Address | undefined
}

/** Called once when an exchange ends, and for faults. */
export interface ExchangeObserver {
  answered(exchange: ObservedExchange, part: Part, status: number, ending: Ending | undefined): void
  /** The client left before the answer. */
  aborted(part: Part): void
  /** Refused without an exchange. */
  shed(part: Part): void
  /** A step threw; the exchange answers after this call. */
  faulted(part: Part, error: unknown, exchange: ObservedExchange): void
}

/** Shared by a server's exchanges. */
export interface ExchangeHost {
  readonly trustedProxies: AddressSet
  /** `isEveryPeerTrusted` in listener.ts says when. */
  readonly isEveryPeerTrusted: boolean
  /** The PROXY protocol relay, if any: it knows which client a peer stands for. */
  relay: Pick<ProxyRelay, 'admits' | 'clientOf' | 'isNameless'> | undefined
  /** Told of a sender whose X-Forwarded-For is not believed; undefined for a while after each call. */
  forwardingIgnored: ((peer: Address) => void) | undefined
  /** While a worker drains, every answer closes its connection. */
  isDraining: boolean
  /** Exchanges not yet answered. */
  underWay: number
  readonly observer: ExchangeObserver
  /** undefined if nothing is ever shed. */
  readonly gate: Gate | undefined
  /** Unique. */
  readonly newRequestId: () => string
}

/** Decides whether to shed a request that arrives. */
export interface Gate {
  /** Whether `admits` and `seen` must be called. */
  readonly isShedding: boolean
  admits(work: WorkKind): boolean
  /** Notes a request that is as cheap to answer as to refuse. */
  seen(): void
}

/** Shared by all exchanges of a path. */
export interface ExchangeRules {
  readonly part: Part
  /** Any site's pages call the path: requests have a site key and an origin, answers CORS headers. */
  readonly isCrossOrigin: boolean
  /** After an exception. */
  readonly faultReply: Reply
  /** If the request's end is ambiguous. */
  readonly ambiguousReply: Reply
}
