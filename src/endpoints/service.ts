/** The parts that endpoints use (assembled in server.ts), and the answer to requests that the store does not admit. */

import type { AddressTags } from '../domain/address-tags.ts'
import type { RefusalSubject } from '../domain/ending.ts'
import type { Limits } from '../domain/endpoint.ts'
import type { Keyring } from '../domain/keyring.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Pricing } from '../domain/pricing.ts'
import type { ApiKeyRecord, Site } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import { type PolicyList, type Reply, type ReplyStyle, refusalReply } from '../http/replies.ts'
import type { KeyUses } from '../store/key-uses.ts'
import type { RecordCache } from '../store/site-directory.ts'
import type { RequestStore, SolutionAdmission } from '../store/store.ts'
import type { BackendCounts } from './backend-counts.ts'

export interface Service {
  readonly settings: ServiceSettings
  readonly pricing: Pricing
  readonly keyring: Keyring
  /** Names addresses in the store by the secret that signs. */
  readonly tags: AddressTags
  /** The same by each secret that only verifies, because another host may sign with it. */
  readonly otherTags: readonly AddressTags[]
  readonly store: RequestStore
  readonly sites: RecordCache<Site>
  readonly apiKeys: RecordCache<ApiKeyRecord>
  readonly keyUses: KeyUses
  readonly backends: BackendCounts
  /** Unix milliseconds. */
  readonly now: () => number
  /** An unsigned integer of so many bits. */
  readonly randomBits: (bits: number) => number
}

export interface ServiceSettings {
  readonly limits: Limits
  readonly challengeLifetimeMs: number
  readonly tokenLifetimeMs: number
  readonly bodyBytesMax: number
  /** IPv6 addresses that share this prefix count as one visitor. */
  readonly ipv6PrefixBits: number
  /** True if the endpoint answers from memory while Redis is away. A site's own setting goes before. */
  readonly failOpen: { readonly challenge: boolean; readonly verify: boolean }
}

/** Answers an exchange, at once or when body and store have come. */
export type Endpoint = (exchange: Exchange) => void

/** A request that will be refused once its limits are charged. */
export interface RefusedAttempt {
  readonly verdict: 'refused'
  readonly refusal: Refusal
  /** undefined if none was read. */
  readonly nonce: string | undefined
}

export function refused(refusal: Refusal, nonce?: string): RefusedAttempt {
  return { verdict: 'refused', refusal, nonce }
}

type NotAdmitted = Exclude<SolutionAdmission, { status: 'admitted' }>

/**
 * The answer to a request that the store did not admit.
 *
 * @param sitePolicies the site's own limits, which replace the service's in the headers
 */
export function notAdmittedReply(
  { errors, policies }: ReplyStyle,
  admission: NotAdmitted,
  isRefusedAnyway: boolean,
  sitePolicies: PolicyList | undefined,
  subject?: RefusalSubject,
): Reply {
  const style = { errors, policies: { ...policies, ...sitePolicies } }
  if (admission.status === 'unavailable') return refusalReply(style, { reason: 'store-unavailable' }, subject)
  const { policy, retryAfterMs } = admission
  const isJunk = isRefusedAnyway || admission.isJunk === true
  return refusalReply(style, { reason: 'rate-limited', policy, isJunk }, subject, retryAfterMs)
}
