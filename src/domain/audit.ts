/**
 * The audit log: who changed which site or API key, when, by what, from what to what. The entry is computed from the
 * records that are written, and both stores write it in the same atomic operation: no change goes without one, and none
 * says anything else than what happened. Nothing secret is in it, not even a hash.
 */

import type { ApiKeyRecord, SiteRecord } from './site.ts'

/** A record to write, and the stored one that it replaces; undefined: there is none yet. */
export type RecordChange =
  | { readonly site: SiteRecord; readonly expected: SiteRecord | undefined }
  | { readonly apiKey: ApiKeyRecord; readonly expected: ApiKeyRecord | undefined }

/** Who makes a change. */
export interface Author {
  /** A person, or a part of powgate, and the host. */
  readonly who: string
  /** The command, or what else led to it. */
  readonly how: string
}

export type AuditAction =
  | 'site-created'
  | 'site-changed'
  | 'site-disabled'
  | 'site-enabled'
  | 'key-created'
  | 'key-changed'
  | 'key-revoked'

export interface FieldChange {
  /** Such as `threshold` or `difficulty.base`. */
  readonly field: string
  /** JSON values; null: there was or is none. */
  readonly from: unknown
  readonly to: unknown
}

export interface AuditEntry extends Author {
  /** Unix milliseconds, by the clock of the store; later entries never have earlier times. */
  readonly at: number
  readonly action: AuditAction
  readonly siteKey: string
  /** Only of an API key. */
  readonly keyId?: string
  /** What people call the site or the API key, if anything. */
  readonly name?: string
  readonly changes: readonly FieldChange[]
}

/** The store adds the time. */
export type NewAuditEntry = Omit<AuditEntry, 'at'>

/** What is asked of the audit log: the latest entries that fit, oldest first. */
export interface AuditQuery {
  readonly limit: number
  readonly siteKey?: string | undefined
  /** Unix milliseconds. */
  readonly sinceMs?: number | undefined
}

export function auditEntry(change: RecordChange, { who, how }: Author): NewAuditEntry {
  if ('site' in change) {
    const { site, expected } = change
    const changes = siteChanges(expected, site)
    return { who, how, action: siteAction(site, expected), siteKey: site.siteKey, name: site.name, changes }
  }
  const { apiKey, expected } = change
  const { siteKey, name } = apiKey
  const changes = fieldChanges(expected && keyFields(expected), keyFields(apiKey))
  const named = name === undefined ? {} : { name }
  return { who, how, action: keyAction(apiKey, expected), siteKey, keyId: apiKey.id, ...named, changes }
}

/** What differs between the settings of two sites; all that is set if there was none before. */
export function siteChanges(before: SiteRecord | undefined, after: SiteRecord): FieldChange[] {
  return fieldChanges(before && siteFields(before), siteFields(after))
}

function siteAction(site: SiteRecord, expected: SiteRecord | undefined): AuditAction {
  if (expected === undefined) return 'site-created'
  if (site.active === expected.active) return 'site-changed'
  return site.active ? 'site-enabled' : 'site-disabled'
}

function keyAction(apiKey: ApiKeyRecord, expected: ApiKeyRecord | undefined): AuditAction {
  if (expected === undefined) return 'key-created'
  return apiKey.revokedAt !== null && expected.revokedAt === null ? 'key-revoked' : 'key-changed'
}

type Fields = Readonly<Record<string, unknown>>

/** Every setting by its name; of a group, each by `<group>.<name>`. */
function siteFields({ siteKey: _, createdAt: __, updatedAt: ___, ...settings }: SiteRecord): Fields {
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value !== 'object' || Array.isArray(value)) fields[name] = value
    else for (const [part, partValue] of Object.entries(value)) fields[`${name}.${part}`] = partValue
  }
  return fields
}

/** Times as texts; the hash of the secret is not among them. */
function keyFields({ name, expiresAt, revokedAt }: ApiKeyRecord): Fields {
  return { name, expiresAt: timeOf(expiresAt), revokedAt: timeOf(revokedAt) }
}

function timeOf(unixMs: number | null | undefined): string | undefined {
  return unixMs == null ? undefined : new Date(unixMs).toISOString()
}

function fieldChanges(before: Fields = {}, after: Fields): FieldChange[] {
  const names = new Set([...Object.keys(after), ...Object.keys(before)])
  return [...names]
    .map(field => ({ field, from: before[field] ?? null, to: after[field] ?? null }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to))
}
