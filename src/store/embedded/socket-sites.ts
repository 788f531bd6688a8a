/**
 * A SiteStore that asks the store process over its socket: a question is JSON of an operation's name and arguments, which
 * `EmbeddedSites.answer` (sites.ts) reads.
 */

import type { Connection } from '../client/connection.ts'
import { type SiteStore, StoreSetupError } from '../store.ts'
import { SITE_OPERATIONS, type SiteAnswer, type SiteOperation } from './sites.ts'

export function socketSites(connection: Connection): SiteStore {
  const ask = async (name: SiteOperation, args: readonly unknown[]): Promise<unknown> => {
    const question = JSON.stringify([name, ...args], (_, value) =>
      value instanceof Map ? [...value] : value,
    )
    const reply = JSON.parse((await connection.ask('sites', question)) as string) as SiteAnswer
    const { value, entries, error, isSetupError } = reply
    if (error !== undefined) throw isSetupError ? new StoreSetupError(error) : new Error(error)
    return entries === undefined ? value : new Map(entries)
  }
  return sitesBy(ask)
}

export function sitesBy(ask: (name: SiteOperation, args: readonly unknown[]) => Promise<unknown>): SiteStore {
  const operations = SITE_OPERATIONS.map(name => [name, (...args: unknown[]) => ask(name, args)] as const)
  return Object.fromEntries(operations) as unknown as SiteStore
}
