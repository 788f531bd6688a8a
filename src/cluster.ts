/**
 * The primary: forks one worker per core, replaces those that die, drains them on a signal. No connection passes
 * through it: every worker listens on the same port by SO_REUSEPORT and the kernel balances.
 */

import cluster, { type Worker } from 'node:cluster'
import type { Config } from './config.ts'
import type { SettingValues } from './gather-settings.ts'
import type { Logger } from './log.ts'
import type { RestartCause, Restarts } from './observe/restarts.ts'
import type { StatsSnapshot } from './observe/snapshot.ts'

/** Worker to primary. */
export type WorkerMessage =
  /** It has been loaded and asks what to do. */
  | { readonly type: 'hello' }
  | { readonly type: 'listening' }
  | { readonly type: 'ready'; readonly isReady: boolean }
  /** @property answers the number of the question, where it was asked */
  | { readonly type: 'stats'; readonly snapshot: StatsSnapshot; readonly answers?: number }
  /** It cannot work as configured; the line says why. */
  | { readonly type: 'setup-failed'; readonly line: string }

/** Primary to worker. */
export type PrimaryMessage =
  /** Its slot, 0 to workers - 1 (the same for its replacement), and the settings as the primary has decided them. */
  | { readonly type: 'start'; readonly index: number; readonly settings: SettingValues }
  | { readonly type: 'ask-stats'; readonly ask: number }
  | { readonly type: 'drain' }

/** Takes what workers have counted. */
export interface StatsSink {
  /**
   * @param worker names one process: its successor has another name
   * @param index its slot: its successor has the same
   */
  take(worker: string, snapshot: StatsSnapshot, index: number): void
  /** The process has gone; what it counted is not to be forgotten. */
  gone(worker: string): void
}

interface Slot {
  worker: Worker | undefined
  isListening: boolean
  isReady: boolean
  /** Checks since its last word. */
  silentChecks: number
  startedAtMs: number
  /** Crashes in a row, each soon after its start. */
  quickCrashes: number
  /** Its present worker is killed because it hangs. */
  isHung: boolean
  /** Told when its present worker has answered the question of this number: what it sends by itself may be older. */
  readonly statsAsked: Map<number, () => void>
}

const ASK_STATS_MS = 500
/** A worker that lived this long did not crash because of its start. */
const SETTLED_MS = 5000
const BACK_OFF_MS = 100
const BACK_OFF_MS_MAX = 5000
/** Workers say twice a second whether they are ready. Counted, not timed: a machine that slept kills nobody. */
const CHECK_MS = 1000
const SILENT_CHECKS_UNHEALTHY = 5
const SILENT_CHECKS_MAX = 15
/** Beyond the drain time that workers are given. */
const KILL_GRACE_MS = 2000

export class Primary {
  readonly #config: Config
  readonly #settings: SettingValues
  readonly #log: Logger
  readonly #sink: StatsSink
  readonly #slots: Slot[]
  readonly #restarts: Record<RestartCause, number> = { crash: 0, hang: 0, roll: 0 }
  #lastAsk = 0
  #isDraining = false
  #allListening: (() => void) | undefined
  #setupFailed: ((line: string) => void) | undefined
  #allGone: (() => void) | undefined

  /** @param settings as text, from which each worker makes its own Config */
  constructor(config: Config, settings: SettingValues, log: Logger, sink: StatsSink) {
    this.#config = config
    this.#settings = settings
    this.#log = log
    this.#sink = sink
    this.#slots = Array.from({ length: config.workers }, () => ({
      worker: undefined,
      isListening: false,
      isReady: false,
      silentChecks: 0,
      startedAtMs: 0,
      quickCrashes: 0,
      isHung: false,
      statsAsked: new Map(),
    }))
  }

  /** Resolves when every worker listens; rejects with a line if the first ones find that they cannot work. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#allListening = resolve
      this.#setupFailed = line => reject(new Error(line))
      for (let index = 0; index < this.#slots.length; index++) this.#fork(index)
      setInterval(() => this.#checkSilence(), CHECK_MS).unref()
    })
  }

  isHealthy(): boolean {
    return this.#slots.every(slot => slot.isListening && slot.silentChecks < SILENT_CHECKS_UNHEALTHY)
  }

  isReady(): boolean {
    return this.#slots.some(
      slot => slot.isListening && slot.isReady && slot.silentChecks < SILENT_CHECKS_UNHEALTHY,
    )
  }

  /** Since the start. */
  restarts(): Restarts {
    return this.#restarts
  }

  /** Resolves when every worker has gone. */
  drain(): Promise<void> {
    this.#isDraining = true
    return new Promise(resolve => {
      this.#allGone = resolve
      const message: PrimaryMessage = { type: 'drain' }
      for (const { worker } of this.#slots) if (worker?.isConnected()) worker.send(message)
      setTimeout(() => this.#killAll(), this.#config.drainMs + KILL_GRACE_MS).unref()
      this.#checkAllGone()
    })
  }

  #fork(index: number): void {
    const slot = this.#slots[index]!
    slot.startedAtMs = performance.now()
    slot.isListening = false
    slot.isReady = false
    slot.silentChecks = 0
    slot.isHung = false
    const worker = cluster.fork()
    slot.worker = worker
    worker.on('message', (message: WorkerMessage) => this.#onMessage(index, worker, message))
    worker.on('exit', (code, signal) => this.#onExit(index, code, signal))
    worker.on('error', error => this.#log.warn({ err: error }, 'cannot talk to a worker'))
  }

  /** Resolves when every worker has sent what it counted until now, or has had its time. */
  async askStats(): Promise<void> {
    const ask = ++this.#lastAsk
    const message: PrimaryMessage = { type: 'ask-stats', ask }
    const answers = this.#slots.map(slot => {
      if (!slot.isListening || !slot.worker?.isConnected()) return undefined
      slot.worker.send(message)
      return new Promise<void>(resolve => slot.statsAsked.set(ask, resolve))
    })
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise(resolve => {
      timer = setTimeout(resolve, ASK_STATS_MS)
    })
    await Promise.race([Promise.all(answers), patience])
    clearTimeout(timer)
    for (const slot of this.#slots) slot.statsAsked.delete(ask)
  }

  #onMessage(index: number, worker: Worker, message: WorkerMessage): void {
    const slot = this.#slots[index]!
    slot.silentChecks = 0
    switch (message.type) {
      case 'hello': {
        // What the primary has decided goes before what it was told.
        const { port, demo } = this.#config
        const settings = { ...this.#settings, PORT: String(port), POWGATE_DEMO: demo }
        const start: PrimaryMessage = { type: 'start', index, settings }
        worker.send(start)
        break
      }
      case 'stats':
        this.#sink.take(String(worker.id), message.snapshot, index)
        if (message.answers !== undefined) slot.statsAsked.get(message.answers)?.()
        break
      case 'listening':
        slot.isListening = true
        if (this.isHealthy()) this.#allListening?.()
        break
      case 'ready':
        slot.isReady = message.isReady
        break
      case 'setup-failed':
        this.#log.error({ problem: message.line }, 'a worker cannot start')
        this.#setupFailed?.(message.line)
        break
    }
  }

  /** A worker whose event loop hangs says nothing, but the kernel goes on handing it connections. */
  #checkSilence(): void {
    for (const slot of this.#slots) {
      if (!slot.isListening) continue
      slot.silentChecks++
      if (slot.silentChecks >= SILENT_CHECKS_MAX) {
        this.#log.error({ pid: slot.worker?.process.pid }, 'a worker hangs; it is killed')
        slot.isHung = true
        slot.worker?.process.kill('SIGKILL')
      }
    }
  }

  #onExit(index: number, code: number, signal: string): void {
    const slot = this.#slots[index]!
    if (slot.worker !== undefined) this.#sink.gone(String(slot.worker.id))
    for (const answered of slot.statsAsked.values()) answered()
    slot.worker = undefined
    slot.isListening = false
    slot.isReady = false
    if (this.#isDraining) {
      this.#checkAllGone()
      return
    }
    this.#restarts[slot.isHung ? 'hang' : 'crash']++
    slot.quickCrashes = performance.now() - slot.startedAtMs < SETTLED_MS ? slot.quickCrashes + 1 : 0
    // One crash is replaced at once, so that the service is whole again within a second; a second one soon after waits.
    const delayMs =
      slot.quickCrashes <= 1 ? 0 : Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS * 2 ** (slot.quickCrashes - 2))
    this.#log.warn(
      { worker: index, code, signal, restartsInMs: delayMs },
      'a worker has gone; it is replaced',
    )
    setTimeout(() => {
      if (!this.#isDraining) this.#fork(index)
    }, delayMs)
  }

  #checkAllGone(): void {
    if (this.#slots.every(slot => slot.worker === undefined)) this.#allGone?.()
  }

  #killAll(): void {
    for (const { worker } of this.#slots) worker?.process.kill('SIGKILL')
  }
}
