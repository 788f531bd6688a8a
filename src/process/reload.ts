/** What SIGHUP changes: the settings read anew, beside those that run. */

import { parseConfig } from '../config/config.ts'
import { SETTINGS, type SettingName } from '../config/settings.ts'
import { type Environment, gatherSettings, type SettingValues } from '../config/sources.ts'
import type { Plan } from './primary.ts'

export interface Reload extends Plan {
  /** Those that take effect with new workers. */
  readonly changed: readonly SettingName[]
  /** Those that need a restart, and stay as they are. */
  readonly kept: readonly SettingName[]
}

/**
 * What the primary itself holds on to, and where state lies and how it is laid out: while some workers look here and others
 * there, a token could be redeemed twice.
 */
const NEEDS_RESTART: ReadonlySet<SettingName> = new Set<SettingName>([
  'HOST',
  'PORT',
  'POWGATE_ADMIN_HOST',
  'POWGATE_ADMIN_HOSTS',
  'POWGATE_ADMIN_PORT',
  'POWGATE_CONFIG_FILE',
  'POWGATE_DATA_DIR',
  'POWGATE_DEMO',
  // Limits and spent nonces are kept by it.
  'POWGATE_IPV6_PREFIX',
  // Listeners of the two kinds do not share a port.
  'POWGATE_PROXY_PROTOCOL',
  'POWGATE_REDIS_PREFIX',
  'POWGATE_REDIS_SHARDS',
])

/**
 * Who is trusted to speak the PROXY protocol is kept with it: of a balancer for TCP, X-Forwarded-For is whatever clients write.
 *
 * @param env the primary's, whose files are read again
 * @throws ConfigError listing every problem: then nothing changes
 */
export function reloadSettings(env: Environment, running: Plan): Reload {
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
  const { port, demo } = running.config
  return { config: { ...parseConfig(settings), port, demo }, settings, changed, kept }
}

function effective(values: SettingValues, name: SettingName): string {
  return values[name] ?? SETTINGS[name].fallback
}

type Target = Plan['config']['redis']

/** Another password or another node of the same Redis is no other store; another database is. */
function isOtherStore(wanted: Target, running: Target): boolean {
  return (wanted === undefined) !== (running === undefined) || wanted?.db !== running?.db
}
