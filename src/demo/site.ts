/**
 * The demo page's own sites, one for each puzzle. Their site keys are constant and their API keys derived from the master secret, so
 * they are the same at every start, on every host and in every worker.
 */

import { hkdfSync } from 'node:crypto'
import type { Author, RecordChange } from '../domain/audit.ts'
import { CONTRACT_LIMITS } from '../domain/endpoint.ts'
import { apiKeyRecord, DEMO_KEY_PREFIX, KEY_BYTES, newApiKey, type SiteRecord } from '../domain/site.ts'
import { completed } from '../domain/site-fields.ts'
import { PUZZLES, type PuzzleName } from '../protocol/proof.ts'
import type { SiteStore } from '../store/store.ts'

const SITES = {
  sha256: { siteKey: `${DEMO_KEY_PREFIX}0`, name: 'demo page', keyInfo: 'demo page API key' },
  hashwx: { siteKey: `${DEMO_KEY_PREFIX}1`, name: 'demo page, HashWX', keyInfo: 'demo page API key, HashWX' },
} satisfies Record<PuzzleName, { siteKey: string; name: string; keyInfo: string }>

export const demoSiteKey = (puzzle: PuzzleName) => SITES[puzzle].siteKey
export const DEMO_SITE_KEYS: ReadonlySet<string> = new Set(PUZZLES.map(demoSiteKey))
export const isNotDemo = ({ siteKey }: { readonly siteKey: string }) => !DEMO_SITE_KEYS.has(siteKey)

/** Reveals nothing about the master secret (RFC 5869). */
export function demoApiKey(secret: string, puzzle: PuzzleName): string {
  return newApiKey(
    new Uint8Array(hkdfSync('sha256', secret, '', `powgate v1 ${SITES[puzzle].keyInfo}`, KEY_BYTES)),
  )
}

/**
 * Creates what is missing, and keeps what people changed, such as a revoked key. The key of an earlier master secret stays
 * valid, but nobody has it.
 */
export async function prepareDemoSites(store: SiteStore, secret: string, author: Author): Promise<void> {
  const now = Date.now()
  for (const puzzle of PUZZLES) {
    const { siteKey, name } = SITES[puzzle]
    const site: SiteRecord = {
      ...completed({ name, puzzle }),
      siteKey,
      threshold: 0, // everyone passes, and sees the score
      // A site with a limit of its own is counted apart: a flood of the demo uses up no other backend's limit at the same address.
      limits: { redeem: CONTRACT_LIMITS.redeemApiKey },
      createdAt: now,
      updatedAt: now,
    }
    const apiKey = apiKeyRecord(demoApiKey(secret, puzzle), { siteKey, name, createdAt: now })
    const missing: RecordChange[] = []
    if ((await store.readApiKey(apiKey.id)) === undefined) missing.push({ apiKey, expected: undefined })
    if ((await store.readSite(siteKey)) === undefined) missing.push({ site, expected: undefined })
    // `commit` returns false if another host was faster, which has then made the same records.
    if (missing.length > 0) await store.commit(missing, author)
  }
}
