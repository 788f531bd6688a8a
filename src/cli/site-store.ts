/** The settings and the store that commands work with. */

import { resolve } from 'node:path'
import { type Config, ConfigError, gatherSettings, parseConfig } from '../config/config.ts'
import { describeTarget } from '../config/redis.ts'
import { isSecretToBeMade } from '../config/secrets.ts'
import { CommandError, UsageError } from '../sites/errors.ts'
import { type SiteStore, StoreSetupError } from '../store/store.ts'
import { systemErrorText } from '../words/system-error.ts'

/** The settings of Redis require POWGATE_SECRETS. Commands sign nothing, so this replaces a missing one. */
const UNUSED_SECRET = 'no command ever signs with this placeholder'

/**
 * Returns what an action on the store of the settings returns. The code of the stores is loaded here, because help and mistaken
 * calls need none.
 *
 * @throws CommandError or UsageError of the action; any other error counts as the store's and becomes a CommandError
 */
export async function withStore<Result>(action: (store: SiteStore) => Promise<Result>): Promise<Result> {
  const config = commandSettings()
  const { openSiteStore } = await import('../store/open.ts')
  let store: Awaited<ReturnType<typeof openSiteStore>> | undefined
  try {
    store = await openSiteStore(config)
    return await action(store)
  } catch (error) {
    if (error instanceof CommandError || error instanceof UsageError) throw error
    if (error instanceof StoreSetupError) throw new CommandError(error.message)
    throw new CommandError(`the store failed: ${systemErrorText(error)}`, { cause: error })
  } finally {
    await store?.close()
  }
}

/** @throws CommandError with a line per wrong setting */
export function commandSettings(): Config {
  try {
    const { values, problems } = gatherSettings(process.env)
    const unused = values.REDIS_URL === undefined ? {} : { POWGATE_SECRETS: UNUSED_SECRET }
    return parseConfig({ ...unused, ...values }, problems)
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message) : error
  }
}

/** True if the settings or the data directory have the service's secret. */
export function hasSecret(config: Config): boolean {
  return !isSecretToBeMade(config) && !config.secrets.includes(UNUSED_SECRET)
}

/** A directory, or a description of Redis. */
export function nameOfStore(): string {
  const { redis, redisPrefix, dataDir } = commandSettings()
  if (redis === undefined) return resolve(dataDir)
  return `${describeTarget(redis)} (database ${redis.db}, prefix ${redisPrefix})`
}
