/** Compares a SIGHUP's settings with those in use. */

import { gatherSettings, type ProcessEnvironment, parseConfig, type SettingValues } from '../config/config.ts'
import { SETTINGS, type SettingName } from '../config/settings.ts'
import type { WorkerSetup } from './primary.ts'

interface Reload extends WorkerSetup {
  /** Settings that new workers use. */
  readonly changed: readonly SettingName[]
  /** Settings that keep their value until a restart. */
  readonly kept: readonly SettingName[]
}

/** The primary process uses these, or they say where state is kept: workers that differ there could redeem a token twice. */
const NEEDS_RESTART: ReadonlySet<SettingName> = new Set<SettingName>([
  'HOST',
  'PORT',
  'POWGATE_ADMIN_HOST',
  'POWGATE_ADMIN_HOSTS',
  'POWGATE_ADMIN_PORT',
  'POWGATE_CONFIG_FILE',
  'POWGATE_DATA_DIR',
  'POWGATE_DEMO',
  'POWGATE_DEPLOYMENT',
  // The prefix is part of the keys of limits and used nonces.
  'POWGATE_IPV6_PREFIX',
  'POWGATE_LOG_FORMAT',
  'POWGATE_METRICS_SITES',
  // Listeners with and without it cannot share a port.
  'POWGATE_PROXY_PROTOCOL',
  'POWGATE_REDIS_PREFIX',
  'POWGATE_REDIS_SHARDS',
  // The store process lives on, with the value of its start.
  'POWGATE_STATE_MAX_MB',
])

/**
 * If the PROXY protocol changes, a change of the trusted proxies waits for the restart too: new proxies without their protocol
 * would let clients behind a TCP balancer write X-Forwarded-For themselves.
 *
 * @param env names the files that are read again
 * @throws ConfigError
 */
export function reloadSettings(env: ProcessEnvironment, running: WorkerSetup): Reload {
  const { values, problems } = gatherSettings(env)
  const wanted = parseConfig(values, problems)
  const changed: SettingName[] = []
  const kept: SettingName[] = []
  const settings: Partial<Record<SettingName, string>> = { ...values }
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    if (effective(values, name) === effective(running.settings, name)) continue
    const isKept =
      NEEDS_RESTART.has(name) ||
      (name === 'REDIS_URL' && isOtherStore(wanted.redis, running.config.redis)) ||
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
  const { port, demo, redisShards } = running.config
  return { config: { ...parseConfig(settings), port, demo, redisShards }, settings, changed, kept }
}

function effective(values: SettingValues, name: SettingName): string {
  return values[name] ?? SETTINGS[name].fallback
}

type Target = WorkerSetup['config']['redis']

/** The same Redis may have another password or node. */
function isOtherStore(wanted: Target, running: Target): boolean {
  return (wanted === undefined) !== (running === undefined) || wanted?.db !== running?.db
}
