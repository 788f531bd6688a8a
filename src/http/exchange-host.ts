/** Interfaces between an exchange (exchange.ts) and its server. */

import type { Address, AddressSet } from '../addresses/address.ts'
import type { Ending } from '../domain/ending.ts'
import { ENDPOINT_NAMES, type Work } from '../domain/endpoint.ts'
import type { ProxyRelay } from './proxy-relay.ts'
import type { Reply } from './replies.ts'

/** Paths that are counted together. */
export const PARTS = [...ENDPOINT_NAMES, 'content', 'other'] as const
export type Part = (typeof PARTS)[number]

/** Texts are empty and the address undefined until known. */
export interface ObservedExchange {
  readonly startedAtMs: number
  readonly requestId: string
  /** The value of X-Site-Key, which only visitors send. */
  readonly siteKey: string
  readonly origin: string
  readonly address: Address | undefined
}

/** `answered`, `aborted` or `shed` is called once for each request. */
interface ExchangeObserver {
  answered(exchange: ObservedExchange, part: Part, status: number, ending: Ending | undefined): void
  /** The client left without an answer. */
  aborted(part: Part): void
  /** A request was refused without an exchange. */
  shed(part: Part): void
  faulted(part: Part, error: unknown, exchange: ObservedExchange): void
}

export interface ExchangeHost {
  readonly trustedProxies: AddressSet
  readonly isEveryPeerTrusted: boolean
  /** Set if proxies use the PROXY protocol. */
  relay: Pick<ProxyRelay, 'takeAwaited' | 'clientOf' | 'isNameless'> | undefined
  /** The sender of an X-Forwarded-For is not trusted; undefined for a while after each call. */
  forwardingIgnored: ((peer: Address) => void) | undefined
  /** A trusted proxy's X-Forwarded-For names no client; undefined for a while after each call. */
  forwardingMalformed: ((peer: Address) => void) | undefined
  /** Every answer closes its connection. */
  isDraining: boolean
  inFlight: number
  readonly observer: ExchangeObserver
  /** undefined if shedding is off. */
  readonly gate: Gate | undefined
  readonly newRequestId: () => string
}

export interface Gate {
  /** Call `admits` or `seen` (overload.ts) for each request meanwhile. */
  readonly isShedding: boolean
  admits(work: Work): boolean
  seen(): void
}

export interface ExchangeRules {
  readonly part: Part
  /** True if any site's pages may call it: requests have a site key and an origin, and answers have CORS headers. */
  readonly isCrossOrigin: boolean
  readonly faultReply: Reply
  readonly ambiguousReply: Reply
}
