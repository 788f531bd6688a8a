/**
 * The demo page's own site. Its site key is a constant, and its API key is derived from the master secret. So every start
 * and every host finds the same site, and each worker can compute the API key. No other secret is stored or passed on for the
 * demo, and restarts make no more keys.
 */

import { hkdfSync } from 'node:crypto'
import type { Author, RecordChange } from '../domain/audit.ts'
import { CONTRACT_LIMITS } from '../domain/endpoint.ts'
import { apiKeyRecord, newApiKey, SITE_DEFAULTS, type SiteRecord } from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'

export const DEMO_SITE_KEY = 'site_DemoPageOfThisPowgate0'

/** Number of bytes from which `newApiKey` makes a key. */
const KEY_MATERIAL_BYTES = 128

/** @param secret a master secret; the API key reveals nothing about the secret (RFC 5869) */
export function demoApiKey(secret: string): string {
  return newApiKey(
    new Uint8Array(hkdfSync('sha256', secret, '', 'powgate v1 demo page API key', KEY_MATERIAL_BYTES)),
  )
}

/**
 * Creates the site and its API key if they are missing. A person's changes (a disabled site, a revoked key) are kept.
 *
 * @param apiKey from `demoApiKey`. The API key of an earlier master secret stays valid, but nobody has it.
 */
export async function prepareDemoSite(store: SiteStore, apiKey: string, author: Author): Promise<void> {
  const now = Date.now()
  const site: SiteRecord = {
    ...SITE_DEFAULTS,
    siteKey: DEMO_SITE_KEY,
    name: 'demo page',
    threshold: 0, // every visitor passes, and sees the score
    // A site with its own limit is counted separately: a flood of the demo uses up no limit of a backend on the same address.
    limits: { redeem: CONTRACT_LIMITS.redeemApiKey },
    createdAt: now,
    updatedAt: now,
  }
  const key = apiKeyRecord(apiKey, { siteKey: DEMO_SITE_KEY, name: 'demo page', createdAt: now })
  const missing: RecordChange[] = []
  if ((await store.readApiKey(key.id)) === undefined) missing.push({ apiKey: key, expected: undefined })
  if ((await store.readSite(DEMO_SITE_KEY)) === undefined) missing.push({ site, expected: undefined })
  // If nothing is written, another host was faster.
  if (missing.length > 0) await store.commit(missing, author)
}
