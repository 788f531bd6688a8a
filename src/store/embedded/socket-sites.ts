/**
 * A SiteStore that asks the store process over its socket: a question is JSON of an operation's name and arguments, which
 * `EmbeddedSites.answer` (sites.ts) reads.
 */

import type { Connection } from '../client/connection.ts'
import { type SiteStore, StoreSetupError } from '../store.ts'
import { fromJson, SITE_OPERATIONS, type SiteAnswer, type SiteOperation, toJson } from './sites.ts'

export function socketSites(connection: Connection): SiteStore {
  const ask = async (name: SiteOperation, args: readonly unknown[]): Promise<unknown> => {
    const reply = (await connection.ask('sites', toJson([name, ...args]))) as string
    const { value, error, isSetupError } = fromJson(reply) as SiteAnswer
    if (error !== undefined) throw isSetupError ? new StoreSetupError(error) : new Error(error)
    return value
  }
  return sitesBy(ask)
}

/** Makes a SiteStore whose operations are all asked in one way. */
export function sitesBy(ask: (name: SiteOperation, args: readonly unknown[]) => Promise<unknown>): SiteStore {
  const operations = SITE_OPERATIONS.map(name => [name, (...args: unknown[]) => ask(name, args)] as const)
  return Object.fromEntries(operations) as unknown as SiteStore
}
