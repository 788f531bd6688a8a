/** Opens the store for one command. */

import { resolve } from 'node:path'
import type { Config, SettingValues } from '../config/config.ts'
import { UsageError } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import { type SiteStore, StoreSetupError } from '../store/store.ts'

/**
 * For POWGATE_SECRETS, which a configuration with Redis must have. Commands sign nothing, so whoever runs them need not know
 * the secrets.
 */
export const UNUSED_SECRET = 'no command ever signs with this placeholder'

/**
 * Runs an action on the store that the environment names; a service may be using it.
 *
 * @param action gets the store, and where it is, in words
 * @throws AdminError with a line for each problem of the store; and what the action throws
 */
export async function withStore<Result>(
  action: (store: SiteStore, place: string) => Promise<Result>,
): Promise<Result> {
  const { store, place } = await openStore(process.env)
  try {
    return await action(store, place)
  } catch (error) {
    if (error instanceof AdminError || error instanceof UsageError) throw error
    throw new AdminError(`the store failed: ${(error as Error).message}`, { cause: error })
  } finally {
    await store.close()
  }
}

/** Also returns where it writes. */
export function writeToStore<Result>(
  action: (store: SiteStore) => Promise<Result>,
): Promise<[result: Result, place: string]> {
  return withStore(async (store, place) => [await action(store), place])
}

/** Loads client and schema late: help and error lines need neither. */
async function openStore(env: NodeJS.ProcessEnv) {
  const config = await settingsOf(env)
  const { openSiteStore } = await import('../store/open.ts')
  try {
    return { store: await openSiteStore(config), place: await placeOf(config) }
  } catch (error) {
    throw error instanceof StoreSetupError ? new AdminError(error.message) : error
  }
}

/**
 * @param change by the command itself
 * @throws AdminError with a line for each wrong setting
 */
export async function settingsOf(
  env: NodeJS.ProcessEnv,
  change = (values: SettingValues) => values,
): Promise<Config> {
  const { ConfigError, gatherSettings, parseConfig } = await import('../config/config.ts')
  try {
    const { values, problems } = gatherSettings(env)
    return parseConfig({ POWGATE_SECRETS: UNUSED_SECRET, ...change(values) }, problems)
  } catch (error) {
    throw error instanceof ConfigError ? new AdminError(error.message) : error
  }
}

async function placeOf({ redis, redisPrefix, dataDir }: Config): Promise<string> {
  if (redis === undefined) return resolve(dataDir)
  const { describeTarget } = await import('../config/redis.ts')
  return `${describeTarget(redis)} (database ${redis.db}, prefix ${redisPrefix})`
}
