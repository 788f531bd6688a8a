/** What endpoints use (assembled in server.ts), and how they refuse. */

import type { AddressTags } from '../domain/address-tags.ts'
import type { BackendCounts } from '../domain/backends.ts'
import { ENDPOINTS, type EndpointName, type ErrorStyle, type Limits } from '../domain/endpoint.ts'
import type { Keyring } from '../domain/keyring.ts'
import type { Reason, Refusal } from '../domain/outcome.ts'
import type { ApiKeyRecord, Site } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import { limitedReply, type PolicyList, type Reply, refusalReply, unavailableReply } from '../http/replies.ts'
import type { KeyUses } from '../store/key-uses.ts'
import type { RecordCache } from '../store/site-directory.ts'
import type {
  ChallengeAdmission,
  RedemptionAdmission,
  RequestStore,
  SolutionAdmission,
} from '../store/store.ts'

export interface Service {
  readonly settings: ServiceSettings
  readonly keyring: Keyring
  readonly tags: AddressTags
  /** Of secrets that do not sign. */
  readonly otherTags: readonly AddressTags[]
  readonly store: RequestStore
  readonly sites: RecordCache<Site>
  readonly apiKeys: RecordCache<ApiKeyRecord>
  readonly keyUses: KeyUses
  readonly backends: BackendCounts
  /** Unix milliseconds. */
  readonly now: () => number
  /** An unsigned integer, of 16 bits at most. */
  readonly randomBits: (bits: number) => number
}

export interface ServiceSettings {
  readonly limits: Limits
  readonly challengeLifetimeMs: number
  readonly tokenLifetimeMs: number
  readonly bodyBytesMax: number
  /** IPv6 addresses that share this prefix count as one visitor. */
  readonly ipv6PrefixBits: number
}

const ORIGIN_CHARACTERS_MAX = 200

function originProblem(origin: string): string {
  if (origin === '') return 'The request has no Origin header, and this site requires one.'
  return `${origin.slice(0, ORIGIN_CHARACTERS_MAX)} is not an allowed origin of this site.`
}

export abstract class Endpoint {
  protected readonly service: Service
  readonly #style: ErrorStyle
  readonly #policies: PolicyList

  constructor(service: Service, name: EndpointName) {
    const { limits, errorStyle } = ENDPOINTS[name]
    this.service = service
    this.#style = errorStyle
    this.#policies = Object.fromEntries(
      limits.map(({ policy, limit }) => [policy, service.settings.limits[limit]]),
    )
  }

  abstract handle(exchange: Exchange, query: string): void

  protected refuse(exchange: Exchange, reason: Reason, more: Partial<Refusal> = {}): void {
    if (reason === 'store-unavailable') return this.#unavailable(exchange, undefined)
    const named = reason === 'origin-refused' ? { detail: originProblem(exchange.origin) } : undefined
    exchange.answer(refusalReply({ reason, ...named, ...more }, this.#style))
  }

  /**
   * Answers unless the store admitted the request.
   *
   * @param ownLimits the site's own, for the headers
   */
  protected admits<Admission extends ChallengeAdmission | SolutionAdmission | RedemptionAdmission>(
    exchange: Exchange,
    admission: Admission,
    ownLimits: PolicyList | undefined,
  ): admission is Extract<Admission, { status: 'admitted' }> {
    switch (admission.status) {
      case 'admitted':
        return true
      case 'limited':
        exchange.answer(limitedReply(admission, { ...this.#policies, ...ownLimits }, this.#style))
        return false
      default:
        this.#unavailable(exchange, ownLimits)
        return false
    }
  }

  #unavailable(exchange: Exchange, ownLimits: PolicyList | undefined): void {
    exchange.answer(unavailableReply({ ...this.#policies, ...ownLimits }, this.#style))
  }

  /** After an exception. */
  get faultReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'internal')
  }

  get overloadReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'overloaded')
  }
}

/** Another host's clock may be this far ahead. */
export const CLOCK_SKEW_MS = 5000
