/**
 * The only state that workers share: in Redis, or in the store process (embedded/). One client (client/) asks either, and both pass
 * test/store/conformance.ts.
 *
 * Request operations call back once: in the same tick of the event loop if the store is known to be away, else in a later one.
 * `unavailable` means that the outcome is unknown: the caller must refuse or fall back. Limits are requests in any 60 seconds.
 */

import type { AuditEntry, AuditQuery, Author, RecordChange } from '../domain/audit.ts'
import type { Limited } from '../domain/limits.ts'
import type { Meters } from '../domain/meters.ts'
import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'
import type { StoreCause } from '../words/reasons.ts'
import type { HostNote } from './hosts.ts'

export const UNAVAILABLE = { status: 'unavailable' } as const
type Unavailable = typeof UNAVAILABLE

export type Done<Answer> = (answer: Answer) => void

export interface ChallengeRequest {
  /** A key from `AddressTags.keyOf`; with a suffix where requests count apart from the address's others (domain/address-tags.ts). */
  readonly addressKey: string
  /** Stands for the site in the store's record of an address (domain/address-log.ts): 1 to 2^21 - 1; 0 for an unknown site. */
  readonly siteTag: number
  readonly addressLimit: number
  /** What the address may request at this site; 0 for an unknown site. */
  readonly siteLimit: number
  /** undefined if the request will be refused whatever the meters are. */
  readonly metering: Metering | undefined
  /** The site's own setting, in place of POWGATE_FAIL_OPEN (client/bridge.ts). */
  readonly failOpen?: boolean | undefined
}

/** The meters (domain/meters.ts) that a request needs, and that count its solution. */
export interface Metering {
  /** Names under which the store keeps when it began to count sites and networks (`AddressTags.firstProofNames`). */
  readonly firstProofs: readonly [string, string]
  /** Names of meters: the site's; then, if networks are counted, those of the IPv4 /24 or IPv6 /48, and of the /16 or /32. */
  readonly meters: readonly string[]
  /** Proofs a minute that do not raise the price, for each of `meters`. */
  readonly free: readonly number[]
  /** True if the meters count this visit's proof. */
  readonly counts: boolean
}

interface AddressState {
  readonly status: 'admitted'
  /** Failed verifications of the address at this site in the last minute. */
  readonly failures: number
  /** Accepted proofs before this one, in the last five minutes; with an address limit over 64, five times those of the last minute. */
  readonly accepted: number
  /** With this proof counted. undefined without metering, and if a worker answers from its memory (client/bridge.ts). */
  readonly meters: Meters | undefined
}

export type ChallengeAdmission =
  | (AddressState & {
      /** Challenges of the address for this site in the last minute, before this one. */
      readonly siteCount: number
    })
  | Limited
  | Unavailable

export interface SolutionRequest extends ChallengeRequest {
  /** True if the solution is wrong or its score too low: it counts as a failure of the address, and its proof is not metered. */
  readonly failed: boolean
  /** The nonce to record as used; undefined only charges the limits. */
  readonly spend:
    | {
        readonly nonce: string
        /** What `epochOf` the address gave when the nonce was read. If it has changed since, the nonce is refused as used. */
        readonly storeEpoch: number
        readonly expiresAtMs: number
      }
    | undefined
}

/** True if the proof is added to the meters once the nonce is spent, and so may be taken back. */
export function countsProof({ metering, failed, spend }: SolutionRequest): boolean {
  return metering?.counts === true && !failed && spend !== undefined
}

/** `used` before, or of another epoch; `untouched` if none was sent. A store answers with the position in this list, from 1. */
export const NONCE_OUTCOMES = ['spent', 'used', 'untouched'] as const

export type SolutionAdmission =
  | (AddressState & { readonly nonce: (typeof NONCE_OUTCOMES)[number] })
  | Limited
  | Unavailable

export interface RedemptionRequest {
  /** The backend's key from `AddressTags.keyOf`. */
  readonly callerKey: string
  readonly callerLimit: number
  /** undefined if not valid: only the caller is charged. */
  readonly apiKey: { readonly id: string; readonly limit: number; readonly siteKey: string } | undefined
  /** undefined only charges the limits. */
  readonly redeem: TokenRedemption | undefined
  /**
   * True for a request that is refused whatever the store answers (a forged token, say), and so has no `redeem`. It counts in separate
   * windows, and uses up no limit of others. The store does the same with a token that was redeemed before, or forgotten.
   */
  readonly isJunk?: boolean
}

export interface TokenRedemption {
  readonly nonce: string
  /** The epoch in the token. */
  readonly storeEpoch: number
  readonly expiresAtMs: number
  /** A retry with the same claim succeeds; empty for none. ASCII, at most 64 characters. */
  readonly claim: string
}

/** `forgotten` if the store lost its memory since, so that the token may have been used; `untouched` if none was sent. */
export const TOKEN_OUTCOMES = ['redeemed', 'used', 'forgotten', 'untouched'] as const

export type RedemptionAdmission =
  | { readonly status: 'admitted'; readonly token: (typeof TOKEN_OUTCOMES)[number] }
  | Limited
  | Unavailable

/** Called when a call was answered or given up, `seconds` after its first operation was requested. */
export type OnStoreCall = (operations: number, seconds: number) => void

export interface StoreListener {
  /** Called after each try of `open` that failed. */
  readonly onWaiting?: (why: string, cause: StoreCause) => void
  /** Called when all shards have come up, or some have gone down: client/health.ts gathers those that go down together. */
  readonly onChange?: (up: boolean, cause: string) => void
  /** Called during an outage, at each new cause, and once a minute for each. */
  readonly onStillAway?: (cause: string) => void
  /** Called when used nonces and redemption records of this many shards may be lost. */
  readonly onForgotten?: (shards: number, of: number) => void
  /** Called for each such shard; `onForgotten` gathers several. */
  readonly onNewEpoch?: () => void
  readonly onCall?: OnStoreCall
}

export interface RequestStore {
  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void
  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void
  /**
   * Takes a solution that was just admitted out of the meters again. It must have been counted there, or another client's proof
   * would go. There is no answer: if the call fails, the proof fades.
   *
   * @param accepted from the admission's answer
   */
  takeBack(request: SolutionRequest, accepted: number): void
  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void
  /**
   * The epoch of the memory with an address's used nonces or a site's redemption records: a random number, drawn anew whenever
   * records may be lost. undefined until this worker has reached that memory.
   *
   * @param key of an address or a site
   */
  epochOf(key: string): number | undefined
  /** Milliseconds since that memory stopped answering; 0 while it answers. */
  awayMs(key: string): number
  /**
   * The epoch that challenges are bound to, of address and site. The site's counts too, because a solution must not yield a
   * second token once the first one's redemption record may be lost.
   *
   * @returns undefined until this worker has reached both shards, and while the site's is away; if the endpoint may fail open, the last
   * epoch again once that has lasted for POWGATE_FAIL_OPEN_AFTER_SECONDS
   */
  nonceEpoch(addressKey: string, siteKey: string, mayFailOpen: boolean): number | undefined
  /** What nonceEpoch gives for addresses of the other shards, to tell a nonce of another address from a forged one. Empty if there is one shard. */
  nonceEpochs(siteKey: string): readonly number[]
  /** What nonceEpoch may have given before, by the last three former epochs that this worker has met of each shard. */
  formerNonceEpochs(addressKey: string, siteKey: string): readonly number[]
}

export interface SiteChanges {
  /** The number of the last change among these; all changes in a store are numbered. */
  readonly revision: number
  /** The store's last number is lower than the one asked for: data was lost or replaced, so all records follow. */
  readonly isReplaced: boolean
  readonly siteKeys: readonly string[]
  readonly apiKeyIds: readonly string[]
}

/** Promises reject if the store cannot be reached. */
export interface SiteStore {
  /** Returns what is left of a deleted site or key, too; the lists omit it. */
  readSite(siteKey: string): Promise<SiteRecord | undefined>
  readApiKey(id: string): Promise<ApiKeyRecord | undefined>
  listSites(): Promise<SiteRecord[]>
  listApiKeys(): Promise<ApiKeyRecord[]>
  /**
   * Writes all records with their audit entries; or none, and gives false, if one differs from `expected`, or if anything changed since
   * `revision`. No record may occur twice.
   */
  commit(changes: readonly RecordChange[], author: Author, revision?: number | null): Promise<boolean>
  /** The latest matching entries, oldest first. */
  readAudit(query: AuditQuery): Promise<AuditEntry[]>
  /** @param beforeMs Unix milliseconds */
  dropAudit(beforeMs: number): Promise<void>
  /** Removes windows and used nonces of addresses, and the meters of their networks. @returns how many records */
  forget(addressKeys: readonly string[]): Promise<number>
  /**
   * Notes when API keys were last used; a later time stays. No record changes, so workers read none again.
   *
   * @param uses Unix milliseconds
   */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>
  /** Leaves out keys that were never used. */
  readUses(ids: readonly string[]): Promise<Map<string, number>>
  /**
   * Notes that a host lives, or with null that it has ended.
   *
   * @param shards the store's number of shards from now on
   * @returns the living hosts, with this one if it lives
   */
  noteHost(id: string, note: HostNote | null, shards?: number): Promise<LivingHosts>
  livingHosts(): Promise<LivingHosts>
  /** The usual rate of the site's returning addresses in proofs a minute, over all shards; undefined before the first. */
  readUsualRate(siteKey: string): Promise<number | undefined>
  /** Returns at most 1,000 changes: call again with their `revision` until it stays. undefined asks for the last revision alone. */
  changesSince(revision: number | undefined): Promise<SiteChanges>
}

export interface LivingHosts {
  /** undefined if no host has written the number yet. */
  readonly shards: number | undefined
  readonly living: readonly HostNote[]
}

export interface StoreStatus {
  /** This host's clock minus the store's; of several servers, that furthest off. */
  readonly clockAheadSeconds: number
  /** A server's policy; undefined if none may evict, or none says. */
  readonly evictsBy: string | undefined
  /** Evictions since the servers started. */
  readonly evictedKeys: number
}

export interface StoreTrouble {
  readonly cause: StoreCause
  /** Starts with the variables that are probably wrong. */
  readonly line: string
  /** True if waiting does not help. */
  readonly isLasting: boolean
}

/** Used nonces and redemption records are kept this much longer than challenges and tokens live, because hosts' clocks differ. */
export const MARK_MARGIN_MS = 60_000
