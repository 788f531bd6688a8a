/**
 * Handles the signals of the primary process:
 *
 *   SIGTERM   not ready -> POWGATE_UNREADY_SECONDS -> listeners close -> connections end -> exit 0
 *   SIGINT    the same without the wait
 *   SIGHUP    roll: settings are read again, and all workers are replaced; another SIGHUP meanwhile starts another roll
 *   SIGHUP because the terminal closed   connections end -> exit
 *   a second SIGTERM or SIGINT           exit 1 at once
 */

import { isatty } from 'node:tty'
import { ConfigError } from '../config/config.ts'
import { resolveSecrets } from '../config/secrets.ts'
import { Keyring } from '../domain/keyring.ts'
import { migratesConnections } from '../http/open-files.ts'
import type { Logger } from '../log/logger.ts'
import type { Totals } from '../metrics/totals.ts'
import type { HostRegistry } from './host-registry.ts'
import type { Primary, WorkerSetup } from './primary.ts'
import { reloadSettings } from './reload.ts'
import type { SiteKeeper } from './site-keeper.ts'
import type { StoreProcess } from './store-process.ts'

/** A terminal signals its whole process group, and npm passes the signal on: that counts as one. */
const SAME_SIGNAL_MS = 500

interface Parts {
  readonly primary: Primary
  readonly keeper: SiteKeeper
  readonly hosts: HostRegistry
  readonly log: Logger
  readonly totals: Totals
  /** undefined with Redis. */
  readonly storeProcess: StoreProcess | undefined
}

export class Lifecycle {
  readonly #parts: Parts
  readonly #wasTerminal = isatty(1)
  /** What the workers run with; undefined until the start is done. */
  #setup: WorkerSetup | undefined
  #isRolling = false
  /** SIGHUP came during the start or a roll, so another roll follows. */
  #mustRollAgain = false
  /** The time at which stopping began, by `performance.now`. */
  #stoppingSinceMs: number | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void this.#stop(signal))
    process.on('SIGHUP', () => {
      if (this.#wasTerminal && !isatty(1)) void this.#hangUp()
      else void this.#reload()
    })
    process.on('uncaughtException', error => void this.#fail(error))
  }

  /** Is called once all workers of the start listen. */
  started(setup: WorkerSetup): void {
    this.#use(setup)
    if (this.#mustRollAgain) void this.#reload()
  }

  /** The primary's own connections and gauges follow the settings that the workers have now. */
  #use(setup: WorkerSetup): void {
    this.#setup = setup
    void this.#parts.keeper.reconnect(setup.config)
    void this.#parts.hosts.reconnect(setup.config)
    const { kid } = new Keyring(resolveSecrets(setup.config)).signing
    this.#parts.totals.gauges = { [`signingKey ${kid}`]: 1, reloadDone: 1, reloadedAt: Date.now() / 1000 }
  }

  async #stop(signal: string): Promise<void> {
    if (this.#stoppingSinceMs !== undefined) {
      if (performance.now() - this.#stoppingSinceMs < SAME_SIGNAL_MS) return
      this.#parts.log.warn({ signal }, 'leaving at once, whatever is under way')
      this.#parts.primary.killAll()
      process.exit(1)
    }
    this.#stoppingSinceMs = performance.now()
    this.#parts.primary.sayUnready()
    const unreadyMs = signal === 'SIGTERM' ? (this.#setup?.config.unreadyMs ?? 0) : 0
    if (unreadyMs > 0) {
      this.#parts.log.info(
        { signal, seconds: unreadyMs / 1000 },
        'stopping: not ready any more, but still serving',
      )
      await new Promise(resolve => setTimeout(resolve, unreadyMs))
    }
    this.#parts.log.info({ signal }, 'stopping: requests under way are finished first')
    await this.#drain()
    process.exit(0)
  }

  /** The terminal was closed: every write fails, and pending output would keep the process alive. */
  async #hangUp(): Promise<void> {
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

  async #reload(): Promise<void> {
    if (this.isStopping) return
    if (this.#isRolling || this.#setup === undefined) {
      const why = this.#isRolling ? 'a rolling restart is under way' : 'the service is starting'
      this.#parts.log.info({ signal: 'SIGHUP' }, `${why}; a rolling restart follows`)
      this.#mustRollAgain = true
      return
    }
    this.#isRolling = true
    do {
      this.#mustRollAgain = false
      const setup = await this.#roll(this.#setup)
      if (setup !== undefined) this.#use(setup)
      else this.#parts.totals.gauges.reloadDone = 0
    } while (this.#mustRollAgain && !this.isStopping)
    this.#isRolling = false
  }

  /** @returns what all workers run with now; undefined if not all were replaced, or none */
  async #roll(running: WorkerSetup): Promise<WorkerSetup | undefined> {
    let setup: ReturnType<typeof reloadSettings>
    try {
      setup = reloadSettings(process.env, running)
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [(error as Error).message]
      for (const problem of problems)
        this.#parts.log.error({ problem }, 'nothing is changed: a setting is wrong')
      return undefined
    }
    const lost = await this.#sitesLost(setup)
    if (this.isStopping) return undefined
    if (lost > 0) {
      this.#parts.log.error(
        { lost },
        'nothing is renewed: the store lacks sites or API keys that the workers serve, and new workers would refuse them; restore them and send SIGHUP again; if they are to be gone, restart',
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
    const before = this.#parts.log.level
    this.#parts.log.level = setup.config.logLevel
    const isDone = await this.#parts.primary.roll(setup)
    if (!isDone && !this.isStopping) this.#parts.log.level = before
    return isDone ? setup : undefined
  }

  /** Counts the records that the store of `setup` lacks, so that present workers serve them and new ones would refuse them. */
  async #sitesLost(setup: WorkerSetup): Promise<number> {
    if (setup.config.redis === undefined) return 0
    // If that store does not answer, the roll fails at its first new worker, which says why.
    return this.#parts.keeper.missingIn(setup.config).catch(() => this.#parts.keeper.lost)
  }

  /** Ends the service after a fault, once requests are finished: its service manager starts it again. */
  async #fail(error: Error): Promise<void> {
    if (this.isStopping) process.exit(1)
    this.#stoppingSinceMs = performance.now()
    // Some errors contain the data that caused them.
    this.#parts.log.fatal(
      { problem: error?.message ?? String(error), stack: error?.stack },
      'the primary ends after a fault',
    )
    await this.#drain()
    process.exit(1)
  }
}
