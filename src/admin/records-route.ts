/**
 * GET /sites.json: the sites and API keys that the service knows, also those that the store has lost. `powgate site export
 * --from-service` reads it. It holds the hashes of API keys, so only this machine gets an answer, and no proxy or page on it.
 */

import { isLoopback } from '../domain/address.ts'
import type { KnownRecords } from '../domain/site.ts'
import { type AdminRoute, sendError, sendJson } from './server.ts'

export const RECORDS_PATH = '/sites.json'
/** What proxies, sidecars and browsers add. */
const FORWARDED = /^(forwarded|via|origin|x-real-ip|x-(forwarded|envoy)-.*|sec-fetch-site)$/

export function recordsRoute(keeper: { known(): Promise<KnownRecords> }): AdminRoute {
  return {
    path: RECORDS_PATH,
    async handle({ socket, headers, httpVersion }, response) {
      const { remoteAddress = '', localAddress } = socket
      // Whoever connects from the address that the port listens on is on this machine too.
      const isOfThisMachine = isLoopback(remoteAddress) || remoteAddress === localAddress
      // nginx speaks HTTP/1.0 to what it forwards to, unless told otherwise.
      const isForwarded = httpVersion === '1.0' || Object.keys(headers).some(name => FORWARDED.test(name))
      if (isOfThisMachine && !isForwarded) sendJson(response, 200, await keeper.known())
      else sendError(response, 403, 'peer', 'Only this machine may read it.')
    },
  }
}
