/**
 * The audit log: who changed which fields of a site or API key, when and how. Both stores write an entry in one atomic operation with
 * the record that changed. An entry holds no hash of a secret. It outlives a site's block list, so it names networks in place of the
 * addresses of people.
 */

import { coarseRange } from '../addresses/address.ts'
import type { ApiKeyRecord, SiteRecord } from './site.ts'
import { completed, FIELDS, valueIn } from './site-fields.ts'

/** A record to write, but only if the store still has the `expected` one, or none if that is undefined. */
export type RecordChange =
  | { readonly site: SiteRecord; readonly expected: SiteRecord | undefined }
  | { readonly apiKey: ApiKeyRecord; readonly expected: ApiKeyRecord | undefined }

export interface Author {
  /** A person or a part of powgate, and the host. */
  readonly who: string
  /** A command, or another cause. */
  readonly how: string
}

type AuditAction =
  | 'site-created'
  | 'site-changed'
  | 'site-disabled'
  | 'site-enabled'
  | 'site-deleted'
  | 'key-created'
  | 'key-changed'
  | 'key-revoked'
  | 'key-deleted'

export interface FieldChange {
  /** Example: `difficulty.base`. */
  readonly field: string
  /** JSON; null for no value. */
  readonly from: unknown
  readonly to: unknown
}

export interface AuditEntry extends Author {
  /** Unix milliseconds, by the store's clock; never decreases. */
  readonly at: number
  readonly action: AuditAction
  readonly siteKey: string
  readonly keyId?: string
  readonly name?: string
  readonly changes: readonly FieldChange[]
}

export type NewAuditEntry = Omit<AuditEntry, 'at'>

/** Asks for the latest matching entries, oldest first. */
export interface AuditQuery {
  readonly limit: number
  readonly siteKey?: string | undefined
  /** Unix milliseconds. */
  readonly sinceMs?: number | undefined
}

export function auditEntry(change: RecordChange, { who, how }: Author): NewAuditEntry {
  if ('site' in change) {
    const { site, expected } = change
    const changes = siteChanges(expected, site).map(withoutAddresses)
    return { who, how, action: siteAction(site, expected), siteKey: site.siteKey, name: site.name, changes }
  }
  const { apiKey, expected } = change
  const { siteKey, name } = apiKey
  const changes = fieldChanges(expected && keyValues(expected), keyValues(apiKey))
  const named = name === undefined ? {} : { name }
  return { who, how, action: keyAction(apiKey, expected), siteKey, keyId: apiKey.id, ...named, changes }
}

/** Includes `raise`, and whole addresses, which only `auditEntry` replaces. A new site shows every setting that has a value. */
export function siteChanges(before: SiteRecord | undefined, after: SiteRecord): FieldChange[] {
  return fieldChanges(before && siteValues(before), siteValues(after))
}

function siteAction(site: SiteRecord, expected: SiteRecord | undefined): AuditAction {
  if (expected === undefined) return 'site-created'
  if (site.deletedAt !== undefined) return 'site-deleted'
  if (site.active === expected.active) return 'site-changed'
  return site.active ? 'site-enabled' : 'site-disabled'
}

function keyAction(apiKey: ApiKeyRecord, expected: ApiKeyRecord | undefined): AuditAction {
  if (expected === undefined) return 'key-created'
  if (apiKey.deletedAt !== undefined) return 'key-deleted'
  return apiKey.revokedAt !== null && expected.revokedAt === null ? 'key-revoked' : 'key-changed'
}

export const ADDRESS_FIELDS: readonly string[] = ['ipRules.allow', 'ipRules.block', 'known.networks']

function withoutAddresses({ field, from, to }: FieldChange): FieldChange {
  if (!ADDRESS_FIELDS.includes(field)) return { field, from, to }
  const networks = (list: unknown) => (list as readonly string[] | null)?.map(coarseRange) ?? null
  return { field, from: networks(from), to: networks(to) }
}

type Fields = Readonly<Record<string, unknown>>

function siteValues(site: SiteRecord): Fields {
  const settings = completed(site)
  const { bits, until } = site.raise ?? {}
  return {
    ...Object.fromEntries(FIELDS.map(field => [field.name, valueIn(settings, field)])),
    'raise.bits': bits,
    'raise.until': timeOf(until),
  }
}

function keyValues({ name, expiresAt, revokedAt }: ApiKeyRecord): Fields {
  return { name, expiresAt: timeOf(expiresAt), revokedAt: timeOf(revokedAt) }
}

function timeOf(unixMs: number | null | undefined): string | undefined {
  return unixMs == null ? undefined : new Date(unixMs).toISOString()
}

function fieldChanges(before: Fields = {}, after: Fields): FieldChange[] {
  return Object.keys(after)
    .map(field => ({ field, from: before[field] ?? null, to: after[field] ?? null }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to))
}
