/**
 * The primary process: forks one worker per core, replaces those that end, restarts them one by one while the others serve, and
 * drains them at the end. Workers listen on the port themselves (SO_REUSEPORT); only with the PROXY protocol, node:cluster accepts here.
 *
 *   seat   worker ─────────────── serves ───────────────┐ drains, goes
 *          successor       forked, listens, is ready ───┴─ serves ─────────
 */

import type { Config, SettingValues } from '../config/config.ts'
import type { CachedRecords } from '../domain/site.ts'
import type { BackendCount } from '../endpoints/backend-counts.ts'
import type { Logger } from '../log/logger.ts'
import type { Totals } from '../metrics/totals.ts'
import { OperatorError } from '../words/errors.ts'
import { Restarts } from './restarts.ts'
import { CHECK_MS, WorkerHandle, type WorkerListener } from './worker-handle.ts'

export interface WorkerSetup {
  readonly config: Config
  /** Each worker makes its own Config from them. */
  readonly settings: SettingValues
}

/** The place of one worker, which successive processes take. */
interface Seat {
  readonly index: number
  /** The settings that the seat's last worker got; its replacement gets the same. */
  setup: WorkerSetup
  worker: WorkerHandle | undefined
  /** Starts during a rolling restart. Until it is ready, `worker` serves. */
  successor: WorkerHandle | undefined
  restarts: Restarts
}

const ASK_STATS_MS = 500
const RESTART_DELAY_MS_MAX = 5000
/** A successor's store must answer within this time, or within `storeWaitMs` if that is longer. */
const WHOLE_STORE_MS_MIN = 3000
/** At most this share of the workers drains at once, because each still holds its memory. */
const LEAVING_SHARE_MAX = 1 / 4

export class Primary {
  readonly #log: Logger
  readonly #totals: Totals
  #lastAsk = 0
  #seats: Seat[] = []
  readonly #workers = new Set<WorkerHandle>()
  /** Set by start.ts, to get what workers count of backends. */
  onBackends: (counts: readonly BackendCount[]) => void = () => {}
  #lost: CachedRecords = { sites: [], apiKeys: [] }
  /** Health checks answer "not ready"; the workers still serve. */
  #isUnready = false
  #isDraining = false
  /** Called each second, and when a worker listens, or has said that it cannot start. */
  #onStartEnded: (() => void) | undefined

  constructor(log: Logger, totals: Totals) {
    this.#log = log
    this.#totals = totals
  }

  start(setup: WorkerSetup): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onStartEnded = () => {
        if (this.#isDraining) return
        const problem = [...this.#workers].find(worker => worker.problem !== undefined)?.problem
        if (problem !== undefined) reject(new OperatorError(problem))
        else if (this.isHealthy()) resolve()
      }
      this.#seats = Array.from({ length: setup.config.workers }, (_, index) => newSeat(index, setup))
      for (const seat of this.#seats) seat.worker = this.#fork(seat, setup)
      setInterval(() => this.#checkSilence(), CHECK_MS).unref()
    })
  }

  /** The answer of /healthz. A service that drains is healthy too, so that no orchestrator kills it meanwhile. */
  isHealthy(): boolean {
    if (this.#isDraining) return true
    return this.#seats.length > 0 && this.#seats.every(({ worker }) => worker?.isWell)
  }

  /** The answer of /readyz. */
  isReady(): boolean {
    return !this.#isUnready && this.#seats.some(({ worker }) => worker?.isWell && worker.isReady)
  }

  reportNotReady(): void {
    this.#isUnready = true
  }

  /** Resolves when all workers have sent counters, or after 500 ms. */
  async askStats(): Promise<void> {
    const ask = ++this.#lastAsk
    await Promise.all([...this.#workers].map(worker => worker.askStats(ask, ASK_STATS_MS)))
  }

  /** Gives records that the store has lost to present and later workers, which serve them from memory. */
  rememberLost(records: CachedRecords): void {
    this.#lost = records
    for (const worker of this.#workers) worker.sendLost()
  }

  workersWanted(): number {
    return this.#seats.length
  }

  async drain(): Promise<void> {
    this.#isUnready = true
    this.#isDraining = true
    for (const worker of this.#workers) worker.leave()
    await Promise.all([...this.#workers].map(worker => worker.untilGone()))
  }

  killAll(): void {
    this.#isDraining = true
    for (const worker of this.#workers) worker.kill()
  }

  /** The rolling restart. @returns false if a new worker cannot start: the old ones from there on keep serving */
  async restartWorkers(setup: WorkerSetup): Promise<boolean> {
    const startedAtMs = performance.now()
    const { workers } = setup.config
    const waiting = Array.from({ length: workers }, (_, index) => this.#seats[index] ?? newSeat(index, setup))
    while (waiting.length > 0) {
      const renewed = workers - waiting.length
      // Workers whose store is away refuse visitors: once one successor reaches it, all are replaced together, whatever memory that takes.
      const away = waiting.filter(({ worker }) => worker?.isReady === false)
      const next = renewed > 0 && away.length > 0 ? away : [away[0] ?? waiting[0]!]
      if (away.length === 0) await this.#untilFewLeave(Math.ceil(workers * LEAVING_SHARE_MAX))
      const problems = await Promise.all(next.map(seat => this.#restartSeat(seat, setup)))
      if (this.#isDraining) return false
      const failed = problems.findIndex(problem => problem !== undefined)
      if (failed >= 0) {
        const done = problems.filter(problem => problem === undefined).length
        this.#log.error(
          { worker: next[failed]!.index, problem: problems[failed], renewed: renewed + done, workers },
          'the rolling restart ends here: a new worker cannot start, and those that are not renewed serve with the old settings',
        )
        return false
      }
      for (const seat of next) waiting.splice(waiting.indexOf(seat), 1)
    }
    for (const { worker } of this.#seats.splice(workers)) worker?.leave() // POWGATE_WORKERS may be lower than before
    await Promise.all(this.#leaving().map(worker => worker.untilGone()))
    if (this.#isDraining) return false
    const seconds = Math.round(performance.now() - startedAtMs) / 1000
    this.#log.info({ workers, seconds }, 'all workers are new')
    return true
  }

  /** @returns why the seat's new worker cannot start; undefined also while draining */
  async #restartSeat(seat: Seat, setup: WorkerSetup): Promise<string | undefined> {
    if (this.#isDraining) return undefined
    let successor: WorkerHandle
    try {
      successor = this.#fork(seat, setup, Math.max(WHOLE_STORE_MS_MIN, setup.config.storeWaitMs))
    } catch (error) {
      return (error as Error).message // no memory, or no more open files
    }
    seat.successor = successor
    const problem = await successor.untilListening()
    seat.successor = undefined
    if (this.#isDraining) return undefined
    if (problem !== undefined) {
      successor.kill()
      return problem
    }
    const before = seat.worker
    seat.worker = successor
    seat.setup = setup
    seat.restarts = new Restarts()
    if (!this.#seats.includes(seat)) this.#seats.push(seat)
    if (before !== undefined) this.#totals.counts.restarts.at('roll').add()
    const { workers: of } = setup.config
    const about = { worker: seat.index, workerPid: successor.pid, of, replaces: before?.pid }
    this.#log.info({ ...about, ...successor.build }, 'a worker is new')
    before?.leave()
    return undefined
  }

  #leaving(): WorkerHandle[] {
    return [...this.#workers].filter(({ isLeaving }) => isLeaving)
  }

  async #untilFewLeave(max: number): Promise<void> {
    for (;;) {
      const leaving = this.#leaving()
      if (leaving.length < max) return
      await Promise.race(leaving.map(worker => worker.untilGone()))
    }
  }

  #fork(seat: Seat, { config, settings }: WorkerSetup, wholeStoreMs?: number): WorkerHandle {
    // The start has resolved a free port, `auto` and the number of shards. A reload keeps these (lifecycle.ts).
    const settingsAsStarted = {
      ...settings,
      PORT: String(config.port),
      POWGATE_DEMO: config.demo,
      POWGATE_REDIS_SHARDS: String(config.redisShards),
    }
    const listener: WorkerListener = {
      backends: counts => this.onBackends(counts),
      stats: (worker, snapshot) =>
        this.#workers.has(worker) && this.#totals.take(worker, snapshot, seat.index),
      startEnded: worker => {
        if (worker.problem !== undefined && worker !== seat.successor)
          this.#log.error({ problem: worker.problem }, 'a worker cannot start')
        this.#onStartEnded?.()
      },
      gone: (worker, code, signal) => this.#onGone(seat, worker, code, signal),
      unreachable: error => this.#log.warn({ problem: error.message }, 'cannot talk to a worker'),
    }
    const { drainMs } = config
    const { index } = seat
    const lost = () => this.#lost
    const worker = new WorkerHandle(
      { index, settings: settingsAsStarted, lost, drainMs, wholeStoreMs },
      listener,
    )
    this.#workers.add(worker)
    return worker
  }

  #onGone(seat: Seat, worker: WorkerHandle, code: number | null, signal: string | null): void {
    this.#workers.delete(worker)
    this.#totals.gone(worker)
    if (seat.worker !== worker) return // it was leaving, or is a successor
    seat.worker = undefined
    if (this.#isDraining || !this.#seats.includes(seat)) return
    this.#totals.counts.restarts.at(worker.wasHung ? 'hang' : 'crash').add()
    seat.restarts.crashed(worker.startedAtMs, RESTART_DELAY_MS_MAX)
    const about = { worker: seat.index, workerPid: worker.pid, code, signal }
    // A successor may wait long for its store, so the seat gets a worker meanwhile, too.
    this.#forkAgain(seat, about)
  }

  #forkAgain(seat: Seat, about: object, text = 'a worker has gone; it is replaced'): void {
    const { delayMs } = seat.restarts
    this.#log.warn({ ...about, restartsInMs: delayMs }, text)
    setTimeout(() => {
      if (this.#isDraining || seat.worker !== undefined || !this.#seats.includes(seat)) return
      try {
        seat.worker = this.#fork(seat, seat.setup)
      } catch (error) {
        seat.restarts.crashed(performance.now(), RESTART_DELAY_MS_MAX)
        const about = { worker: seat.index, problem: (error as Error).message }
        this.#forkAgain(seat, about, 'a worker cannot be forked; it is tried again')
      }
    }, delayMs)
  }

  #checkSilence(): void {
    for (const worker of this.#workers) {
      if (!worker.checkSilence()) continue
      this.#log.error({ worker: worker.options.index, workerPid: worker.pid }, 'a worker hangs; it is killed')
    }
    this.#onStartEnded?.() // another worker may have been silent when the last began to listen: once it speaks, the start has ended
  }
}

function newSeat(index: number, setup: WorkerSetup): Seat {
  return { index, setup, worker: undefined, successor: undefined, restarts: new Restarts() }
}
