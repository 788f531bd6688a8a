import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { CommandError, UsageError } from '../sites/rules.ts'
import { type SiteStore, StoreSetupError } from '../store/store.ts'
import { systemErrorText } from '../words/system-error.ts'

/** Redis requires POWGATE_SECRETS. Commands sign nothing, so this value replaces a missing one. */
export const UNUSED_SECRET = 'no command ever signs with this placeholder'

/**
 * Runs an action on the store of the settings. Also returns the store's place, in words.
 *
 * @throws CommandError if the store fails; and what the action throws
 */
export async function withStore<Result>(
  action: (store: SiteStore) => Promise<Result>,
): Promise<[result: Result, place: string]> {
  const { store, place } = await openStore()
  try {
    return [await action(store), place]
  } catch (error) {
    if (error instanceof CommandError || error instanceof UsageError) throw error
    if (error instanceof StoreSetupError) throw new CommandError(error.message)
    throw new CommandError(`the store failed: ${systemErrorText(error)}`, { cause: error })
  } finally {
    await store.close()
  }
}

/** Loads stores and settings late, because help and error lines need neither. */
async function openStore() {
  const config = await settingsOf()
  const { openSiteStore } = await import('../store/open.ts')
  try {
    return { store: await openSiteStore(config), place: await placeOf(config) }
  } catch (error) {
    throw error instanceof StoreSetupError ? new CommandError(error.message) : error
  }
}

/** @throws CommandError with a line per wrong setting */
export async function settingsOf(): Promise<Config> {
  const { ConfigError, gatherSettings, parseConfig } = await import('../config/config.ts')
  try {
    const { values, problems } = gatherSettings(process.env)
    return parseConfig({ POWGATE_SECRETS: UNUSED_SECRET, ...values }, problems)
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message) : error
  }
}

async function placeOf({ redis, redisPrefix, dataDir }: Config): Promise<string> {
  if (redis === undefined) return resolve(dataDir)
  const { describeTarget } = await import('../config/redis.ts')
  return `${describeTarget(redis)} (database ${redis.db}, prefix ${redisPrefix})`
}
