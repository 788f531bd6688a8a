/**
 * The store: the only state that workers share, as operations of the domain. Both stores (redis/, embedded/) pass one
 * conformance suite (test/store/conformance.ts), races included.
 *
 * The three request operations call back once: in the same event-loop turn if the store is known to be away, else in a later
 * one. `unavailable` means that the outcome is unknown, so the caller must refuse or fall back.
 */

import type { AuditEntry, AuditQuery, Author, RecordChange } from '../domain/audit.ts'
import type { HostNote } from '../domain/hosts.ts'
import type { Limited } from '../domain/limits.ts'
import type { Meters, SiteMeters, SolveMeters } from '../domain/meters.ts'
import type { StoreCause } from '../domain/reason-words.ts'
import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'

export const UNAVAILABLE = { status: 'unavailable' } as const
type Unavailable = typeof UNAVAILABLE

export type Done<Answer> = (answer: Answer) => void

export interface ChallengeRequest {
  /** From `AddressTags.keyOf`, or of a separate window. */
  readonly addressKey: string
  /** 1 to 2^21 - 1; 0 for an unknown site. */
  readonly siteTag: number
  readonly addressLimit: number
  /** 0 for an unknown site: only the address is charged. */
  readonly siteLimit: number
  /** undefined if the request will be refused anyway. */
  readonly metering: Metering | undefined
  /** Whether to answer from the worker's memory while the store is away; undefined: as configured. */
  readonly failOpen?: boolean | undefined
}

/** The meters (domain/meters.ts) that a request needs. A solution that spends its nonce is added to them. */
export interface Metering {
  /** From `meterNames`; common to all networks. */
  readonly shared: readonly string[]
  /** From `AddressTags.networksOf`, by level; empty if networks are not counted. */
  readonly networks: readonly string[]
  readonly isV4: boolean
  /** The operator's estimate: proofs of repeat sources a minute. */
  readonly expected: number
  /** Whether an accepted proof counts. */
  readonly counts: boolean
  /** Whether the solution met the site's target solve time; undefined if it has none. */
  readonly isInTime?: boolean | undefined
}

export interface AddressState {
  readonly status: 'admitted'
  /** In the last minute. */
  readonly failures: number
  /**
   * Accepted proofs of this address in the last five minutes, before this one; in the last minute if limits exceed 64 a minute.
   */
  readonly accepted: number
  /** Including this proof; undefined without metering, and from a worker's memory. */
  readonly meters: Meters | undefined
}

export type ChallengeAdmission =
  | (AddressState & {
      /** Challenges of this address for this site in the last minute, before this one. */
      readonly siteCount: number
    })
  | Limited
  | Unavailable

export interface SolutionRequest extends ChallengeRequest {
  /** Fails whatever the store answers; failures count against the address. */
  readonly failed: boolean
  /** The nonce to record as used; undefined only charges the limits. */
  readonly spend:
    | {
        readonly nonce: string
        /** When the nonce was read. If the address's epoch has changed since, the nonce is refused as used. */
        readonly storeEpoch: number
        readonly expiresAtMs: number
      }
    | undefined
}

export type SolutionAdmission =
  | (AddressState & { readonly nonce: 'spent' | 'used' | 'untouched' })
  | Limited
  | Unavailable

export interface RedemptionRequest {
  /** The backend's, from `AddressTags.keyOf`. */
  readonly callerKey: string
  readonly callerLimit: number
  /** undefined without a valid API key; only the caller's address is charged then. */
  readonly apiKey: { readonly id: string; readonly limit: number; readonly siteKey: string } | undefined
  /** undefined only charges the limits. */
  readonly redeem: TokenRedemption | undefined
}

export interface TokenRedemption {
  readonly nonce: string
  /** From the token. */
  readonly storeEpoch: number
  readonly expiresAtMs: number
  /** The same claim gets the same answer, so a retry succeeds; empty for none. ASCII, at most 64 characters. */
  readonly claim: string
}

export type RedemptionAdmission =
  | {
      readonly status: 'admitted'
      /** `forgotten`: the store lost its memory after the token was issued, so nobody knows whether it was used. */
      readonly token: 'redeemed' | 'used' | 'forgotten' | 'untouched'
    }
  | Limited
  | Unavailable

/**
 * When a call was answered or given up.
 *
 * @param operations in the call, at least 1
 * @param seconds since the first was requested
 */
export type OnStoreCall = (operations: number, seconds: number) => void

export interface StoreListener {
  /** `open` tried once more. */
  readonly onWaiting?: (why: string, cause: StoreCause) => void
  readonly onChange?: (up: boolean, cause: string) => void
  /** For a new cause, or for another minute. */
  readonly onStillAway?: (cause: string) => void
  /** Used nonces and redemption records of `shards` of `of` shards are, or may be, lost. */
  readonly onForgotten?: (shards: number, of: number) => void
  /** A shard has a new epoch; called for each, while `onForgotten` covers several. */
  readonly onNewEpoch?: () => void
  readonly onCall?: OnStoreCall
}

export interface RequestStore {
  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void
  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void
  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void
  /**
   * Epoch of the memory with an address's used nonces, or a site's redemption records. Whenever that memory starts empty, it
   * draws a new one. undefined until the store is first reached.
   *
   * @param key an address key or a site key
   */
  epochOf(key: string): number | undefined
  /** How long that memory has been away, in milliseconds; 0 while it answers. */
  awayMs(key: string): number
  /**
   * The epoch that challenges are bound to; changes with the address's and the site's. The site's counts because a solution
   * must not yield a second token once the first one's redemption record may be lost.
   */
  nonceEpoch(addressKey: string, siteKey: string): number | undefined
  /** `nonceEpoch` for each memory that addresses are spread over; empty if there is one. */
  nonceEpochs(siteKey: string): readonly number[]
  /** `nonceEpoch` before the memory was lost, as far as this worker knows. */
  formerNonceEpochs(addressKey: string, siteKey: string): readonly number[]
}

export interface SiteChanges {
  /** For the next call. */
  readonly revision: number
  /** The revision went back, so the data was lost or replaced, and all records follow from the first on. */
  readonly isReplaced: boolean
  readonly siteKeys: readonly string[]
  readonly apiKeyIds: readonly string[]
}

/** Promises reject if the store cannot be reached. */
export interface SiteStore {
  /** Also what is left of a deleted one, which the lists do not have. */
  readSite(siteKey: string): Promise<SiteRecord | undefined>
  readApiKey(id: string): Promise<ApiKeyRecord | undefined>
  listSites(): Promise<SiteRecord[]>
  listApiKeys(): Promise<ApiKeyRecord[]>
  /**
   * Writes all records with their audit entries, or nothing and resolves with false if one differs from `expected`. No record
   * may occur twice.
   */
  commit(changes: readonly RecordChange[], author: Author): Promise<boolean>
  /** The latest matching entries, oldest first. */
  readAudit(query: AuditQuery): Promise<AuditEntry[]>
  /** Removes the entries of the audit log from before then, Unix milliseconds. */
  dropAudit(beforeMs: number): Promise<void>
  /**
   * Removes the windows and used nonces of addresses, and the meters of their owners' networks.
   *
   * @param addressKeys from `AddressTags.keyOf`
   * @returns how many records there were
   */
  forget(addressKeys: readonly string[]): Promise<number>
  /**
   * Stores when API keys were last used, unless a later time is stored. Changes no record, so workers read nothing again.
   *
   * @param uses Unix milliseconds
   */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>
  /** Unix milliseconds; without keys that were never used. */
  readUses(ids: readonly string[]): Promise<Map<string, number>>
  /**
   * Returns the living hosts, this one included if it gives a note.
   *
   * @param note null: this host ends; undefined: notes nothing
   * @param shards the store's number of shards from now on
   */
  noteHost(id: string, note?: HostNote | null, shards?: number): Promise<LivingHosts>
  /** On a Cluster, the mean of all shards. */
  readSiteMeters(siteKey: string): Promise<SiteMeters & SolveMeters>
  /** The first of the records written after `revision`; call until `revision` stays. undefined only asks for the revision. */
  changesSince(revision: number | undefined): Promise<SiteChanges>
}

export interface LivingHosts {
  /** undefined if never noted. */
  readonly shards: number | undefined
  readonly living: readonly HostNote[]
}

export interface Store {
  readonly requests: RequestStore
  readonly sites: SiteStore
  /** Resolves once the store answers. Rejects with a StoreSetupError if the configuration cannot work. */
  open(): Promise<void>
  close(): Promise<void>
  /** Whether real request operations have succeeded recently. */
  isReady(): boolean
  /** Why it is not ready. */
  trouble(): StoreTrouble | undefined
  /** For the log: engine and location, without credentials. */
  readonly description: string
  /** Rejects if it does not answer. */
  look(): Promise<StoreStatus>
}

/** As seen from this host. */
export interface StoreStatus {
  /** This host's clock minus the store's; of several servers, the furthest off. */
  readonly clockAheadSeconds: number
  /** A server's eviction policy; undefined if none may evict, or none says. */
  readonly evictsBy: string | undefined
  /** Since the servers started. */
  readonly evictedKeys: number
}

export interface StoreTrouble {
  readonly cause: StoreCause
  /** Starts with the variables that are probably wrong. */
  readonly line: string
  /** Waiting does not help. */
  readonly isLasting: boolean
}

/** The configuration cannot work; the message names the variable. */
export class StoreSetupError extends Error {
  override readonly name = 'StoreSetupError'
}

/** Used nonces and redemption records outlive their challenge or token by this, because hosts' clocks differ. */
export const MARK_MARGIN_MS = 60_000
