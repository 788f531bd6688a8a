/** What exchanges are made with, and whom they tell of their ends. */

import type { Address, AddressSet } from '../domain/address.ts'
import type { Exchange } from './exchange.ts'
import type { Reply, ReplyOutcome } from './replies.ts'

/** Whose exchanges are counted together. */
export type Part = 'challenge' | 'verify' | 'verify-token' | 'siteverify' | 'content' | 'other'

/** Told of every exchange's end, once. */
export interface ExchangeObserver {
  /** @param outcome the reason of a refusal, or what a 200 means */
  answered(part: Part, status: number, outcome: ReplyOutcome, startedAtMs: number): void
  /** The client went away before it was answered. */
  aborted(part: Part): void
  /** It was refused because there were too many, without an exchange. */
  shed(part: Part): void
  /** An exception in a step; the exchange answers by itself, after this. */
  faulted(part: Part, error: unknown, exchange: Exchange): void
}

/** What a server tells its exchanges. */
export interface ExchangeHost {
  readonly trustedProxies: AddressSet
  /** Whether every connection comes from one of them: see `isEveryPeerTrusted` in listener.ts. */
  readonly isEveryPeerTrusted: boolean
  /** Where connections come through it: who knows whom a peer speaks for. */
  relay: { clientOf(peer: Address): Address | undefined } | undefined
  /** From now on every answer closes its connection. */
  isDraining: boolean
  /** Exchanges that are not answered yet. */
  underWay: number
  readonly observer: ExchangeObserver
  /** undefined: every request is taken. */
  readonly gate: Gate | undefined
  /** A text that no other request has. */
  readonly newRequestId: () => string
}

/** Who decides at a request's very start whether it is taken. */
export interface Gate {
  /** Whether `admits` is to be asked. */
  readonly isShedding: boolean
  admits(part: Part): boolean
  /** Of a request that costs as much to refuse as to answer. */
  seen(): void
}

/** What is the same for all exchanges of one path. */
export interface ExchangeRules {
  readonly part: Part
  /** Whether browsers of any site ask: answers carry CORS headers, requests a site key and an origin. */
  readonly isCrossOrigin: boolean
  /** The answer to a fault of ours. */
  readonly faultReply: Reply
  /** The answer to a request whose end can be read in two ways. */
  readonly ambiguousReply: Reply
}
