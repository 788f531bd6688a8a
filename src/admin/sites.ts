/** Creating and changing sites and API keys: what the command line and the first start share. */

import { randomBytes } from 'node:crypto'
import {
  type ApiKeyRecord,
  apiKeyId,
  apiKeySha256,
  newApiKey,
  newSiteKey,
  SITE_DEFAULTS,
  type SiteRecord,
} from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'

/** Everything of a site that can be chosen. */
export type SiteSettings = Omit<SiteRecord, 'siteKey' | 'createdAt' | 'updatedAt'>

/** What may be set on a site; the rest is kept. */
export type SiteOptions = Partial<SiteSettings>

export interface CreatedSite {
  readonly site: SiteRecord
  /** Shown once: only its hash is stored. */
  readonly apiKey: string
}

/** Problems that the person at the command line can mend; the message has a line for each. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
}

export function defaultSettings(name: string): SiteSettings {
  return { ...SITE_DEFAULTS, name, origins: [], ipRules: { allow: [], block: [] } }
}

/** The API key is written first: if the second write fails there is no site, rather than one without a key. */
export async function createSite(
  store: SiteStore,
  options: SiteOptions & { name: string },
): Promise<CreatedSite> {
  const now = Date.now()
  const site: SiteRecord = {
    ...defaultSettings(options.name),
    ...options,
    siteKey: newSiteKey(randomBytes(96)),
    createdAt: now,
    updatedAt: now,
  }
  const { apiKey } = await createApiKey(store, site.siteKey)
  await written(store.writeSite(site, undefined))
  return { site, apiKey }
}

/** Does not look whether the site exists. */
export async function createApiKey(
  store: SiteStore,
  siteKey: string,
): Promise<{ record: ApiKeyRecord; apiKey: string }> {
  const apiKey = newApiKey(randomBytes(128))
  const record: ApiKeyRecord = {
    id: apiKeyId(apiKey)!,
    siteKey,
    secretSha256: apiKeySha256(apiKey),
    createdAt: Date.now(),
    revokedAt: null,
  }
  await written(store.writeApiKey(record, undefined))
  return { record, apiKey }
}

export async function findSite(store: SiteStore, siteKey: string): Promise<SiteRecord> {
  const site = await store.readSite(siteKey)
  if (site === undefined) throw new AdminError(`there is no site ${siteKey}`)
  return site
}

/** @param change what to set, or how to find that from what is set now; if it throws nothing is written */
export async function updateSite(
  store: SiteStore,
  siteKey: string,
  change: SiteOptions | ((before: SiteRecord) => SiteOptions),
): Promise<SiteRecord> {
  const before = await findSite(store, siteKey)
  const options = typeof change === 'function' ? change(before) : change
  const after: SiteRecord = { ...before, ...options, siteKey, updatedAt: Date.now() }
  await written(store.writeSite(after, before))
  return after
}

export async function revokeApiKey(store: SiteStore, id: string): Promise<ApiKeyRecord> {
  const before = await store.readApiKey(id)
  if (before === undefined) throw new AdminError(`there is no API key with the id ${id}`)
  if (before.revokedAt !== null) throw new AdminError(`the API key ${id} is revoked already`)
  const after = { ...before, revokedAt: Date.now() }
  await written(store.writeApiKey(after, before))
  return after
}

async function written(write: Promise<boolean>): Promise<void> {
  if (!(await write))
    throw new AdminError('somebody else changed this at the same moment; nothing was written, try again')
}
