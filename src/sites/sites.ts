/** Creates, changes and deletes sites and API keys in a store, each with its audit entry. */

import { randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { isWide } from '../addresses/address.ts'
import { type Author, auditEntry, type RecordChange, siteChanges } from '../domain/audit.ts'
import { publicSuffixOf } from '../domain/origin.ts'
import {
  type ApiKeyRecord,
  apiKeyRecord,
  KEY_BYTES,
  newApiKey,
  newSiteKey,
  nextUpdatedAt,
  type SiteRecord,
} from '../domain/site.ts'
import { completed, type SiteSettings, withUnknownFields } from '../domain/site-fields.ts'
import { NAME } from '../domain/value-forms.ts'
import type { SiteStore } from '../store/store.ts'
import { OperatorError, UsageError } from '../words/errors.ts'

/** Settings to change. An empty group, such as `limits: {}`, removes the site's own values of the group. */
export type SiteOptions = Partial<SiteSettings>

export interface KeyOptions {
  readonly name?: string
  /** Unix milliseconds; null: never. */
  readonly expiresAt?: number | null
}

/**
 * Makes a site's record. Settings that are not given get their defaults. `kept` has what no setting changes; if it is a whole
 * record, its fields of a later version of powgate are taken over too.
 */
export function siteRecord(
  settings: SiteOptions & { name: string },
  kept: Pick<SiteRecord, 'siteKey' | 'createdAt'> & { readonly raise?: SiteRecord['raise'] | undefined },
  updatedAt: number,
): SiteRecord {
  const { siteKey, createdAt, raise } = kept
  const all = withUnknownFields(completed(settings), kept)
  return { siteKey, ...all, createdAt, updatedAt, ...(raise && { raise }) }
}

export async function createSite(
  store: SiteStore,
  options: SiteOptions & { name: string },
  author: Author = authorOfCommand(),
): Promise<{ site: SiteRecord; apiKey: string }> {
  const { site, apiKey, changes } = newSite(options)
  await commit(store, changes, author)
  return { site, apiKey }
}

export const drawSiteKey = () => newSiteKey(randomBytes(KEY_BYTES))

/** Makes a site and its first API key. @returns both, and the changes that create them */
export function newSite(options: SiteOptions & { name: string }) {
  const now = Date.now()
  const identity = { siteKey: drawSiteKey(), createdAt: now }
  const site = siteRecord(options, identity, now)
  const { record, apiKey } = newKey(site.siteKey, {}, now)
  const siteCreated = { site, expected: undefined }
  const keyCreated = { apiKey: record, expected: undefined }
  return { site, apiKey, changes: [siteCreated, keyCreated] }
}

/** Does not check that the site exists. */
export async function createApiKey(
  store: SiteStore,
  siteKey: string,
  options: KeyOptions = {},
  author: Author = authorOfCommand(),
): Promise<{ record: ApiKeyRecord; apiKey: string }> {
  const created = newKey(siteKey, options, Date.now())
  await commit(store, [{ apiKey: created.record, expected: undefined }], author)
  return created
}

/** The changes that delete a site and its API keys. A record of each stays, so that no new one ever gets its key. */
export function deletion(site: SiteRecord, apiKeys: readonly ApiKeyRecord[], now: number): RecordChange[] {
  const { siteKey, name, createdAt } = site
  const remains = siteRecord({ name, active: false }, { siteKey, createdAt }, nextUpdatedAt(site, now))
  const own = apiKeys.filter(key => key.siteKey === siteKey)
  return [
    { site: { ...remains, deletedAt: now }, expected: site },
    ...own.map(key => {
      const ended = { revokedAt: key.revokedAt ?? now, updatedAt: nextUpdatedAt(key, now), deletedAt: now }
      return { apiKey: { ...key, ...ended }, expected: key }
    }),
  ]
}

/** @returns the record, and the API key itself, which is stored nowhere */
export function newKey(
  siteKey: string,
  { name, expiresAt = null }: KeyOptions,
  now: number,
): { record: ApiKeyRecord; apiKey: string } {
  const apiKey = newApiKey(randomBytes(KEY_BYTES))
  const named = name === undefined ? {} : { name }
  return { record: apiKeyRecord(apiKey, { siteKey, ...named, createdAt: now, expiresAt }), apiKey }
}

/** @throws OperatorError if there is no site. The key is its cause, by which a command asks whether the running service remembers the site */
export async function findSite(store: SiteStore, siteKey: string): Promise<SiteRecord> {
  const site = await store.readSite(siteKey)
  if (site === undefined) throw new OperatorError(`there is no site ${siteKey}`, { cause: siteKey })
  if (site.deletedAt !== undefined)
    throw new OperatorError(`the site ${siteKey} was deleted at ${new Date(site.deletedAt).toISOString()}`)
  return site
}

/**
 * Writes only if something changes.
 *
 * @param change the settings to change; or a function that computes all settings; or a raise, undefined to end it
 */
export async function updateSite(
  store: SiteStore,
  siteKey: string,
  change:
    | SiteOptions
    | { readonly raise: SiteRecord['raise'] | undefined }
    | ((before: SiteRecord) => SiteSettings),
  author: Author = authorOfCommand(),
): Promise<SiteRecord> {
  const before = await findSite(store, siteKey)
  const settings = typeof change === 'function' ? change(before) : { ...before, ...change }
  const kept = 'raise' in change ? { ...before, raise: change.raise } : before
  const after = siteRecord(settings, kept, nextUpdatedAt(before, Date.now()))
  if (siteChanges(before, after).length === 0) return before
  await commit(store, [{ site: after, expected: before }], author)
  return after
}

/** Writes only if something changes. @throws OperatorError if the key is revoked; an expired one may change */
export async function updateApiKey(
  store: SiteStore,
  id: string,
  change: KeyOptions | Pick<ApiKeyRecord, 'revokedAt'>,
  author: Author = authorOfCommand(),
): Promise<ApiKeyRecord> {
  const before = await store.readApiKey(id)
  if (before === undefined) throw new OperatorError(`there is no API key with the id ${id}`, { cause: id })
  if (before.revokedAt !== null) throw new OperatorError(`the API key ${id} is revoked already`)
  const after = { ...before, ...change, updatedAt: nextUpdatedAt(before, Date.now()) }
  const written = { apiKey: after, expected: before }
  if (auditEntry(written, author).changes.length === 0) return before
  await commit(store, [written], author)
  return after
}

/** Writes all changes, or none. @throws OperatorError if a record is no longer the expected one, or the store has another revision */
export async function commit(
  store: SiteStore,
  changes: readonly RecordChange[],
  author: Author,
  revision?: number,
): Promise<void> {
  if (!(await store.commit(changes, author, revision)))
    throw new OperatorError(
      'somebody else changed this at the same moment, so nothing was written. Try again',
    )
}

/** Names POWGATE_ACTOR, else who called sudo, else the process's user. @param how the command's name; tests give none. @throws UsageError */
export function authorOfCommand(how = 'code'): Author {
  const { env } = process
  const variable = ['POWGATE_ACTOR', 'SUDO_USER'].find(name => env[name]?.trim())
  const actor = variable === undefined ? userName() : env[variable]!.trim()
  if (variable !== undefined && !NAME.accepts(actor))
    throw new UsageError(`${variable}: expected ${NAME.expects}, got ${JSON.stringify(actor)}`)
  return { who: atHost(actor), how }
}

export function authorInService(how: string): Author {
  return { who: atHost(`powgate (${how})`), how }
}

function atHost(who: string): string {
  return `${who} at ${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}` // containers run as users without a name
  }
}

/** A carrier has a /32 of IPv6. A wider known network is probably a mistake. */
const CARRIER_V6_BITS = 32

/** Settings that are valid, but may be a mistake. */
export function siteWarnings(site: SiteRecord): string[] {
  const { known, origins } = completed(site)
  const wide = known.networks.filter(range => isWide(range, CARRIER_V6_BITS))
  return [
    ...wide.map(
      range => `the known network ${range} is wide: whatever comes from it makes no challenge harder`,
    ),
    ...origins.flatMap(pattern => {
      const suffix = publicSuffixOf(pattern)
      return suffix === undefined
        ? []
        : [`anybody can get a name below ${suffix} that matches ${pattern}, and use the site key there`]
    }),
  ].map(text => `site ${site.siteKey}: ${text}`)
}
