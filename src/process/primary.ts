/**
 * The primary process: forks one worker per core, replaces those that end, renews all without a gap, and drains them at the
 * end. Every worker listens on the port itself (SO_REUSEPORT), so no connection passes through here.
 *
 *   slot   worker ─────────────── serves ───────────────┐ drains, goes
 *          successor       forked, listens, is ready ───┴─ serves ─────────
 */

import type { Config, SettingValues } from '../config/config.ts'
import type { BackendCount } from '../domain/backends.ts'
import type { CachedRecords } from '../domain/site.ts'
import type { Logger } from '../log/logger.ts'
import type { Totals } from '../metrics/totals.ts'
import { type WorkerListener, WorkerProcess } from './worker-process.ts'

export interface Plan {
  readonly config: Config
  /** Each worker makes its own Config from them. */
  readonly settings: SettingValues
}

interface Slot {
  readonly index: number
  /** Of the last worker that served here; its replacement gets the same. */
  plan: Plan
  worker: WorkerProcess | undefined
  /** During a roll. */
  successor: WorkerProcess | undefined
  /** Crashes in a row, each soon after a start. */
  quickCrashes: number
}

const ASK_STATS_MS = 500
const SETTLED_MS = 5000
const BACK_OFF_MS = 100
const BACK_OFF_MS_MAX = 5000
/** Workers report twice a second. Silence is counted in checks: a suspend kills no worker. */
const CHECK_MS = 1000
const SILENT_CHECKS_UNHEALTHY = 5
const SILENT_CHECKS_MAX = 15
const STARTING_CHECKS_MAX = 30
/** For a successor to load its code. */
const LISTEN_MS = 30_000
/** For a successor's store to answer; or `storeWaitMs`, if longer. */
const READY_MS_MIN = 3000
/** So few drain at once, because each still needs its memory. */
const LEAVING_SHARE_MAX = 1 / 4

export class Primary {
  readonly #log: Logger
  readonly #totals: Totals
  #lastAsk = 0
  #slots: Slot[] = []
  /** Draining ones included. */
  readonly #workers = new Set<WorkerProcess>()
  onBackends: (counts: readonly BackendCount[]) => void = () => {}
  #lost: CachedRecords = { sites: [], apiKeys: [] }
  #isUnready = false
  #isDraining = false
  #onSettled: (() => void) | undefined

  constructor(log: Logger, totals: Totals) {
    this.#log = log
    this.#totals = totals
  }

  /** Resolves when all workers listen; rejects if one cannot run. */
  start(plan: Plan): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onSettled = () => {
        if (this.#isDraining) return
        const problem = [...this.#workers].find(worker => worker.problem !== undefined)?.problem
        if (problem !== undefined) reject(new Error(problem))
        else if (this.isHealthy()) resolve()
      }
      this.#slots = Array.from({ length: plan.config.workers }, (_, index) => newSlot(index, plan))
      for (const slot of this.#slots) slot.worker = this.#fork(slot, plan)
      setInterval(() => this.#checkSilence(), CHECK_MS).unref()
    })
  }

  /** A stopping service is healthy too. */
  isHealthy(): boolean {
    if (this.#isDraining) return true
    return this.#slots.length > 0 && this.#slots.every(({ worker }) => isWell(worker))
  }

  isReady(): boolean {
    return !this.#isUnready && this.#slots.some(({ worker }) => isWell(worker) && worker?.isReady === true)
  }

  sayUnready(): void {
    this.#isUnready = true
  }

  /** Resolves when all workers have sent counters, or after 500 ms. */
  async askStats(): Promise<void> {
    const ask = ++this.#lastAsk
    const sites = [...this.#totals.asked]
    await Promise.all([...this.#workers].map(worker => worker.askStats(ask, sites, ASK_STATS_MS)))
  }

  /** @param records that the store has lost; workers serve them from memory, later workers too */
  lost(records: CachedRecords): void {
    this.#lost = records
    for (const worker of this.#workers) worker.tellLost()
  }

  workersWanted(): number {
    return this.#slots.length
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

  /** @returns whether all workers are new; once a successor cannot start, the remaining old ones continue */
  async roll(plan: Plan): Promise<boolean> {
    const startedAtMs = performance.now()
    const { workers } = plan.config
    for (let index = 0; index < workers; index++) {
      await this.#untilFewLeave(Math.ceil(workers * LEAVING_SHARE_MAX))
      const problem = await this.#renew(this.#slots[index] ?? newSlot(index, plan), plan)
      if (this.#isDraining) return false
      if (problem !== undefined) {
        this.#log.error(
          { worker: index, problem, renewed: index, workers },
          'the rolling restart ends here: a new worker cannot start, and the old ones keep serving',
        )
        return false
      }
    }
    for (const { worker } of this.#slots.splice(workers)) worker?.leave()
    await Promise.all(
      [...this.#workers].filter(({ isLeaving }) => isLeaving).map(worker => worker.untilGone()),
    )
    if (this.#isDraining) return false
    const seconds = Math.round(performance.now() - startedAtMs) / 1000
    this.#log.info({ workers, seconds }, 'all workers are new')
    return true
  }

  /** @returns why the old worker stays */
  async #renew(slot: Slot, plan: Plan): Promise<string | undefined> {
    if (this.#isDraining) return undefined
    let successor: WorkerProcess
    try {
      successor = this.#fork(slot, plan)
    } catch (error) {
      return (error as Error).message // no memory, or no more open files
    }
    slot.successor = successor
    const readyMs = Math.max(READY_MS_MIN, plan.config.storeWaitMs)
    const problem = await successor.untilServing(LISTEN_MS, readyMs)
    slot.successor = undefined
    if (this.#isDraining) return undefined
    if (problem !== undefined) {
      successor.kill()
      const hasDiedMeanwhile = slot.worker === undefined && this.#slots.includes(slot)
      if (hasDiedMeanwhile) this.#replace(slot)
      return problem
    }
    const before = slot.worker
    slot.worker = successor
    slot.plan = plan
    slot.quickCrashes = 0
    if (!this.#slots.includes(slot)) this.#slots.push(slot)
    if (before !== undefined) this.#totals.counts.restarts.at('roll').add()
    this.#log.info(
      {
        worker: slot.index,
        workerPid: successor.pid,
        of: plan.config.workers,
        replaces: before?.pid,
        ...successor.build,
      },
      'a worker is new',
    )
    before?.leave()
    return undefined
  }

  async #untilFewLeave(max: number): Promise<void> {
    for (;;) {
      const leaving = [...this.#workers].filter(({ isLeaving }) => isLeaving)
      if (leaving.length < max) return
      await Promise.race(leaving.map(worker => worker.untilGone()))
    }
  }

  #fork(slot: Slot, { config, settings }: Plan): WorkerProcess {
    const decided = {
      ...settings,
      PORT: String(config.port),
      POWGATE_DEMO: config.demo,
      POWGATE_REDIS_SHARDS: String(config.redisShards),
    }
    const listener: WorkerListener = {
      backends: counts => this.onBackends(counts),
      stats: (worker, snapshot) => this.#totals.take(worker, snapshot, slot.index),
      settled: worker => {
        if (worker.problem !== undefined)
          this.#log.error({ problem: worker.problem }, 'a worker cannot start')
        this.#onSettled?.()
      },
      gone: (worker, code, signal) => this.#onGone(slot, worker, code, signal),
      unreachable: error => this.#log.warn({ problem: error.message }, 'cannot talk to a worker'),
    }
    const lost = () => this.#lost
    const order = { index: slot.index, settings: decided, lost, drainMs: config.drainMs }
    const worker = new WorkerProcess(order, listener)
    this.#workers.add(worker)
    return worker
  }

  #onGone(slot: Slot, worker: WorkerProcess, code: number | null, signal: string | null): void {
    this.#workers.delete(worker)
    this.#totals.gone(worker)
    if (slot.worker !== worker) return // it was leaving, or is a successor
    slot.worker = undefined
    if (this.#isDraining || !this.#slots.includes(slot)) return
    this.#totals.counts.restarts.at(worker.wasHung ? 'hang' : 'crash').add()
    const isQuick = performance.now() - worker.startedAtMs < SETTLED_MS
    slot.quickCrashes = isQuick ? slot.quickCrashes + 1 : 0
    const about = { worker: slot.index, workerPid: worker.pid, code, signal }
    if (slot.successor !== undefined)
      this.#log.warn(about, 'a worker has gone; its successor is starting already')
    else this.#replace(slot, about)
  }

  #replace(slot: Slot, about: object = { worker: slot.index }): void {
    // At once after the first quick crash, then after growing delays.
    const { quickCrashes } = slot
    const delayMs = quickCrashes <= 1 ? 0 : Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS * 2 ** (quickCrashes - 2))
    this.#log.warn({ ...about, restartsInMs: delayMs }, 'a worker has gone; it is replaced')
    setTimeout(() => {
      const isFree = slot.worker === undefined && slot.successor === undefined
      if (this.#isDraining || !isFree || !this.#slots.includes(slot)) return
      try {
        slot.worker = this.#fork(slot, slot.plan)
      } catch (error) {
        slot.quickCrashes++
        this.#replace(slot, { worker: slot.index, problem: (error as Error).message })
      }
    }, delayMs)
  }

  /** Kills hanging workers, because the kernel still gives them connections. */
  #checkSilence(): void {
    for (const worker of this.#workers) {
      worker.silentChecks++
      if (worker.silentChecks < (worker.isListening ? SILENT_CHECKS_MAX : STARTING_CHECKS_MAX)) continue
      this.#log.error({ worker: worker.order.index, workerPid: worker.pid }, 'a worker hangs; it is killed')
      worker.wasHung = true
      worker.kill()
    }
  }
}

function newSlot(index: number, plan: Plan): Slot {
  return { index, plan, worker: undefined, successor: undefined, quickCrashes: 0 }
}

function isWell(worker: WorkerProcess | undefined): boolean {
  return worker?.isListening === true && worker.silentChecks < SILENT_CHECKS_UNHEALTHY
}
