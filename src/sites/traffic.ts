/** What operators see of a site's visitors. */

import type { SiteRecord } from '../domain/site.ts'
import type { SiteStore } from '../store/store.ts'

export interface SiteTraffic {
  /** Proofs of returning addresses a second; undefined before the first proof. */
  readonly usualRate: number | undefined
}

export async function findTraffic(
  store: Pick<SiteStore, 'readUsualRate'>,
  { siteKey, usualRate: expected = 0 }: SiteRecord,
): Promise<SiteTraffic> {
  const usual = await store.readUsualRate(siteKey)
  return { usualRate: usual === undefined ? undefined : Math.max(usual / 60, expected) }
}
