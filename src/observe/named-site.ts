/** Which site a refused request was about, so that an operator can see it there. */

import type { Exchange } from '../http/exchange.ts'
import type { SiteDirectory } from '../store/site-directory.ts'

/**
 * Key of the site that a request names by its X-Site-Key, or by its API key (whose secret may be wrong); undefined if it
 * names none that exists. From what is cached: nothing is looked up for a request that was refused.
 */
export function namedSite(
  sites: SiteDirectory,
  { siteKey, apiKeyId }: Pick<Exchange, 'siteKey' | 'apiKeyId'>,
): string | undefined {
  if (siteKey !== '') return sites.cachedSite(siteKey)?.record.siteKey
  return apiKeyId === '' ? undefined : sites.cachedApiKey(apiKeyId)?.siteKey
}
