/** Sites and API keys, and the formats of the keys. */

import { createHash, hash } from 'node:crypto'
import { AddressSet } from '../addresses/address.ts'
import { siteMeter } from './address-tags.ts'
import { equalInConstantTime } from './keyring.ts'
import { OriginList } from './origin.ts'
import { SCORE_WEIGHTS, type ScoreWeights } from './score.ts'
import { completed, inEffect, type SiteSettings, withUnknownFields } from './site-fields.ts'

/** A site as it is stored. Times are Unix milliseconds. */
export interface SiteRecord extends SiteSettings {
  siteKey: string
  createdAt: number
  /** Grows with every change, even if the clock is behind. */
  updatedAt: number
  /** Bits above the base, set by `site raise`. This is no setting, so export files lack it. */
  raise?: { readonly bits: number; readonly until: number }
  /** A deleted site refuses its requests, and its key is never made again. */
  deletedAt?: number
}

/** An API key as it is stored, without the secret. */
export interface ApiKeyRecord {
  id: string
  siteKey: string
  name?: string
  /** The whole key's hash, in hexadecimal. The key has 256 random bits, so it needs no slow hash. */
  secretSha256: string
  createdAt: number
  /** Requests are refused from this time on; null or absent: never. */
  expiresAt?: number | null
  /** null while valid. */
  revokedAt: number | null
  /** Grows with every change, as a site's does; absent until the first. */
  updatedAt?: number
  /** Set when the key's site was deleted. */
  deletedAt?: number
}

/** The time of a record's last change. The copy with the lower one is from an older state of the store. */
export function updatedAtOf({ updatedAt, createdAt }: { updatedAt?: number; createdAt: number }): number {
  return updatedAt ?? createdAt
}

export function nextUpdatedAt(before: { updatedAt?: number; createdAt: number }, nowMs: number): number {
  return Math.max(nowMs, updatedAtOf(before) + 1)
}

/** Records in a worker's memory, even if the store has lost them. */
export interface CachedRecords {
  readonly sites: readonly SiteRecord[]
  readonly apiKeys: readonly ApiKeyRecord[]
}

/** What a site and API key for tests always answer (test-keys.ts). */
export type TestOutcome = 'passes' | 'fails' | 'used'

/** A site as workers use it, computed once. */
export interface Site {
  /** With defaults, and without the values of fields that only the plan `pro` includes (site-fields.ts) at a site of the plan `free`. */
  readonly record: SiteRecord
  /** Names the site in tokens: first 10 bytes of SHA-256(site key), as one-byte characters. */
  readonly tokenTag: string
  /** Names it in an address's record (address-log.ts): 21 bits of that hash, never 0. */
  readonly logTag: number
  readonly origins: OriginList
  /** Networks of the setting `known.networks`. */
  readonly known: AddressSet
  readonly ipRules: { readonly allow: AddressSet; readonly block: AddressSet }
  readonly scoreWeights: ScoreWeights
  /** The meter of its returning addresses. */
  readonly meterName: string
  /** The fixed outcome at a site of the published test keys (test-keys.ts). */
  readonly test: TestOutcome | undefined
}

/** Begins the demo page's site keys, which all services share: unless such a site lists origins, only pages of the service may use it. */
export const DEMO_KEY_PREFIX = 'site_DemoPageOfThisPowgate'

export const SITE_DEFAULTS: Readonly<SiteSettings> = completed({ name: '' })

export function compileSite(stored: SiteRecord): Site {
  // `inEffect` replaces the values that the plan does not include by defaults. Fields of later versions stay: the spread keeps those of
  // the record, withUnknownFields those inside a group such as `limits`.
  const record = { ...stored, ...withUnknownFields(inEffect(stored), stored) }
  const digest = createHash('sha256').update(record.siteKey).digest()
  return {
    record,
    tokenTag: digest.toString('latin1', 0, 10),
    logTag: digest.readUIntBE(0, 3) >> 3 || 1, // 0 means an unknown site
    origins: new OriginList(record.origins),
    known: new AddressSet(record.known.networks),
    ipRules: { allow: new AddressSet(record.ipRules.allow), block: new AddressSet(record.ipRules.block) },
    scoreWeights: { ...SCORE_WEIGHTS, ...record.scoreWeights },
    meterName: siteMeter(record.siteKey),
    test: undefined,
  }
}

export function raisedBits({ raise }: SiteRecord, nowMs: number): number {
  return raise !== undefined && nowMs < raise.until ? raise.bits : 0
}

/**
 * @param mayLackOrigin the request is a GET of the same origin, with which browsers send no Origin
 * @param isFromForeignPage the request comes from a page of another host
 * @returns why the site refuses it
 */
export function siteRefusal(
  site: Site,
  origin: string,
  mayLackOrigin: boolean,
  isFromForeignPage: boolean,
): 'site-inactive' | 'origin-refused' | undefined {
  if (!site.record.active) return 'site-inactive'
  const { siteKey, origins } = site.record
  if (siteKey.startsWith(DEMO_KEY_PREFIX) && isFromForeignPage && origins.length === 0)
    return 'origin-refused'
  const mustHaveOrigin = site.record.requireOrigin && !mayLackOrigin
  return site.origins.allows(origin, mustHaveOrigin) ? undefined : 'origin-refused'
}

export function isExpired(key: ApiKeyRecord, nowMs: number): boolean {
  return (key.expiresAt ?? Number.POSITIVE_INFINITY) <= nowMs
}

/** Texts, because /openapi.json shows them. */
export const SITE_KEY_PATTERN = '^site_[0-9A-Za-z]{22}$'
export const API_KEY_ID_PATTERN = '[0-9A-Za-z]{8}'
export const API_KEY_PATTERN = `^sk_(${API_KEY_ID_PATTERN})_[A-Za-z0-9_-]{43}$`

const SITE_KEY = new RegExp(SITE_KEY_PATTERN)
const API_KEY = new RegExp(API_KEY_PATTERN)

export function isSiteKey(text: string): boolean {
  return SITE_KEY.test(text)
}

export function apiKeyId(text: string): string | undefined {
  return API_KEY.exec(text)?.[1]
}

export function apiKeySha256(key: string): string {
  return hash('sha256', key, 'hex')
}

export function apiKeyRecord(
  apiKey: string,
  about: Pick<ApiKeyRecord, 'siteKey' | 'createdAt' | 'name' | 'expiresAt'>,
): ApiKeyRecord {
  return { id: apiKeyId(apiKey)!, ...about, secretSha256: apiKeySha256(apiKey), revokedAt: null }
}

export function isApiKeyOf(record: ApiKeyRecord, key: string): boolean {
  return equalInConstantTime(apiKeySha256(key), record.secretSha256, 64)
}

/** A new key is made of so many random bytes: over twice as many as it needs, because `base62` skips some. */
export const KEY_BYTES = 96

export function newSiteKey(random: Uint8Array): string {
  return `site_${base62(random, 22)}`
}

export function newApiKey(random: Uint8Array): string {
  const secret = Buffer.from(random.subarray(0, 32)).toString('base64url')
  return `sk_${base62(random.subarray(32), 8)}_${secret}`
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Larger bytes would favour the first characters. */
const BASE62_UNBIASED = 256 - (256 % 62)

function base62(random: Uint8Array, length: number): string {
  let text = ''
  for (const byte of random) {
    if (text.length === length) break
    if (byte < BASE62_UNBIASED) text += BASE62[byte % 62]
  }
  if (text.length < length) throw new RangeError('not enough random bytes for a key')
  return text
}
