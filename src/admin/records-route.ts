/**
 * GET /sites.json, for `powgate site export --from-service`: all sites and API keys that the service knows, even if the store has
 * lost them. The answer has hashes of API keys, so it goes only to this machine, and to no proxy or page there.
 */

import { isLoopback } from '../addresses/address.ts'
import type { CachedRecords } from '../domain/site.ts'
import { type AdminRoute, sendError, sendJson } from './admin-server.ts'

export const RECORDS_PATH = '/sites.json'
/** Proxies, sidecars and browsers add these headers. `sec-fetch-mode` is not among them, because fetch of Node.js sends it too. */
const FORWARDED =
  /^(forwarded|via|origin|referer|(x-real|x-client|true-client)-ip|x-request-id|cf-.*|x-(forwarded|envoy)-.*|sec-fetch-(site|dest|user))$/

export function recordsRoute(
  siteMemory: { records(): Promise<CachedRecords> },
  storeName: () => string,
): AdminRoute {
  return {
    path: RECORDS_PATH,
    async handle({ socket, headers, httpVersion }, response) {
      const { remoteAddress = '', localAddress } = socket
      const isLocal = isLoopback(remoteAddress) || remoteAddress === localAddress
      // nginx up to 1.29.6 forwards with HTTP/1.0 by default.
      const isForwarded = httpVersion === '1.0' || Object.keys(headers).some(name => FORWARDED.test(name))
      if (isLocal && !isForwarded)
        sendJson(response, 200, { storeName: storeName(), ...(await siteMemory.records()) })
      else sendError(response, 403, 'peer', 'Only this machine may read it.')
    },
  }
}
