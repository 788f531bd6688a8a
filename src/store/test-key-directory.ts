/** A site directory that answers for the published test keys itself; the store never sees them. */

import type { ApiKeyRecord, Site, TestOutcome } from '../domain/site.ts'
import { TEST_KEYS, testApiKey, testSite } from '../domain/test-keys.ts'
import { SiteDirectory } from './site-directory.ts'

const OUTCOMES = Object.keys(TEST_KEYS) as TestOutcome[]

export class TestKeyDirectory extends SiteDirectory {
  readonly #sites = new Map<string, Site>()
  readonly #apiKeys = new Map<string, ApiKeyRecord>()

  constructor(...inputs: ConstructorParameters<typeof SiteDirectory>) {
    super(...inputs)
    for (const outcome of OUTCOMES) {
      const site = testSite(outcome)
      const apiKey = testApiKey(outcome)
      this.#sites.set(site.record.siteKey, site)
      this.#apiKeys.set(apiKey.id, apiKey)
    }
  }

  override cachedSite(siteKey: string): Site | null | undefined {
    return this.#sites.get(siteKey) ?? super.cachedSite(siteKey)
  }

  override cachedApiKey(id: string): ApiKeyRecord | null | undefined {
    return this.#apiKeys.get(id) ?? super.cachedApiKey(id)
  }
}
