/** The settings of commands, the store that these name, and the records that the running service remembers. */

import { type Config, gatherSettings, localUrl, parseConfig, storeNameIn } from '../config/config.ts'
import { isSecretToBeMade } from '../config/secrets.ts'
import { isNotDemo } from '../demo/site.ts'
import type { CachedRecords, SiteRecord } from '../domain/site.ts'
import { restoreSteps } from '../sites/export-file.ts'
import type { SiteStore } from '../store/store.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'

/** The settings of Redis require POWGATE_SECRETS. Commands sign nothing, so this replaces a missing one. */
const UNUSED_SECRET = 'no command ever signs with this placeholder'

/**
 * Opens the store that the settings name, and returns what the action returns. The code of the stores is loaded here, because help
 * and mistaken calls need none. @throws OperatorError: an error of another kind counts as the store's
 */
export async function withStore<Result>(action: (store: SiteStore) => Promise<Result>): Promise<Result> {
  const config = commandSettings()
  const { openSiteStore } = await import('../store/open.ts')
  let store: Awaited<ReturnType<typeof openSiteStore>> | undefined
  try {
    store = await openSiteStore(config)
    return await action(store)
  } catch (error) {
    if (error instanceof OperatorError) throw await withRestoreSteps(error)
    throw new OperatorError(`the store failed: ${systemErrorText(error)}`, { cause: error })
  } finally {
    await store?.close()
  }
}

/** @throws OperatorError with a line per wrong setting */
export function commandSettings(): Config {
  const { values, problems } = gatherSettings(process.env)
  const unused = values.REDIS_URL === undefined ? {} : { POWGATE_SECRETS: UNUSED_SECRET }
  return parseConfig({ ...unused, ...values }, problems)
}

export function hasSecret(config: Config): boolean {
  return !isSecretToBeMade(config) && !config.secrets.includes(UNUSED_SECRET)
}

export function nameOfStore(): string {
  return storeNameIn(commandSettings())
}

/** What the running service of this store remembers, which the store may have lost; nothing if it is another's, or none answers. */
export async function remembered(): Promise<CachedRecords> {
  const records = await recordsOfService().catch(() => undefined)
  return records?.storeName === nameOfStore() ? records : { sites: [], apiKeys: [] }
}

/** @param error if the store lacks a site or an API key, its key or id is the cause */
async function withRestoreSteps(error: OperatorError): Promise<OperatorError> {
  if (typeof error.cause !== 'string') return error
  const { sites, apiKeys } = await remembered()
  const keys = [...sites.map(({ siteKey }) => siteKey), ...apiKeys.map(({ id }) => id)]
  if (!keys.includes(error.cause)) return error
  return new OperatorError(`${error.message}, but the running service remembers it: ${restoreSteps()}`)
}

/**
 * Refuses names of sites that the store has lost and the running service remembers. Made anew they would get other keys, which no
 * page has, and would stand beside the old ones once those are restored. @throws OperatorError
 */
export async function refuseLostNames(store: SiteStore, names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  const { sites } = await remembered()
  for (const { name, siteKey } of sites)
    if (names.includes(name) && (await store.readSite(siteKey)) === undefined)
      throw new OperatorError(
        `the store has lost the site ${name} (${siteKey}), which the running service remembers: ${restoreSteps()}`,
      )
}

const ANSWER_MS_MAX = 10_000

/**
 * Asks the running service for the records in its memory, which may have outlived those in the store. The demo page's sites are left
 * out, and deleted sites are a list of their own. @throws OperatorError if no service answers at the admin port
 */
export async function recordsOfService(): Promise<
  CachedRecords & { deletedSites: SiteRecord[]; storeName: string }
> {
  const { RECORDS_PATH } = await import('../admin/records-route.ts')
  const { adminHost, adminPort } = commandSettings()
  if (adminPort === undefined)
    throw new OperatorError('POWGATE_ADMIN_PORT: expected the admin port of the running service')
  const url = localUrl({ host: adminHost, port: adminPort }) + RECORDS_PATH
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    if (!answer.ok) throw new Error(`it answered ${answer.status}`)
    const { sites, apiKeys, storeName } = (await answer.json()) as CachedRecords & { storeName: string }
    const own = sites.filter(isNotDemo)
    const isDeleted = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt !== undefined
    return {
      sites: own.filter(site => !isDeleted(site)),
      apiKeys: apiKeys.filter(key => !isDeleted(key)),
      deletedSites: own.filter(isDeleted),
      storeName,
    }
  } catch (error) {
    throw new OperatorError(`cannot read the sites of the service at ${url}: ${causeOf(error as Error)}`)
  }
}

/** `fetch` wraps the error in another; for a host with several addresses there is a list of them inside. */
export function causeOf(error: Error): string {
  const { cause } = error as { cause?: Error & { code?: string; errors?: Error[] } }
  if (/^ERR_SSL|^EPROTO/.test(cause?.code ?? ''))
    return 'what listens there does not speak TLS: use http://, or the address of the proxy that has the certificate'
  return systemErrorText(cause?.errors?.[0] ?? cause ?? error)
}
