/** What an exchange (exchange.ts) needs of its worker and its route, and what it reports. */

import type { Address, AddressSet } from '../addresses/address.ts'
import type { Ending } from '../domain/ending.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import type { OverloadGate } from './gate.ts'
import type { ProxyRelay } from './proxy-relay.ts'
import type { ReplyStyle } from './replies.ts'

/** The values of the label `endpoint` of metrics. `content` are files and pages, `other` all that is neither. */
export const PARTS = [...ENDPOINT_NAMES, 'content', 'other'] as const
export type Part = (typeof PARTS)[number]

/** What log and metrics read of an exchange. Headers that the request lacks are empty texts. */
export interface ObservedExchange {
  readonly startedAtMs: number
  readonly requestId: string
  /** The value of X-Site-Key, which only visitors send. */
  readonly siteKey: string
  readonly origin: string
  /** undefined if the client left before it was read. */
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
  /** True if every connection comes from a trusted proxy, so that nobody needs to read its address. */
  readonly isEveryPeerTrusted: boolean
  /** Set if proxies use the PROXY protocol. */
  relay: Pick<ProxyRelay, 'takeAwaited' | 'clientOf'> | undefined
  /** Called for each request with X-Forwarded-For whose sender is not trusted. */
  readonly onForwardingIgnored: (peer: Address) => void
  /** Called for each request of a trusted proxy whose X-Forwarded-For names no client. */
  readonly onForwardingMalformed: (proxy: Address) => void
  /** Every answer closes its connection. */
  isDraining: boolean
  inFlight: number
  readonly observer: ExchangeObserver
  /** undefined if shedding is off. */
  readonly gate: Pick<OverloadGate, 'isShedding' | 'admits' | 'seen'> | undefined
  readonly newRequestId: () => string
}

export interface ExchangeRules {
  readonly part: Part
  /** True if any site's pages may call it: requests have a site key and an origin, and answers have CORS headers. */
  readonly isCrossOrigin: boolean
  /** The form of the refusals that the exchange makes by itself. */
  readonly style: ReplyStyle
}
