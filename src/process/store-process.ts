/** The store process as the primary sees it: started before the workers, replaced when it dies, ended after them. */

import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/config.ts'
import type { Logger } from '../log/logger.ts'
import type { Totals } from '../metrics/totals.ts'
import type { StoreMessage, StoreUsage } from '../store/embedded/process.ts'
import { StoreSetupError } from '../store/store.ts'

const MODULE = new URL(`../store/embedded/process${extname(import.meta.url)}`, import.meta.url)
const SETTLED_MS = 5000
const BACK_OFF_MS = 100
/** The highest delay is short, because visitors wait. */
const BACK_OFF_MS_MAX = 1000
/** Saving a state of a million addresses fits in this time. */
const END_MS = 10_000
/** A process that says nothing for so long hangs: saving its state, or a change of sites, takes less. */
const HUNG_SECONDS = 15
/** Bytes of V8's heap for each byte of the state: the estimate leaves out some memory, and garbage. */
const HEAP_TIMES = 2

export class StoreProcess {
  readonly #config: Config
  readonly #log: Logger
  readonly #totals: Totals
  readonly #hungSeconds: number
  #child: ChildProcess | undefined
  #isEnding = false
  #quickCrashes = 0
  #usage: StoreUsage | undefined
  /** What ended processes used, up to the last second of each. */
  #cpuBefore = 0

  constructor(config: Config, log: Logger, totals: Totals, hungSeconds = HUNG_SECONDS) {
    this.#config = config
    this.#log = log
    this.#totals = totals
    this.#hungSeconds = hungSeconds
  }

  /** Resolves once it serves. @throws StoreSetupError */
  async start(): Promise<void> {
    const problem = await this.#fork()
    if (problem === undefined) return
    this.#isEnding = true
    throw new StoreSetupError(problem)
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

  async end(): Promise<void> {
    this.#isEnding = true
    const child = this.#child
    if (child === undefined || !child.connected) return
    await new Promise<void>(done => {
      child.once('exit', () => done())
      child.send('end')
      setTimeout(() => child.kill('SIGKILL'), END_MS).unref()
    })
  }

  #fork(): Promise<string | undefined> {
    const { dataDir, stateBytesMax } = this.#config
    const startedAtMs = performance.now()
    const heapMiB = Math.ceil((HEAP_TIMES * stateBytesMax) / 2 ** 20) + 256
    const execArgv = [...process.execArgv, `--max-old-space-size=${heapMiB}`]
    return new Promise(done => {
      const child = fork(fileURLToPath(MODULE), [dataDir, String(stateBytesMax)], { execArgv })
      let problem: string | undefined
      this.#child = child
      const heard = this.#killIfHung(child)
      child.on('message', (message: StoreMessage) => {
        heard()
        if (message.type === 'lives') this.#usage = message
        if (message.type === 'serves') done(undefined)
        else if (message.type === 'failed') problem = message.line
        else if (message.type === 'tells') this.#log[message.level](message.text)
      })
      const gone = (code: number | null, signal: string | null) => {
        this.#child = undefined
        this.#cpuBefore = this.cpuMicroseconds
        this.#usage = undefined
        done(problem ?? 'POWGATE_DATA_DIR: the store process ended before it served')
        // `start` may have to report the failure first.
        setImmediate(() => this.#isEnding || this.#replace({ code, signal, problem }, startedAtMs))
      }
      child.on('error', error => {
        problem ??= error.message
        if (child.pid === undefined) gone(null, null) // A process that did not start sends no exit event.
      })
      child.on('exit', gone)
    })
  }

  /** The count is in ticks of this process, so a machine that slept kills nothing. @returns to be called when the child is heard */
  #killIfHung(child: ChildProcess): () => void {
    let silentSeconds = 0
    let watch: NodeJS.Timeout | undefined
    const look = () => {
      if (++silentSeconds < this.#hungSeconds) return
      clearInterval(watch)
      this.#log.error(`the store process did nothing for ${this.#hungSeconds} s, so it is killed`)
      child.kill('SIGKILL')
    }
    child.on('exit', () => clearInterval(watch))
    return () => {
      silentSeconds = 0
      watch ??= setInterval(look, 1000).unref() // a start may take as long as it needs
    }
  }

  /** Starts at once after the first quick crash, after growing delays later. */
  #replace(about: object, startedAtMs: number): void {
    const isQuick = performance.now() - startedAtMs < SETTLED_MS
    this.#quickCrashes = isQuick ? this.#quickCrashes + 1 : 0
    this.#totals.counts.restarts.at('store').add()
    const delayMs =
      this.#quickCrashes <= 1 ? 0 : Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS * 2 ** (this.#quickCrashes - 2))
    this.#log.error(
      { ...about, restartsInMs: delayMs },
      'the store process has gone; it is started anew: what was issued before is refused, and visitors verify once more',
    )
    setTimeout(() => !this.#isEnding && void this.#fork(), delayMs)
  }
}
