/**
 * GET /sites.json: the sites and API keys that the service knows, also those that the store has lost. `powgate site export
 * --from-service` reads it. It holds the hashes of API keys, so only this machine gets an answer.
 */

import { isLoopback } from '../domain/address.ts'
import type { KnownRecords } from '../domain/site.ts'
import { type AdminRoute, sendError, sendJson } from './server.ts'

export const RECORDS_PATH = '/sites.json'

export function recordsRoute(keeper: { known(): Promise<KnownRecords> }): AdminRoute {
  return {
    path: RECORDS_PATH,
    async handle({ socket }, response) {
      const { remoteAddress = '', localAddress } = socket
      // Whoever connects from the address that the port listens on is on this machine too.
      const isOfThisMachine = isLoopback(remoteAddress) || remoteAddress === localAddress
      if (isOfThisMachine) sendJson(response, 200, await keeper.known())
      else sendError(response, 403, 'peer', 'Only this machine may read it.')
    },
  }
}
