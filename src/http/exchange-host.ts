/** What an Exchange (exchange.ts) gets from its worker (ExchangeHost) and its route (ExchangeRules), and whom it reports to. */

import type { Address, AddressSet } from '../addresses/address.ts'
import type { Ending } from '../domain/ending.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import type { Overload } from './overload.ts'
import type { ProxyRelay } from './proxy-relay.ts'
import type { ReplyStyle } from './replies.ts'

/** The values of the label `endpoint` of metrics. `content`: files and pages; `other`: preflights, and paths that do not exist. */
export const ENDPOINT_LABELS = [...ENDPOINT_NAMES, 'content', 'other'] as const
export type EndpointLabel = (typeof ENDPOINT_LABELS)[number]

/** What log and metrics read of an exchange. Headers that the request lacks are empty texts. */
export interface ObservedExchange {
  /** When the request had come, its body included, by `performance.now`. */
  readonly receivedAtMs: number
  /** Reading it makes an id if there is none, and the answer then carries that: only who writes it somewhere may read it. */
  readonly requestId: string
  /** The value of X-Site-Key, which only visitors send. */
  readonly siteKey: string
  readonly origin: string
  readonly address: Address
}

/** Counts and logs (server.ts makes it). One of `answered`, `aborted` and `shed` is called for each request, and `faulted` in addition. */
interface ExchangeObserver {
  answered(exchange: ObservedExchange, endpoint: EndpointLabel, status: number, ending?: Ending): void
  aborted(endpoint: EndpointLabel): void
  /** The request was refused under load, before an Exchange was made. */
  shed(endpoint: EndpointLabel): void
  faulted(exchange: ObservedExchange, endpoint: EndpointLabel, error: unknown): void
}

export interface ExchangeHost {
  readonly trustedProxies: AddressSet
  /** True if every connection comes from a trusted proxy, so that no socket need be asked for its peer. */
  readonly isEveryPeerTrusted: boolean
  /** Set by `listen` (listener.ts) if proxies use the PROXY protocol. */
  relay: Pick<ProxyRelay, 'clientOf'> | undefined
  /** Called for each request with X-Forwarded-For whose sender is not trusted. */
  readonly onForwardingIgnored: (peer: Address) => void
  /** Called for each request of a trusted proxy whose X-Forwarded-For names no client. */
  readonly onForwardingMalformed: (proxy: Address) => void
  /** Set when the worker stops: every answer then closes its connection. */
  isDraining: boolean
  /** Set by `listen` (listener.ts) while many connections are open: answers then close theirs, too. */
  isCrowded: boolean
  /** Asked in a crowd by `closedInCrowd` (listener.ts). Each call counts for the client. Set by `listen`. */
  mayHold: (client: Address | undefined) => boolean
  /** Requests that are not answered yet, counted by the exchanges. */
  inFlight: number
  readonly observer: ExchangeObserver
  /** Sheds load; undefined if POWGATE_OVERLOAD_MS is 0. */
  readonly gate: Pick<Overload, 'isShedding' | 'admits' | 'countOther'> | undefined
  readonly newRequestId: () => string
}

export interface ExchangeRules {
  readonly endpoint: EndpointLabel
  /** True if any site's pages may call it: requests have a site key and an origin, and answers in JSON get CORS headers. */
  readonly isCrossOrigin: boolean
  /** The form of refusals. */
  readonly style: ReplyStyle
}
