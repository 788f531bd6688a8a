import { RECORDS_PATH } from '../admin/records-route.ts'
import { localUrl } from '../config/config.ts'
import type { CachedRecords } from '../domain/site.ts'
import { CommandError } from '../sites/rules.ts'
import { settingsOf } from './site-store.ts'

const ANSWER_MS = 10_000

/** Sites and API keys that the running service has in memory. */
export async function recordsOfService(): Promise<CachedRecords> {
  const { adminHost, adminPort } = await settingsOf()
  if (adminPort === undefined)
    throw new CommandError('POWGATE_ADMIN_PORT: expected the admin port of the running service')
  // The name `localhost` could lead to [::1], where another program may listen.
  const host = adminHost === '0.0.0.0' || adminHost === '::' ? '127.0.0.1' : adminHost
  const url = localUrl({ host, port: adminPort }) + RECORDS_PATH
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })
    if (!answer.ok) throw new Error(`it answered ${answer.status}`)
    return (await answer.json()) as CachedRecords
  } catch (error) {
    const { message, cause } = error as Error
    const why = (cause as Error)?.message ?? message
    throw new CommandError(`cannot read the sites of the service at ${url}: ${why}`)
  }
}
