/**
 * Handles the signals of the primary process:
 *
 *   SIGTERM   not ready -> POWGATE_UNREADY_SECONDS -> listeners close -> connections end -> exit 0
 *   SIGINT    the same without the wait
 *   SIGHUP    rolling restart: settings are read again, and workers replaced one by one; a SIGHUP meanwhile starts another
 *   SIGHUP because the terminal closed   connections end -> exit
 *   a second SIGTERM or SIGINT           exit 1 at once
 */

import { isatty } from 'node:tty'
import { gatherSettings, parseConfig, type SettingValues } from '../config/config.ts'
import { migratesConnections } from '../config/ports.ts'
import { resolveSecrets, secretTexts } from '../config/secrets.ts'
import { SETTING_GROUPS, SETTINGS, type SettingName } from '../config/settings.ts'
import { Keyring } from '../domain/keyring.ts'
import { type Logger, scrubToo } from '../log/logger.ts'
import type { FlatName } from '../metrics/table.ts'
import type { Totals } from '../metrics/totals.ts'
import type { HostRegistry } from './host-registry.ts'
import type { Primary, WorkerSetup } from './primary.ts'
import type { SiteMemory } from './site-memory.ts'
import type { StoreProcess } from './store-process.ts'

/** A terminal signals its whole process group, and npm passes the signal on: that counts as one. */
const SAME_SIGNAL_MS = 500

interface Parts {
  readonly primary: Primary
  readonly siteMemory: SiteMemory
  readonly hosts: HostRegistry
  readonly log: Logger
  readonly totals: Totals
  /** undefined with Redis. */
  readonly storeProcess: StoreProcess | undefined
}

export class Lifecycle {
  readonly #parts: Parts
  readonly #wasTerminal = isatty(1)
  /** undefined until the start is done. */
  #setup: WorkerSetup | undefined
  #isRestarting = false
  /** SIGHUP came during the start or a rolling restart, so another one follows. */
  #mustRestart = false
  /** The time at which stopping began, by `performance.now`. */
  #stoppingSinceMs: number | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void this.#stop(signal))
    process.on('SIGHUP', () => {
      if (this.#wasTerminal && !isatty(1)) void this.#onTerminalClosed()
      else void this.#onSighup()
    })
    process.on('uncaughtException', error => void this.#fail(error))
  }

  /** What the workers run with; undefined until the start is done. */
  get config(): WorkerSetup['config'] | undefined {
    return this.#setup?.config
  }

  /** Call this once all workers listen for the first time. */
  started(setup: WorkerSetup): void {
    this.#applySetup(setup)
    if (this.#mustRestart) void this.#onSighup()
  }

  /** Applies the workers' settings to the primary's own connections and gauges. */
  #applySetup(setup: WorkerSetup): void {
    this.#setup = setup
    void this.#parts.siteMemory.reconnect(setup.config)
    void this.#parts.hosts.reconnect(setup.config)
    this.#parts.totals.gauges = { reloadDone: 1, reloadedAt: Date.now() / 1000 }
    try {
      const { kid } = new Keyring(resolveSecrets(setup.config)).signing
      this.#parts.totals.gauges[`signingKey ${kid}` satisfies FlatName] = 1
    } catch (error) {
      this.#parts.log.error((error as Error).message) // the workers have it, but its file is gone since
    }
  }

  async #stop(signal: string): Promise<void> {
    if (this.#stoppingSinceMs !== undefined) {
      if (performance.now() - this.#stoppingSinceMs < SAME_SIGNAL_MS) return
      this.#parts.log.warn({ signal }, 'second signal: exiting at once, and dropping the requests under way')
      this.#parts.primary.killAll()
      process.exit(1)
    }
    this.#stoppingSinceMs = performance.now()
    this.#parts.primary.reportNotReady()
    const unreadyMs = signal === 'SIGTERM' ? (this.#setup?.config.unreadyMs ?? 0) : 0
    if (unreadyMs > 0) {
      const seconds = unreadyMs / 1000
      this.#parts.log.info({ signal, seconds }, 'stopping: not ready any more, but still serving')
      await new Promise(resolve => setTimeout(resolve, unreadyMs))
    }
    this.#parts.log.info({ signal }, 'stopping: finishing the requests under way')
    await this.#drain()
    process.exit(0)
  }

  /** Every write fails now, and pending output would keep the process alive. */
  async #onTerminalClosed(): Promise<void> {
    if (this.isStopping) return
    this.#stoppingSinceMs = performance.now()
    this.#parts.log.level = 'silent'
    await this.#drain()
    process.kill(process.pid, 'SIGKILL')
  }

  /** The store process ends after the workers, which use it until then. */
  async #drain(): Promise<void> {
    await this.#parts.primary.drain()
    await Promise.all([this.#parts.hosts.leave(), this.#parts.storeProcess?.end()])
  }

  get isStopping(): boolean {
    return this.#stoppingSinceMs !== undefined
  }

  async #onSighup(): Promise<void> {
    if (this.isStopping) return
    if (this.#isRestarting || this.#setup === undefined) {
      const why = this.#isRestarting ? 'a rolling restart is under way' : 'the service is starting'
      this.#parts.log.info({ signal: 'SIGHUP' }, `${why}; a rolling restart follows`)
      this.#mustRestart = true
      return
    }
    this.#isRestarting = true
    do {
      this.#mustRestart = false
      const setup = await this.#restartWorkers(this.#setup)
      if (setup !== undefined) this.#applySetup(setup)
      else this.#parts.totals.gauges.reloadDone = 0
    } while (this.#mustRestart && !this.isStopping)
    this.#isRestarting = false
  }

  /** @returns the setup of all workers now; undefined if none was replaced, or only some */
  async #restartWorkers(running: WorkerSetup): Promise<WorkerSetup | undefined> {
    let setup: ReturnType<typeof reloadSettings>
    try {
      setup = reloadSettings(process.env, running)
    } catch (error) {
      for (const problem of (error as Error).message.split('\n'))
        this.#parts.log.error({ problem }, 'nothing is changed: a setting is wrong')
      return undefined
    }
    scrubToo(secretTexts(setup.config, setup.settings))
    const lost = await this.#countLost(setup)
    if (this.isStopping) return undefined
    if (lost > 0) {
      this.#parts.log.error(
        { lost },
        'nothing is renewed: the store lacks sites or API keys that the workers still serve from memory; restore them and send SIGHUP again, or restart the service if you want them gone',
      )
      return undefined
    }
    const { changed, kept } = setup
    if (kept.length > 0)
      this.#parts.log.warn({ settings: kept }, 'these settings change only with a restart, so they stay')
    this.#parts.log.info({ signal: 'SIGHUP', changed }, 'renewing all workers')
    for (const warning of setup.config.warnings)
      if (!running.config.warnings.includes(warning)) this.#parts.log.warn(warning)
    if (migratesConnections() !== true)
      this.#parts.log.info(
        'net.ipv4.tcp_migrate_req is 0: a connection made in the instant a listener closes may be reset',
      )
    const levelBefore = this.#parts.log.level
    // New workers have their level from their start, so the primary process changes with the first.
    this.#parts.log.level = setup.config.logLevel
    const isDone = await this.#parts.primary.restartWorkers(setup)
    if (!isDone && !this.isStopping) this.#parts.log.level = levelBefore
    return isDone ? setup : undefined
  }

  /** Counts the sites and API keys that the store of `setup` lacks, although the workers serve them. */
  async #countLost({ config }: WorkerSetup): Promise<number> {
    if (config.redis === undefined) return 0
    const { siteMemory } = this.#parts
    // Another Redis that does not answer fails the restart at the first new worker, whose error says why.
    return siteMemory.countMissingIn(config).catch(() => siteMemory.lostCount)
  }

  /** Ends the service after a fault, once requests are finished, because its service manager starts it again. */
  async #fail(error: Error): Promise<void> {
    if (this.isStopping) process.exit(1)
    this.#stoppingSinceMs = performance.now()
    this.#parts.log.fatal({ event: 'fault', err: error }, 'the primary ends after a fault')
    await this.#drain()
    process.exit(1)
  }
}

/**
 * Reads the settings again, and tells which new workers use, and which keep their value until a restart.
 *
 * If the PROXY protocol changes, a change of the trusted proxies waits for the restart too: a proxy that is trusted without its
 * PROXY header would let clients behind a TCP balancer write X-Forwarded-For themselves. If the settings name another store, all that
 * tells how to reach the present one waits: a password or a certificate of the other one would not fit it.
 *
 * @param env names the files that are read again
 * @throws OperatorError
 */
export function reloadSettings(env: NodeJS.ProcessEnv, running: WorkerSetup) {
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
