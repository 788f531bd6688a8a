/** Which site a refused request was about, so that operators see the refusal at that site. */

import type { Exchange } from '../http/exchange.ts'
import type { SiteDirectory } from '../store/site-directory.ts'

/**
 * Key of the site that a request names by its X-Site-Key, or by its API key (whose secret may be wrong); undefined if no such
 * site exists. Read from the cache only: a refused request causes no call to the store.
 */
export function namedSite(
  sites: SiteDirectory,
  { siteKey, apiKeyId }: Pick<Exchange, 'siteKey' | 'apiKeyId'>,
): string | undefined {
  if (siteKey !== '') return sites.cachedSite(siteKey)?.record.siteKey
  return apiKeyId === '' ? undefined : sites.cachedApiKey(apiKeyId)?.siteKey
}
