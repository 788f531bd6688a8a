/** Compares a SIGHUP's settings with those in use. */

import { type Environment, gatherSettings, parseConfig, type SettingValues } from '../config/config.ts'
import { SETTINGS, type SettingName } from '../config/settings.ts'
import type { WorkerSetup } from './primary.ts'

interface Reload extends WorkerSetup {
  /** In new workers. */
  readonly changed: readonly SettingName[]
  /** Until a restart. */
  readonly kept: readonly SettingName[]
}

/** The primary's own, and where state lies: if workers differed there, a token could be redeemed twice. */
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
  // Part of the keys of limits and used nonces.
  'POWGATE_IPV6_PREFIX',
  'POWGATE_LOG_FORMAT',
  'POWGATE_METRICS_SITES',
  // Listeners with and without it cannot share a port.
  'POWGATE_PROXY_PROTOCOL',
  'POWGATE_REDIS_PREFIX',
  'POWGATE_REDIS_SHARDS',
  // Of the store process, which lives on.
  'POWGATE_STATE_MAX_MB',
])

/**
 * While a change of the PROXY protocol waits for a restart, that of the trusted proxies waits too: behind a TCP balancer,
 * clients write X-Forwarded-For themselves.
 *
 * @param env names the files that are read again
 * @throws ConfigError
 */
export function reloadSettings(env: Environment, running: WorkerSetup): Reload {
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

/** Another password or node can be of the same Redis. */
function isOtherStore(wanted: Target, running: Target): boolean {
  return (wanted === undefined) !== (running === undefined) || wanted?.db !== running?.db
}
