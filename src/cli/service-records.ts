/** Asks the running service for the sites and API keys that it remembers, even if its store has lost them. */

import { localUrl } from '../config/config.ts'
import { DEMO_SITE_KEYS } from '../demo/site.ts'
import type { CachedRecords, SiteRecord } from '../domain/site.ts'
import { OperatorError } from '../words/errors.ts'
import { commandSettings } from './site-store.ts'

export const isNotDemo = ({ siteKey }: SiteRecord) => !DEMO_SITE_KEYS.has(siteKey)

const ANSWER_MS_MAX = 10_000

/** Returns what was not deleted: sites but those of /demo, and API keys. @throws OperatorError if no service answers at the admin port */
export async function recordsOfService(): Promise<CachedRecords> {
  const { RECORDS_PATH } = await import('../admin/records-route.ts')
  const { adminHost, adminPort } = commandSettings()
  if (adminPort === undefined)
    throw new OperatorError('POWGATE_ADMIN_PORT: expected the admin port of the running service')
  // The name `localhost` could lead to [::1], where another program may listen.
  const host = adminHost === '0.0.0.0' || adminHost === '::' ? '127.0.0.1' : adminHost
  const url = localUrl({ host, port: adminPort }) + RECORDS_PATH
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    if (!answer.ok) throw new Error(`it answered ${answer.status}`)
    const { sites, apiKeys } = (await answer.json()) as CachedRecords
    const isPresent = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt === undefined
    return { sites: sites.filter(isPresent).filter(isNotDemo), apiKeys: apiKeys.filter(isPresent) }
  } catch (error) {
    const { message, cause } = error as Error
    throw new OperatorError(
      `cannot read the sites of the service at ${url}: ${(cause as Error)?.message ?? message}`,
    )
  }
}
