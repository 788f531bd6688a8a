/**
 * The only state that workers share, in the domain's verbs. Two implementations (redis/, embedded/) pass one
 * conformance suite (test/store/conformance.ts), races included.
 *
 * The three request verbs take a callback and answer once: in the same event-loop turn if they can tell at once that
 * the store is away, else in a later one. Whatever is unknown is `unavailable`; the caller must refuse or fall back.
 */

import type { AuditEntry, AuditQuery, Author, RecordChange } from '../domain/audit.ts'
import type { Policy } from '../domain/limits.ts'
import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'

export interface Limited {
  readonly status: 'limited'
  /** After this long the request would be admitted, if nothing else were admitted meanwhile. */
  readonly retryAfterMs: number
  readonly policy: Policy
}

export interface Unavailable {
  readonly status: 'unavailable'
}

export const UNAVAILABLE: Unavailable = { status: 'unavailable' }

export type Done<Answer> = (answer: Answer) => void

interface AddressRequest {
  /** From `limitKey`: lowercase hex. */
  readonly addressKey: string
  /** 1 to 2^21 - 1; 0 when the site is not known. */
  readonly siteTag: number
  readonly addressLimit: number
  /** 0 when the site is not known: only the address is charged. */
  readonly siteLimit: number
  /** Whether an outage of the store may be bridged; undefined: as the service is configured. */
  readonly failOpen?: boolean | undefined
}

export type ChallengeRequest = AddressRequest

export type ChallengeAdmission =
  | {
      readonly status: 'admitted'
      /** Challenges of this address for this site in the last minute, before this one. */
      readonly siteCount: number
      /** Failed verifications of this address in the last minute. */
      readonly failures: number
    }
  | Limited
  | Unavailable

export interface SolutionRequest extends AddressRequest {
  /** Whether this verification is known to fail, whatever the store answers: it counts against the address. */
  readonly failed: boolean
  /** The nonce to mark as used; undefined charges the limits and touches no nonce. */
  readonly spend:
    | {
        readonly nonce: string
        /** Of the address, as it was when the nonce was read; under another the nonce is refused as used. */
        readonly storeEpoch: number
        readonly expiresAtMs: number
      }
    | undefined
}

export type SolutionAdmission =
  | {
      readonly status: 'admitted'
      readonly nonce: 'spent' | 'used' | 'untouched'
      readonly failures: number
    }
  | Limited
  | Unavailable

export interface RedemptionRequest {
  /** From `limitKey`, of the calling backend. */
  readonly callerKey: string
  readonly callerLimit: number
  /** undefined when the credentials name no valid API key: only the caller's address is charged. */
  readonly apiKey: { readonly id: string; readonly limit: number; readonly siteKey: string } | undefined
  /** The token to redeem; undefined charges the limits and touches no token. */
  readonly redeem: TokenRedemption | undefined
}

export interface TokenRedemption {
  readonly nonce: string
  /** From the token's claims. */
  readonly storeEpoch: number
  readonly expiresAtMs: number
  /** Names this redemption, so that its retry gets the same answer; empty for none. ASCII, at most 64 characters. */
  readonly claim: string
}

export type RedemptionAdmission =
  | {
      readonly status: 'admitted'
      /** `forgotten`: the store lost its memory since the token was issued, so it can't tell whether it was used. */
      readonly token: 'redeemed' | 'used' | 'forgotten' | 'untouched'
    }
  | Limited
  | Unavailable

/**
 * Told of every call that took operations to the store, when it was answered or given up.
 *
 * @param operations how many, at least 1
 * @param seconds since the first of them came
 */
export type OnStoreCall = (operations: number, seconds: number) => void

export interface RequestStore {
  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void
  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void
  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void
  /**
   * Epoch of the memory that will remember this address's used nonces, or this site's redeemed tokens: drawn anew
   * whenever that memory starts empty. undefined until the store was first reached.
   */
  addressEpoch(addressKey: string): number | undefined
  siteEpoch(siteKey: string): number | undefined
  /**
   * What a challenge is bound to: changes with either of these. With the site's too, since a solution that was turned
   * into a token must not yield another once that one's redemption may be forgotten.
   */
  nonceEpoch(addressKey: string, siteKey: string): number | undefined
  /** The same for all the memories that addresses are spread over; empty where there is one. */
  nonceEpochs(siteKey: string): readonly number[]
}

export interface SiteChanges {
  /** Pass it to the next call. */
  readonly revision: number
  /** The revision went back: the data was lost or replaced, and anything may have changed. */
  readonly isReplaced: boolean
  readonly siteKeys: readonly string[]
  readonly apiKeyIds: readonly string[]
}

/** Configuration. These reject when the store cannot be reached. */
export interface SiteStore {
  readSite(siteKey: string): Promise<SiteRecord | undefined>
  readApiKey(id: string): Promise<ApiKeyRecord | undefined>
  listSites(): Promise<SiteRecord[]>
  listApiKeys(): Promise<ApiKeyRecord[]>
  /**
   * Writes all records, each with an entry in the audit log; or nothing, and then resolves with false, if one of them is
   * no longer as expected. No record may occur twice.
   */
  commit(changes: readonly RecordChange[], author: Author): Promise<boolean>
  /** The latest entries of the audit log that fit, oldest first. */
  readAudit(query: AuditQuery): Promise<AuditEntry[]>
  /**
   * Notes when API keys were last used; an earlier time than the one that is noted changes nothing. Is no change of a
   * record: no worker reads anything anew.
   *
   * @param uses Unix milliseconds by API key id
   */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>
  /** Unix milliseconds by id, of those that were ever used. */
  readUses(ids: readonly string[]): Promise<Map<string, number>>
  /** What was written after `revision`; undefined asks for the present revision alone. */
  changesSince(revision: number | undefined): Promise<SiteChanges>
}

export interface LoadReport {
  readonly siteKey: string
  /** Challenges issued since the last report. */
  readonly challenges: number
}

/** Challenges per second of a site over all workers. */
export interface SiteLoad {
  readonly siteKey: string
  readonly rate: number
  readonly usualRate: number
}

export interface Store extends RequestStore, SiteStore {
  /** Resolves once the store answers; rejects with a StoreSetupError if what is configured can't work. */
  open(): Promise<void>
  close(): Promise<void>
  /** Whether the real request operations went through within the last moments. */
  isReady(): boolean
  /** One line for an operator: what of the store answers. */
  describeHealth(): string
  /** Whether this store's outages may be bridged from a worker's own memory (endpoints that fail open). */
  readonly mayBeBridged: boolean
  /** One line for the log: engine and place, without credentials. */
  readonly description: string
  exchangeLoad(reports: readonly LoadReport[]): Promise<SiteLoad[]>
}

/** A configuration that cannot work: its message is one clear line naming the variable. */
export class StoreSetupError extends Error {
  override readonly name = 'StoreSetupError'
}

/** A mark of single use outlives what it guards by this much, whatever the hosts' clocks think. */
export const MARK_MARGIN_MS = 60_000
