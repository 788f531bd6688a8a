/** The primary process' handle of one worker: forks it, exchanges messages with it, and reports its end. */

import cluster, { type Worker } from 'node:cluster'
import { EventEmitter, once } from 'node:events'
import type { SettingValues } from '../config/config.ts'
import type { CachedRecords } from '../domain/site.ts'
import type { BackendCount } from '../endpoints/backend-counts.ts'
import type { Snapshot } from '../metrics/stats.ts'
import type { Build } from '../metrics/totals.ts'

/** After an upgrade, the two sides may differ in version: each ignores fields that it does not know, and tolerates missing ones. */
export type WorkerMessage =
  | ({ readonly type: 'hello' } & Partial<Build>)
  | { readonly type: 'listening' }
  | { readonly type: 'ready'; readonly isReady: boolean }
  /** `answers` is the `ask` of the message that this one answers. */
  | { readonly type: 'stats'; readonly snapshot: Snapshot; readonly answers?: number }
  | { readonly type: 'backends'; readonly counts: readonly BackendCount[] }
  | { readonly type: 'setup-failed'; readonly line: string }

export type PrimaryMessage =
  | ({ readonly type: 'start'; readonly lost: CachedRecords } & Pick<
      WorkerOptions,
      'index' | 'settings' | 'wholeStoreMs'
    >)
  | { readonly type: 'lost'; readonly lost: CachedRecords }
  | { readonly type: 'ask-stats'; readonly ask: number }
  | { readonly type: 'drain' }

interface WorkerOptions {
  readonly index: number
  readonly settings: SettingValues
  /** Records that the store has lost, and that the primary process remembers. */
  readonly lost: () => CachedRecords
  readonly drainMs: number
  /**
   * A successor has this, and listens only once its whole store answers: its predecessor may bridge the outage of a Cluster's node,
   * which a new worker cannot, because it never knew the node's epoch.
   */
  readonly wholeStoreMs: number | undefined
}

export interface WorkerListener {
  stats(worker: WorkerHandle, snapshot: Snapshot): void
  backends(counts: readonly BackendCount[]): void
  /** The worker listens, or its `problem` says why it cannot run. */
  startEnded(worker: WorkerHandle): void
  /** The process has ended. No call about it follows. */
  gone(worker: WorkerHandle, code: number | null, signal: string | null): void
  unreachable(error: Error): void
}

/** uWebSockets.js reads this variable. Its default of 4,096 is less than the cookies of a parent domain may have. */
const HEADER_BYTES_VARIABLE = 'UWS_HTTP_MAX_HEADERS_SIZE'

/** A worker must load its code within this time, on a busy machine beside all others. */
const LISTEN_MS = 120_000
/** A worker that does not end within `drainMs` is killed after this. */
const KILL_GRACE_MS = 2000
/** Messages of an ended worker may still arrive for this long. */
const LAST_MESSAGES_MS = 1000
/** Workers report twice a second. Silence is counted in checks, not in time: after a machine slept, no worker is killed. */
export const CHECK_MS = 1000
const SILENT_CHECKS_UNHEALTHY = 5
/**
 * A worker that is silent for so many checks is killed. One that does not listen yet gets no connections, so it has more time:
 * 16 workers that start on two busy cores need over 30 s, and so would they again if all were killed then.
 */
const [SILENT_CHECKS_MAX, STARTING_CHECKS_MAX] = [15, 120]

export class WorkerHandle {
  readonly options: WorkerOptions
  readonly startedAtMs = performance.now()
  build: Build = { version: '', node: '' }
  isListening = false
  isReady = false
  /** It drains; or was killed, because it had not said hello yet. */
  isLeaving = false
  wasHung = false
  problem: string | undefined
  #silentChecks = 0
  readonly #worker: Worker
  readonly #listener: WorkerListener
  /** It has said hello, so it reads messages. */
  #hasGreeted = false
  #hasGone = false
  /** Tells of each event of the worker, once its fields are set. */
  readonly #events = new EventEmitter().setMaxListeners(0)
  /** The last `ask` that was answered. Counters sent unasked may be older. */
  #statsAnswered = 0

  constructor(options: WorkerOptions, listener: WorkerListener) {
    this.options = options
    this.#listener = listener
    this.#worker = cluster.fork({ [HEADER_BYTES_VARIABLE]: process.env[HEADER_BYTES_VARIABLE] ?? '16384' })
    this.#worker.on('message', (message: WorkerMessage) => this.#onMessage(message))
    this.#worker.on('exit', (code, signal) => this.#onExit(code, signal))
    this.#worker.on('error', error => {
      listener.unreachable(error)
      if (this.pid === undefined) this.#onExit(null, null) // A process that did not start sends no exit event.
    })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  get isWell(): boolean {
    return this.isListening && this.#silentChecks < SILENT_CHECKS_UNHEALTHY
  }

  /** Kills a hanging worker, because the kernel still gives it connections. @returns true if it did */
  checkSilence(): boolean {
    this.#silentChecks++
    const { wholeStoreMs = 0 } = this.options
    const checksMax = this.isListening ? SILENT_CHECKS_MAX : STARTING_CHECKS_MAX + wholeStoreMs / CHECK_MS
    if (this.#silentChecks < checksMax || this.wasHung) return false
    this.wasHung = true
    this.kill()
    return true
  }

  leave(): void {
    if (this.isLeaving) return
    this.isLeaving = true
    if (!this.#hasGreeted) return this.kill() // it would miss the message
    this.#send({ type: 'drain' })
    const timer = setTimeout(() => this.kill(), this.options.drainMs + KILL_GRACE_MS)
    this.untilGone().then(() => clearTimeout(timer))
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL')
  }

  /** @param ask the number of the question, greater than any before; the worker's answer has it too */
  async askStats(ask: number, ms: number): Promise<void> {
    if (this.isListening && this.#send({ type: 'ask-stats', ask }))
      await this.#until(() => this.#hasGone || this.#statsAnswered >= ask, ms)
  }

  untilGone(): Promise<void> {
    return this.#until(() => this.#hasGone)
  }

  /** @returns undefined, or why it does not listen: at once if it never will */
  async untilListening(): Promise<string | undefined> {
    const { wholeStoreMs = 0 } = this.options
    const listenMs = LISTEN_MS + wholeStoreMs
    const ended = () => this.problem ?? (this.#hasGone ? 'it ended before it was ready' : undefined)
    await this.#until(() => this.isListening || ended() !== undefined, listenMs)
    return this.isListening ? undefined : (ended() ?? `it does not listen within ${listenMs / 1000} s`)
  }

  /** Resolves when the condition is true, which is checked after each event of the worker, or after `ms`. */
  async #until(isTrue: () => boolean, ms?: number): Promise<void> {
    const signal = ms === undefined ? undefined : AbortSignal.timeout(ms)
    while (!isTrue() && !signal?.aborted) await once(this.#events, 'changed', { signal }).catch(() => {})
  }

  sendLost(): void {
    if (this.#hasGreeted) this.#send({ type: 'lost', lost: this.options.lost() })
  }

  #send(message: PrimaryMessage): boolean {
    if (!this.#worker.isConnected()) return false
    this.#worker.send(message)
    return true
  }

  #onMessage(message: WorkerMessage): void {
    this.#silentChecks = 0
    switch (message.type) {
      case 'hello': {
        const { index, settings, lost, wholeStoreMs } = this.options
        this.#hasGreeted = true
        this.build = { version: message.version ?? '', node: message.node ?? '', server: message.server }
        this.#send({ type: 'start', index, settings, lost: lost(), wholeStoreMs })
        break
      }
      case 'stats':
        this.#listener.stats(this, message.snapshot)
        this.#statsAnswered = message.answers ?? this.#statsAnswered
        break
      case 'backends':
        this.#listener.backends(message.counts)
        break
      case 'listening':
        this.isListening = true
        this.#listener.startEnded(this)
        break
      case 'ready':
        this.isReady = message.isReady
        break
      case 'setup-failed':
        this.problem = message.line
        this.#listener.startEnded(this)
        break
    }
    this.#events.emit('changed')
  }

  /** Waits for the channel to close before the end is told, because the worker's last messages may still be on their way. */
  #onExit(code: number | null, signal: string | null): void {
    this.isListening = false
    this.isReady = false
    const end = () => {
      if (this.#hasGone) return
      this.#hasGone = true
      this.#listener.gone(this, code, signal)
      this.#events.emit('changed')
    }
    if (!this.#worker.isConnected()) return end()
    this.#worker.once('disconnect', end)
    setTimeout(end, LAST_MESSAGES_MS).unref()
  }
}
