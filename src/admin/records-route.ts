/**
 * GET /sites.json: the sites and API keys that workers know, also those that the store has lost. `powgate site export
 * --from-service` reads it. It holds the hashes of API keys, so only this machine gets an answer.
 */

import { isLoopback } from '../domain/address.ts'
import type { ApiKeyRecord, KnownRecords, SiteRecord } from '../domain/site.ts'
import { type AdminRoute, sendError, sendJson } from './server.ts'

export const RECORDS_PATH = '/sites.json'

export function recordsRoute(workers: { askRecords(): Promise<KnownRecords[]> }): AdminRoute {
  return {
    path: RECORDS_PATH,
    async handle({ socket }, response) {
      const { remoteAddress = '', localAddress } = socket
      // Whoever connects from the address that the port listens on is on this machine too.
      const isOfThisMachine = isLoopback(remoteAddress) || remoteAddress === localAddress
      if (isOfThisMachine) sendJson(response, 200, together(await workers.askRecords()))
      else sendError(response, 403, 'peer', 'Only this machine may read it.')
    },
  }
}

/** Workers may know different ones, and for two seconds different versions of one. */
function together(records: readonly KnownRecords[]): KnownRecords {
  const sites = new Map<string, SiteRecord>()
  for (const site of records.flatMap(known => known.sites))
    if (site.updatedAt > (sites.get(site.siteKey)?.updatedAt ?? -1)) sites.set(site.siteKey, site)
  const apiKeys = new Map<string, ApiKeyRecord>()
  for (const apiKey of records.flatMap(known => known.apiKeys))
    if (apiKey.revokedAt !== null || !apiKeys.has(apiKey.id)) apiKeys.set(apiKey.id, apiKey)
  return { sites: [...sites.values()], apiKeys: [...apiKeys.values()] }
}
