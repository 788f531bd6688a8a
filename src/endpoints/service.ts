/** What the endpoints work with; server.ts puts it together. */

import type { DifficultyInputs } from '../domain/difficulty.ts'
import type { FingerprintWatch } from '../domain/fingerprints.ts'
import type { Keyring } from '../domain/keyring.ts'
import type { Limits, Policy } from '../domain/limits.ts'
import type { Reason } from '../domain/outcome.ts'
import type { ScoreReason, ScoreSignals } from '../domain/score.ts'
import type { ApiKeyRecord, Site } from '../domain/site.ts'
import type { TokenClaims } from '../domain/token.ts'
import type { Exchange } from '../http/exchange.ts'
import {
  type ErrorStyle,
  limitedReply,
  type PolicyList,
  type Reply,
  refusalReply,
  unavailableReply,
} from '../http/replies.ts'
import type { KeyUses } from '../store/key-uses.ts'
import type { LoadTracker } from '../store/load-tracker.ts'
import type { SiteDirectory } from '../store/site-directory.ts'
import type { Limited, RequestStore } from '../store/store.ts'

export interface Service {
  readonly settings: ServiceSettings
  readonly keyring: Keyring
  readonly store: RequestStore
  readonly sites: SiteDirectory
  readonly loads: LoadTracker
  readonly keyUses: KeyUses
  readonly fingerprints: FingerprintWatch
  /** Unix milliseconds. */
  readonly now: () => number
  /** An unsigned integer of this many random bits, at most 16. */
  readonly randomBits: (bits: number) => number
  readonly events: Events
}

export interface ServiceSettings {
  readonly limits: Limits
  readonly challengeLifetimeMs: number
  readonly tokenLifetimeMs: number
  readonly bodyBytesMax: number
  /** How much of an IPv6 address counts as one visitor, in bits. */
  readonly ipv6PrefixBits: number
}

/** For logs and metrics: what happened, with reasons that no client is told. Each is called before the answer goes out. */
export interface Events {
  issued(exchange: Exchange, challenge: IssuedChallenge): void
  judged(exchange: Exchange, judgement: Judgement): void
  redeemed(exchange: Exchange, apiKey: ApiKeyRecord, claims: TokenClaims): void
  /** @param policy the limit, where the reason is one */
  refused(exchange: Exchange, endpoint: EndpointName, reason: Reason, policy?: Policy): void
}

export interface IssuedChallenge {
  readonly site: Site
  readonly nonce: string
  readonly difficulty: number
  /** What it was computed from. */
  readonly inputs: DifficultyInputs
}

/** Why a solution failed, or scored less than 1. */
export type JudgementReason = ScoreReason | 'ip-blocked' | 'ip-not-allowed' | 'proof-wrong' | 'test-key'

/** A solution that was answered with 200. */
export interface Judgement {
  readonly site: Site
  readonly nonce: string
  readonly passed: boolean
  /** null: it failed without being scored. */
  readonly score: number | null
  readonly reasons: readonly JudgementReason[]
  /** What the score was computed from; undefined without one. */
  readonly signals: ScoreSignals | undefined
}

/** One path's handler. */
export interface Endpoint {
  readonly name: EndpointName
  handle(exchange: Exchange): void
  readonly faultReply: Reply
  /** The answer when there are more requests than can be answered. */
  readonly overloadReply: Reply
}

export type EndpointName = 'challenge' | 'verify' | 'verify-token' | 'siteverify'

/** What an endpoint needs to say no: bound once at start. */
export class Refusals {
  readonly #service: Service
  readonly #endpoint: EndpointName
  readonly #style: ErrorStyle
  readonly #policies: PolicyList
  /** Which of them a site's own limit replaces. */
  readonly #sitePolicies: readonly Policy[]

  constructor(service: Service, endpoint: EndpointName, style: ErrorStyle, policies: PolicyList) {
    this.#service = service
    this.#endpoint = endpoint
    this.#style = style
    this.#policies = policies
    this.#sitePolicies = 'api-key' in policies ? ['address', 'api-key'] : ['address-site']
  }

  refuse(exchange: Exchange, reason: Reason, more: { detail?: string; field?: string } = {}): void {
    if (reason === 'store-unavailable') return this.unavailable(exchange, undefined)
    this.#service.events.refused(exchange, this.#endpoint, reason)
    exchange.answer(refusalReply({ reason, ...more }, this.#style))
  }

  /** @param siteLimit what the site has in place of the service's limit, for the headers; undefined: nothing */
  unavailable(exchange: Exchange, siteLimit: number | undefined): void {
    this.#service.events.refused(exchange, this.#endpoint, 'store-unavailable')
    exchange.answer(unavailableReply(this.#policiesWith(siteLimit), this.#style))
  }

  /** @param siteLimit as above */
  limit(exchange: Exchange, limited: Limited, siteLimit: number | undefined): void {
    this.#service.events.refused(exchange, this.#endpoint, 'rate-limited', limited.policy)
    exchange.answer(limitedReply(limited, this.#policiesWith(siteLimit), this.#style))
  }

  #policiesWith(siteLimit: number | undefined): PolicyList {
    if (siteLimit === undefined) return this.#policies
    const own = this.#sitePolicies.map(policy => [policy, siteLimit] as const)
    return { ...this.#policies, ...Object.fromEntries(own) }
  }

  /** The answer to a fault of ours. */
  get faultReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'internal')
  }

  /** The answer to a request that is not even looked at. */
  get overloadReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'overloaded')
  }
}

/** Issue times up to this far ahead of this host's clock are taken for clock skew. */
export const CLOCK_SKEW_MS = 5000
