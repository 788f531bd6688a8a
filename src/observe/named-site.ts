/** Which site a refused request was about, so that an operator can see it there. */

import { apiKeyId } from '../domain/site.ts'
import type { Exchange } from '../http/exchange.ts'
import type { SiteDirectory } from '../store/site-directory.ts'

/**
 * Key of the site that a request names by its X-Site-Key, or by its API key (whose secret may be wrong); undefined if it
 * names none that exists. From what is cached: nothing is looked up for a request that was refused.
 */
export function namedSite(
  sites: SiteDirectory,
  { siteKey, authorization }: Pick<Exchange, 'siteKey' | 'authorization'>,
): string | undefined {
  if (siteKey !== '') return sites.cachedSite(siteKey)?.record.siteKey
  if (authorization === '') return undefined
  const keyId = apiKeyId(authorization.trim().slice('Bearer '.length).trimStart())
  return keyId === undefined ? undefined : sites.cachedApiKey(keyId)?.siteKey
}
