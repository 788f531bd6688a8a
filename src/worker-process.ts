/** One worker as the primary sees it, from its fork until its process has gone and its last word has been read. */

import cluster, { type Worker } from 'node:cluster'
import type { SettingValues } from './gather-settings.ts'
import type { StatsSnapshot } from './observe/snapshot.ts'

/**
 * Worker to primary. After a roll the two may be of different versions: each ignores what it does not know, and copes
 * with what it does not get.
 */
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
  /** Its slot, 0 to workers - 1 (the same for its successor), and the settings as the primary has decided them. */
  | { readonly type: 'start'; readonly index: number; readonly settings: SettingValues }
  | { readonly type: 'ask-stats'; readonly ask: number }
  | { readonly type: 'drain' }

export interface WorkerOrder {
  readonly index: number
  readonly settings: SettingValues
  /** How long it may take to leave. */
  readonly drainMs: number
}

/** Told of what happens to it. */
export interface WorkerListener {
  stats(worker: WorkerProcess, snapshot: StatsSnapshot): void
  /** It listens, or it has found that it cannot work. */
  settled(worker: WorkerProcess): void
  /** Its process has gone; once, and the last that is told. */
  gone(worker: WorkerProcess, code: number | null, signal: string | null): void
  /** The line to it is broken. */
  unreachable(worker: WorkerProcess, error: Error): void
}

/** Beyond the drain time that a worker is given. */
const KILL_GRACE_MS = 2000
/** After its end: for messages that it has sent and nobody has read. */
const LAST_WORDS_MS = 1000

export class WorkerProcess {
  /** Names this one process: its successor has another name. */
  readonly name: string
  readonly order: WorkerOrder
  readonly startedAtMs = performance.now()
  isListening = false
  isReady = false
  isLeaving = false
  /** Killed because it was silent for too long. */
  wasHung = false
  /** Checks of its owner since its last word. */
  silentChecks = 0
  /** Why it cannot work, once it has found out. */
  problem: string | undefined
  readonly #worker: Worker
  readonly #listener: WorkerListener
  #hasGone = false
  /** Each looks whether what it waits for has come. */
  readonly #waiting = new Set<() => void>()
  /** By the question's number: what it sends by itself may be older. */
  readonly #statsAsked = new Map<number, () => void>()

  constructor(order: WorkerOrder, listener: WorkerListener) {
    this.order = order
    this.#listener = listener
    this.#worker = cluster.fork()
    this.name = String(this.#worker.id)
    this.#worker.on('message', (message: WorkerMessage) => this.#onMessage(message))
    this.#worker.on('exit', (code, signal) => this.#onExit(code, signal))
    this.#worker.on('error', error => {
      listener.unreachable(this, error)
      if (this.pid === undefined) this.#onExit(null, null) // it could not be started, and will not say that it ended
    })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** It is to finish what is under way and go; it is killed when it takes too long. */
  leave(): void {
    if (this.isLeaving) return
    this.isLeaving = true
    this.#send({ type: 'drain' })
    const timer = setTimeout(() => this.kill(), this.order.drainMs + KILL_GRACE_MS)
    this.untilGone().then(() => clearTimeout(timer))
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL')
  }

  /** Resolves when it has sent what it counted until now; never, if it does not. */
  askStats(ask: number): Promise<void> {
    if (!this.isListening || !this.#send({ type: 'ask-stats', ask })) return Promise.resolve()
    return new Promise(resolve => this.#statsAsked.set(ask, resolve))
  }

  /** The question is answered, or nobody waits any longer. */
  forgetAsk(ask: number): void {
    this.#statsAsked.delete(ask)
  }

  untilGone(): Promise<void> {
    return this.#until(() => this.#hasGone)
  }

  /**
   * Resolves with undefined when it listens and its store answers, or with why that will not be.
   *
   * @param listenMs how long it may take to listen, and `readyMs` until its store answers from then on
   */
  async untilServing(listenMs: number, readyMs: number): Promise<string | undefined> {
    return (
      (await this.#within(listenMs, () => this.isListening, 'it does not listen')) ??
      (await this.#within(readyMs, () => this.isReady, 'its store does not answer'))
    )
  }

  /** @returns why it does not hold, in the end */
  async #within(ms: number, holds: () => boolean, lack: string): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>(resolve => {
      timer = setTimeout(resolve, ms)
    })
    const hasFailed = () => this.#hasGone || this.problem !== undefined
    await Promise.race([this.#until(() => holds() || hasFailed()), patience])
    clearTimeout(timer)
    if (hasFailed()) return this.problem ?? 'it ended before it was ready'
    return holds() ? undefined : `${lack} within ${ms / 1000} s`
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise(resolve => {
      const look = () => {
        if (!holds()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  #changed(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** Whether it could be sent. */
  #send(message: PrimaryMessage): boolean {
    if (!this.#worker.isConnected()) return false
    this.#worker.send(message)
    return true
  }

  #onMessage(message: WorkerMessage): void {
    this.silentChecks = 0
    switch (message.type) {
      case 'hello':
        this.#send({ type: 'start', index: this.order.index, settings: this.order.settings })
        break
      case 'stats':
        this.#listener.stats(this, message.snapshot)
        if (message.answers !== undefined) this.#statsAsked.get(message.answers)?.()
        break
      case 'listening':
        this.isListening = true
        this.#listener.settled(this)
        break
      case 'ready':
        this.isReady = message.isReady
        break
      case 'setup-failed':
        this.problem = message.line
        this.#listener.settled(this)
        break
    }
    this.#changed()
  }

  /** What it said last may still be on its way when its process has ended already. */
  #onExit(code: number | null, signal: string | null): void {
    this.isListening = false
    this.isReady = false
    const end = () => {
      if (this.#hasGone) return
      this.#hasGone = true
      for (const answered of this.#statsAsked.values()) answered()
      this.#listener.gone(this, code, signal)
      this.#changed()
    }
    if (!this.#worker.isConnected()) {
      end()
      return
    }
    this.#worker.once('disconnect', end)
    setTimeout(end, LAST_WORDS_MS).unref()
  }
}
