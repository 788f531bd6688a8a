/** Reads the settings again at SIGHUP, and tells which take effect, and which keep their value until a restart. */

import { gatherSettings, type ProcessEnvironment, parseConfig, type SettingValues } from '../config/config.ts'
import { SETTING_GROUPS, SETTINGS, type SettingName } from '../config/settings.ts'
import type { WorkerSetup } from './primary.ts'

interface Reload extends WorkerSetup {
  /** Settings that new workers use. */
  readonly changed: readonly SettingName[]
  /** Settings that keep their value until a restart. */
  readonly kept: readonly SettingName[]
}

/**
 * If the PROXY protocol changes, a change of the trusted proxies waits for the restart too: a proxy that is trusted without its
 * PROXY header would let clients behind a TCP balancer write X-Forwarded-For themselves. If the settings name another store, all that
 * tells how to reach the present one waits: a password or a certificate of the other one would not fit it.
 *
 * @param env names the files that are read again
 * @throws OperatorError
 */
export function reloadSettings(env: ProcessEnvironment, running: WorkerSetup): Reload {
  const { values, problems } = gatherSettings(env)
  const wanted = parseConfig(values, problems)
  const keepsStore = isOtherStore(wanted.redis, running.config.redis)
  const changed: SettingName[] = []
  const kept: SettingName[] = []
  const settings: Partial<Record<SettingName, string>> = { ...values }
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    if (effective(values, name) === effective(running.settings, name)) continue
    const isKept =
      SETTINGS[name].needsRestart ||
      (keepsStore && name in SETTING_GROUPS.Redis) ||
      (keepsStore && name === 'POWGATE_SECRETS' && values[name] === undefined) || // Redis needs them
      (name === 'POWGATE_TRUSTED_PROXIES' && wanted.proxyProtocol !== running.config.proxyProtocol)
    if (!isKept) {
      changed.push(name)
      continue
    }
    kept.push(name)
    const before = running.settings[name]
    if (before === undefined) delete settings[name]
    else settings[name] = before
  }
  const { port, demo, redisShards } = running.config // as the start resolved them: a free port, `auto`, the hosts' shards
  return { config: { ...parseConfig(settings), port, demo, redisShards }, settings, changed, kept }
}

function effective(values: SettingValues, name: SettingName): string {
  return values[name] ?? SETTINGS[name].fallback
}

type Target = WorkerSetup['config']['redis']

/**
 * Compares what the settings can tell. Another password or host may lead to the same Redis. If it leads to another one, that one's
 * epoch differs, so it refuses what was issued before, and no token is redeemed twice.
 */
function isOtherStore(wanted: Target, running: Target): boolean {
  return (wanted === undefined) !== (running === undefined) || wanted?.db !== running?.db
}
