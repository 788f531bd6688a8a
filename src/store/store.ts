/**
 * The interface of the store: the only state that workers share, as operations of the domain. Both implementations (redis/,
 * embedded/) pass one conformance suite (test/store/conformance.ts), races included.
 *
 * The three request operations take a callback and call it once. The call comes in the same event-loop turn if the store is
 * known to be away, else in a later turn. An unknown outcome is `unavailable`; the caller must refuse or fall back.
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
  /** 1 to 2^21 - 1; 0 when the site is not known. */
  readonly siteTag: number
  readonly addressLimit: number
  /** 0 when the site is not known: only the address is charged. */
  readonly siteLimit: number
  /** undefined if the request is to be refused whatever the store answers. */
  readonly metering: Metering | undefined
  /** Whether the request may be answered from the worker's memory while the store is away; undefined: as configured. */
  readonly failOpen?: boolean | undefined
}

/** Which meters (domain/meters.ts) a request asks for. A solution that spends its nonce is added to them. */
export interface Metering {
  /** From `meterNames`: what all networks of the site share. */
  readonly shared: readonly string[]
  /** From `AddressTags.networksOf`, one for each level; empty if its networks are not counted. */
  readonly networks: readonly string[]
  readonly isV4: boolean
  /** Proofs a minute of repeat sources that the operator expects of the site. */
  readonly expected: number
  /** Whether an accepted proof is counted. */
  readonly counts: boolean
  /** Whether the solution came within the site's solving time; undefined if nobody asks. */
  readonly isInTime?: boolean | undefined
}

/** What both admissions say of the address, and of its networks and its site. */
export interface AddressState {
  readonly status: 'admitted'
  /** Failed verifications of this address in the last minute. */
  readonly failures: number
  /**
   * Accepted proofs of this address in the last five minutes, before this one. Where limits are above 64 a minute: in the last
   * minute.
   */
  readonly accepted: number
  /** With this proof; undefined without metering, and from a worker's memory. */
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
  /** Whether this verification fails whatever the store answers; failures count against the address. */
  readonly failed: boolean
  /** The nonce to record as used; undefined charges the limits and records no nonce. */
  readonly spend:
    | {
        readonly nonce: string
        /** The address's epoch when the nonce was read; under another epoch the nonce is refused as used. */
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
  /** From `AddressTags.keyOf`, of the calling backend. */
  readonly callerKey: string
  readonly callerLimit: number
  /** undefined when the credentials name no valid API key; then only the caller's address is charged. */
  readonly apiKey: { readonly id: string; readonly limit: number; readonly siteKey: string } | undefined
  /** The token to redeem; undefined charges the limits and redeems no token. */
  readonly redeem: TokenRedemption | undefined
}

export interface TokenRedemption {
  readonly nonce: string
  /** From the token's claims. */
  readonly storeEpoch: number
  readonly expiresAtMs: number
  /** Identifies this redemption, so that a retry of it gets the same answer; empty for none. ASCII, at most 64 characters. */
  readonly claim: string
}

export type RedemptionAdmission =
  | {
      readonly status: 'admitted'
      /** `forgotten`: the store lost its memory since the token was issued, so whether the token was used is unknown. */
      readonly token: 'redeemed' | 'used' | 'forgotten' | 'untouched'
    }
  | Limited
  | Unavailable

/**
 * Called for each call to the store, when the call was answered or given up.
 *
 * @param operations the number of operations in the call, at least 1
 * @param seconds since the first of these operations was requested
 */
export type OnStoreCall = (operations: number, seconds: number) => void

/** What a store tells its owner. */
export interface StoreListener {
  /** `open` has tried once more. */
  readonly onWaiting?: (why: string, cause: StoreCause) => void
  /** The store went away, or came back. */
  readonly onChange?: (up: boolean, cause: string) => void
  /** The store is still away, for another cause than told last, or for a minute more. */
  readonly onStillAway?: (cause: string) => void
  /** Used nonces and redemption records are lost, or may be: those of `shards` of the `of` shards. */
  readonly onForgotten?: (shards: number, of: number) => void
  /** A shard has a new epoch; told each time, where `onForgotten` is told of several at once. */
  readonly onNewEpoch?: () => void
  readonly onCall?: OnStoreCall
}

export interface RequestStore {
  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void
  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void
  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void
  /**
   * Epoch of the memory that holds an address's used nonces, or a site's redemption records. A new epoch is drawn whenever
   * that memory starts empty. undefined until the store is first reached.
   *
   * @param key an address key or a site key
   */
  epochOf(key: string): number | undefined
  /** How long the memory that holds the key has been away, in milliseconds; 0 while it answers. */
  awayMs(key: string): number
  /**
   * The epoch that a challenge is bound to: changes with the address's epoch and with the site's. The site's counts too,
   * because a solution that became a token must not yield another once the redemption record of the first may be lost.
   */
  nonceEpoch(addressKey: string, siteKey: string): number | undefined
  /** `nonceEpoch` for each of the memories that addresses are spread over; empty where there is only one. */
  nonceEpochs(siteKey: string): readonly number[]
  /** What `nonceEpoch` was before the memory was lost, as far as this worker knows. */
  formerNonceEpochs(addressKey: string, siteKey: string): readonly number[]
}

export interface SiteChanges {
  /** For the next call. */
  readonly revision: number
  /** The revision went back: the data was lost or replaced, and anything may have changed. All records are told from the first on. */
  readonly isReplaced: boolean
  readonly siteKeys: readonly string[]
  readonly apiKeyIds: readonly string[]
}

/** Sites, API keys and the audit log. All promises reject when the store cannot be reached. */
export interface SiteStore {
  /** Also what is left of a deleted one, which the lists do not have. */
  readSite(siteKey: string): Promise<SiteRecord | undefined>
  readApiKey(id: string): Promise<ApiKeyRecord | undefined>
  listSites(): Promise<SiteRecord[]>
  listApiKeys(): Promise<ApiKeyRecord[]>
  /**
   * Writes all records, each with an entry in the audit log. If one record differs from what was expected, writes nothing and
   * resolves with false. No record may occur twice.
   */
  commit(changes: readonly RecordChange[], author: Author): Promise<boolean>
  /** The latest entries of the audit log that match the query, oldest first. */
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
   * Stores when API keys were last used; a time earlier than the stored one changes nothing. This changes no record, so no
   * worker reads a record anew.
   *
   * @param uses Unix milliseconds by API key id
   */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>
  /** Unix milliseconds by API key id, without the keys that were never used. */
  readUses(ids: readonly string[]): Promise<Map<string, number>>
  /**
   * Tells of the hosts that live; by then this one does too, if it says what it is.
   *
   * @param note null: the host ends; undefined: nothing is noted
   * @param shards becomes the store's number of shards
   */
  noteHost(id: string, note?: HostNote | null, shards?: number): Promise<LivingHosts>
  /** What the store's meters say of a site; on a Cluster, the mean of all shards. */
  readSiteMeters(siteKey: string): Promise<SiteMeters & SolveMeters>
  /**
   * Of the records written after `revision` those that were written first: to be called until `revision` stays. undefined asks
   * for the present revision alone.
   */
  changesSince(revision: number | undefined): Promise<SiteChanges>
}

export interface LivingHosts {
  /** undefined if none was ever noted. */
  readonly shards: number | undefined
  readonly living: readonly HostNote[]
}

export interface Store {
  readonly requests: RequestStore
  readonly sites: SiteStore
  /** Resolves once the store answers; rejects with a StoreSetupError if the configuration cannot work. */
  open(): Promise<void>
  close(): Promise<void>
  /** Whether the real request operations have succeeded recently. */
  isReady(): boolean
  /** Why it is not ready; undefined if it is. */
  trouble(): StoreTrouble | undefined
  /** One line for the log: engine and location, without credentials. */
  readonly description: string
  /** Rejects if it does not answer. */
  look(): Promise<StoreStatus>
}

/** How the store looks from this host. */
export interface StoreStatus {
  /** By which this host's clock is ahead of the store's; of several servers, the one that is furthest off. */
  readonly clockAheadSeconds: number
  /** The policy of a server that may evict keys; undefined if none may, or none says. */
  readonly evictsBy: string | undefined
  /** Keys that the servers have evicted since their starts. */
  readonly evictedKeys: number
}

export interface StoreTrouble {
  readonly cause: StoreCause
  /** Starts with the variables that are likely to be wrong. */
  readonly line: string
  /** Nothing that waiting mends. */
  readonly isLasting: boolean
}

/** A configuration that cannot work. The message is one line that names the variable. */
export class StoreSetupError extends Error {
  override readonly name = 'StoreSetupError'
}

/** A used nonce or redemption record outlives its challenge or token by this much, because hosts' clocks differ. */
export const MARK_MARGIN_MS = 60_000
