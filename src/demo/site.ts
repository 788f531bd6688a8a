/**
 * The demo page's own site. Its keys are not random: the site key is the same everywhere, and the API key follows from
 * the master secret. So the site is found again at every start and on every host, each worker knows the API key without
 * being told, nothing secret is kept or passed on for it, and restarts leave no trail of keys.
 */

import { hkdfSync } from 'node:crypto'
import type { Author, RecordChange } from '../domain/audit.ts'
import { CONTRACT_LIMITS } from '../domain/limits.ts'
import {
  type ApiKeyRecord,
  apiKeyId,
  apiKeySha256,
  newApiKey,
  SITE_DEFAULTS,
  type SiteRecord,
} from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'

export const DEMO_SITE_KEY = 'site_DemoPageOfThisPowgate0'

/** Bytes that `newApiKey` draws from. */
const KEY_MATERIAL_BYTES = 128

/** @param secret a master secret; whoever has the key learns nothing about it (RFC 5869) */
export function demoApiKey(secret: string): string {
  return newApiKey(
    new Uint8Array(hkdfSync('sha256', secret, '', 'powgate v1 demo page API key', KEY_MATERIAL_BYTES)),
  )
}

/**
 * Makes sure that the site and its API key are there. What a person has changed (a site disabled, a key revoked) is
 * left alone.
 *
 * @param apiKey from `demoApiKey`; of an earlier master secret the key stays valid, and nobody has it
 */
export async function prepareDemoSite(store: SiteStore, apiKey: string, author: Author): Promise<void> {
  const now = Date.now()
  const site: SiteRecord = {
    ...SITE_DEFAULTS,
    siteKey: DEMO_SITE_KEY,
    name: 'demo page',
    origins: [],
    threshold: 0, // everybody passes, and sees the score
    ipRules: { allow: [], block: [] },
    // A limit of its own counts apart: who floods the demo uses up nothing of a backend on the same address.
    limits: { redeem: CONTRACT_LIMITS.redeemApiKey },
    createdAt: now,
    updatedAt: now,
  }
  const key: ApiKeyRecord = {
    id: apiKeyId(apiKey)!,
    siteKey: DEMO_SITE_KEY,
    name: 'demo page',
    secretSha256: apiKeySha256(apiKey),
    createdAt: now,
    revokedAt: null,
  }
  const missing: RecordChange[] = []
  if ((await store.readApiKey(key.id)) === undefined) missing.push({ apiKey: key, expected: undefined })
  if ((await store.readSite(DEMO_SITE_KEY)) === undefined) missing.push({ site, expected: undefined })
  // Not written: another host was faster.
  if (missing.length > 0) await store.commit(missing, author)
}
