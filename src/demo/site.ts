/**
 * The demo page's own site. Its site key is constant and its API key derived from the master secret, so they are the same at
 * every start, on every host and in every worker.
 */

import { hkdfSync } from 'node:crypto'
import type { Author, RecordChange } from '../domain/audit.ts'
import { CONTRACT_LIMITS } from '../domain/endpoint.ts'
import { apiKeyRecord, newApiKey, SITE_DEFAULTS, type SiteRecord } from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'

export const DEMO_SITE_KEY = 'site_DemoPageOfThisPowgate0'

const KEY_MATERIAL_BYTES = 128

/** Reveals nothing about the master secret (RFC 5869). */
export function demoApiKey(secret: string): string {
  return newApiKey(
    new Uint8Array(hkdfSync('sha256', secret, '', 'powgate v1 demo page API key', KEY_MATERIAL_BYTES)),
  )
}

/**
 * Creates what is missing, and keeps what people changed, such as a revoked key. The key of an earlier master secret stays
 * valid, but nobody has it.
 */
export async function prepareDemoSite(store: SiteStore, apiKey: string, author: Author): Promise<void> {
  const now = Date.now()
  const site: SiteRecord = {
    ...SITE_DEFAULTS,
    siteKey: DEMO_SITE_KEY,
    name: 'demo page',
    threshold: 0, // everyone passes, and sees the score
    // Counted apart: a flood of the demo uses up no other backend's limit at the same address.
    limits: { redeem: CONTRACT_LIMITS.redeemApiKey },
    createdAt: now,
    updatedAt: now,
  }
  const key = apiKeyRecord(apiKey, { siteKey: DEMO_SITE_KEY, name: 'demo page', createdAt: now })
  const missing: RecordChange[] = []
  if ((await store.readApiKey(key.id)) === undefined) missing.push({ apiKey: key, expected: undefined })
  if ((await store.readSite(DEMO_SITE_KEY)) === undefined) missing.push({ site, expected: undefined })
  // Unless another host was faster.
  if (missing.length > 0) await store.commit(missing, author)
}
