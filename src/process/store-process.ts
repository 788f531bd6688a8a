/**
 * Runs the process of the embedded store (store/embedded/process.ts), which is used in place of Redis: starts it before the workers,
 * replaces it when it dies, and ends it after them.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/config.ts'
import type { Logger } from '../log/logger.ts'
import type { Totals } from '../metrics/totals.ts'
import type { StoreMessage, StoreUsage } from '../store/embedded/process.ts'
import { putStateBack, removeSavedState } from '../store/embedded/snapshot.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'
import { Restarts } from './restarts.ts'

const MODULE = new URL(`../store/embedded/process${extname(import.meta.url)}`, import.meta.url)
/** The longest delay is short, because visitors wait. */
const RESTART_DELAY_MS_MAX = 1000
/** Saving a full state of the default size fits in this time, and with it a stop in the 30 s of docs/examples/powgate.service. */
const END_MS = 15_000
/** A process that sends no message for so long hangs: saving its state, or a change of sites, takes less. */
const HUNG_SECONDS = 15
/** Before it serves, it may be silent so many times as long: it reads its files in one step, 1 GiB in 25 s on a busy machine. */
const READING_TIMES = 4
/** The heap may be this multiple of the state's bytes, whose count leaves out garbage and some objects, and has these MiB for all else. */
const [HEAP_TIMES, HEAP_MIB_MORE] = [2, 256]

export class StoreProcess {
  readonly #config: Config
  readonly #log: Logger
  readonly #totals: Totals
  readonly #hungSeconds: number
  #child: ChildProcess | undefined
  /** The first process served, so one that ends is replaced. */
  #hasServed = false
  /** The present process serves. */
  #isServing = false
  #isEnding = false
  readonly #restarts = new Restarts()
  #usage: StoreUsage | undefined
  /** The CPU time of processes that have ended, in microseconds, without the last second of each. */
  #cpuBefore = 0

  constructor(config: Config, log: Logger, totals: Totals, hungSeconds = HUNG_SECONDS) {
    this.#config = config
    this.#log = log
    this.#totals = totals
    this.#hungSeconds = hungSeconds
  }

  /** Resolves once it serves. @throws OperatorError */
  async start(): Promise<void> {
    const problem = await this.#fork()
    if (problem !== undefined) throw new OperatorError(problem)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get memory(): NodeJS.MemoryUsage | undefined {
    return this.#usage?.memory
  }

  get cpuMicroseconds(): number {
    const { user, system } = this.#usage?.cpu ?? { user: 0, system: 0 }
    return this.#cpuBefore + user + system
  }

  /** Tells the process to save its state and end. One that still reads its files hears nothing: it is killed, and the state put back. */
  async end(): Promise<void> {
    this.#isEnding = true
    const [child, isServing] = [this.#child, this.#isServing]
    if (child === undefined || !child.connected) return
    const kill = () => child.kill('SIGKILL')
    await new Promise<void>(done => {
      child.once('exit', () => {
        clearTimeout(late)
        done()
      })
      if (isServing) child.send('end')
      else kill()
      const onLate = () => {
        this.#log.warn(
          'the store process did not end in time, so it is killed: what was issued before is refused',
        )
        kill()
      }
      const late = setTimeout(onLate, END_MS).unref()
    })
    if (!isServing) putStateBack(this.#config.dataDir)
  }

  /** @returns undefined once the process serves, or why it does not */
  #fork(): Promise<string | undefined> {
    const { dataDir, stateBytesMax } = this.#config
    const startedAtMs = performance.now()
    const heapMiB = Math.ceil((HEAP_TIMES * stateBytesMax) / 2 ** 20) + HEAP_MIB_MORE
    const execArgv = [...process.execArgv, `--max-old-space-size=${heapMiB}`]
    return new Promise(done => {
      let child: ChildProcess
      try {
        child = fork(fileURLToPath(MODULE), [dataDir, String(stateBytesMax)], { execArgv })
      } catch (error) {
        // `fork` throws for want of memory; most other errors come as an event.
        const { message } = error as Error
        done(message)
        if (this.#hasServed && !this.#isEnding) this.#replace({ problem: message }, startedAtMs)
        return
      }
      let problem: string | undefined
      this.#child = child
      const onHeard = this.#killIfHung(child)
      child.on('message', (message: StoreMessage) => {
        onHeard()
        if (message.type === 'lives') this.#usage = message
        else if (message.type === 'serves') {
          problem = this.#removeSaved()
          if (problem !== undefined) return void child.kill('SIGKILL')
          this.#hasServed = true
          this.#isServing = true
          done(undefined)
        } else if (message.type === 'failed') problem = message.line
        else if (message.type === 'tells') this.#log[message.level](message.text)
      })
      const onEnd = (code: number | null, signal: string | null) => {
        this.#child = undefined
        this.#isServing = false
        this.#cpuBefore = this.cpuMicroseconds
        this.#usage = undefined
        done(problem ?? 'POWGATE_DATA_DIR: the store process ended before it served')
        if (this.#hasServed && !this.#isEnding) this.#replace({ code, signal, problem }, startedAtMs)
      }
      child.on('error', error => {
        problem ??= error.message
        if (child.pid === undefined) onEnd(null, null) // A process that did not start sends no exit event.
      })
      child.on('exit', onEnd)
    })
  }

  /** A saved state that stayed could be read again by a later process. A stop leaves it to `end`. @returns why it cannot be removed */
  #removeSaved(): string | undefined {
    try {
      if (!this.#isEnding) removeSavedState(this.#config.dataDir)
      return undefined
    } catch (error) {
      return `POWGATE_DATA_DIR: cannot remove the saved state: ${systemErrorText(error)}`
    }
  }

  /**
   * Counts the child's silence in checks of this process, not in time: after a machine slept, it is not killed.
   *
   * @returns a function to call with each message of the child; its first call begins the watch
   */
  #killIfHung(child: ChildProcess): () => void {
    let silentSeconds = 0
    let watch: NodeJS.Timeout | undefined
    const check = () => {
      const secondsMax = this.#hungSeconds * (this.#isServing ? 1 : READING_TIMES)
      if (++silentSeconds < secondsMax) return
      clearInterval(watch)
      this.#log.error(`the store process did nothing for ${secondsMax} s, so it is killed`)
      child.kill('SIGKILL')
    }
    child.on('exit', () => clearInterval(watch))
    return () => {
      silentSeconds = 0
      watch ??= setInterval(check, 1000).unref()
    }
  }

  #replace(about: object, startedAtMs: number): void {
    this.#restarts.crashed(startedAtMs, RESTART_DELAY_MS_MAX)
    this.#totals.counts.restarts.at('store').add()
    const { delayMs } = this.#restarts
    this.#log.error(
      { ...about, restartsInMs: delayMs },
      'the store process has gone; it is started anew: what was issued before is refused, and visitors verify once more',
    )
    setTimeout(() => !this.#isEnding && void this.#fork(), delayMs)
  }
}
