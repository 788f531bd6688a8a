/** The parts of the service that the endpoints use (server.ts assembles them), and their refusals. */

import type { AddressTags } from '../domain/address-tags.ts'
import type { BackendCounts } from '../domain/backends.ts'
import { ENDPOINTS, type EndpointName, type ErrorStyle, type Limits } from '../domain/endpoint.ts'
import type { FingerprintWatch } from '../domain/fingerprints.ts'
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
  /** Of the secrets that no longer sign, or do not yet. */
  readonly otherTags: readonly AddressTags[]
  readonly store: RequestStore
  readonly sites: RecordCache<Site>
  readonly apiKeys: RecordCache<ApiKeyRecord>
  readonly keyUses: KeyUses
  readonly backends: BackendCounts
  readonly fingerprints: FingerprintWatch
  /** Unix milliseconds. */
  readonly now: () => number
  /** Draws an unsigned integer of this many random bits, at most 16. */
  readonly randomBits: (bits: number) => number
}

export interface ServiceSettings {
  readonly limits: Limits
  readonly challengeLifetimeMs: number
  readonly tokenLifetimeMs: number
  readonly bodyBytesMax: number
  /** Length of the IPv6 prefix that counts as one visitor, in bits. */
  readonly ipv6PrefixBits: number
}

const ORIGIN_CHARACTERS_MAX = 200

function originProblem(origin: string): string {
  if (origin === '') return 'The request has no Origin header, and this site requires one.'
  return `${origin.slice(0, ORIGIN_CHARACTERS_MAX)} is not an allowed origin of this site.`
}

/** Answers requests; refusals in the endpoint's style. */
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

  /** @param query of the address, unread by most endpoints */
  abstract handle(exchange: Exchange, query: string): void

  protected refuse(exchange: Exchange, reason: Reason, more: Partial<Refusal> = {}): void {
    if (reason === 'store-unavailable') return this.#unavailable(exchange, undefined)
    const named = reason === 'origin-refused' ? { detail: originProblem(exchange.origin) } : undefined
    exchange.answer(refusalReply({ reason, ...named, ...more }, this.#style))
  }

  /**
   * Whether the store has admitted the request. If not, or if the outcome is unknown, answers the request.
   *
   * @param ownLimits the site's own, for the headers; undefined if those of the service apply
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

  /** The answer to a request in which powgate threw an exception. */
  get faultReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'internal')
  }

  /** The answer to a request that is shed unread. */
  get overloadReply(): Reply {
    return unavailableReply(this.#policies, this.#style, 'overloaded')
  }
}

/** Issue times at most this far ahead of this host's clock are accepted as clock skew. */
export const CLOCK_SKEW_MS = 5000
