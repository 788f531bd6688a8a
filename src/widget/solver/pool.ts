/**
 * Workers that solve one puzzle together, each on its own range of counters: the first answer wins. Also what they need: the
 * kernel, and a number of threads.
 */

import { rangeStart } from '../../protocol/proof.ts'
import type { OnProgress, Signals, Solved, Task, Traits, WorkerOrder, WorkerReport } from './job.ts'

/** A mode is refused, or its worker fails to load or run: it is not tried again. */
export class ModeBlockedError extends Error {
  override readonly name = 'ModeBlockedError'
}

/** For requests: aborts after ten seconds. */
export function patience(): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 10_000)
  return controller.signal
}

/** The smallest module with a SIMD instruction: (func (result v128) i32.const 0 i8x16.splat). */
const SIMD_PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]

/**
 * Fetches the module of the best kernel that the browser supports; undefined if it supports none or the fetch fails. The
 * module is never pinned: without imports (solvers.ts) it reaches only its own memory. A wrong module finds a counter that the
 * service refuses, or none.
 *
 * @param base folder of the assets, ending in a slash
 */
export async function fetchKernel(base: string): Promise<ArrayBuffer | undefined> {
  if (typeof WebAssembly !== 'object') return undefined
  const hasSimd = WebAssembly.validate(Uint8Array.from(SIMD_PROBE))
  try {
    const response = await fetch(base + (hasSimd ? ASSET_NAMES.simdWasm : ASSET_NAMES.scalarWasm), {
      signal: patience(),
      referrerPolicy: 'no-referrer',
    })
    return response.ok ? await response.arrayBuffer() : undefined
  } catch {
    return undefined
  }
}

/** A worker, or a port to one in the frame. */
export interface PoolWorker extends Pick<Worker, 'postMessage' | 'terminate'> {
  /** Handlers; a port calls no `onerror`. */
  onmessage: unknown
  onerror?: unknown
}

/** Workers that send nothing for so long were refused by the page's policy, or did not load. */
const START_MS_MAX = 8000
/** An answer waits no longer than this for the traits. */
const TRAITS_WAIT_MS = 300

type Found = Pick<Solved, 'counter' | 'solver' | 'tries'>

/** For one puzzle: the workers end with its answer. */
export class WorkerPool {
  /** Resolves as soon as one worker runs; rejects if none may. */
  readonly ready: Promise<void>
  readonly #start: () => PoolWorker
  readonly #kernel: Promise<ArrayBuffer | undefined>
  readonly #workers: PoolWorker[] = []
  #alive = 0
  #isClosed = false
  readonly #traits: Promise<Traits>
  #seeTraits!: (traits: Traits) => void
  #onReady: () => void = () => {}
  #onTries: (index: number, report: Extract<WorkerReport, { tries: number }>) => void = () => {}
  #onFailure!: (error: Error) => void

  /**
   * Starts one worker. If the policy forbids workers, that is one violation report, not one a thread.
   *
   * @param start makes one worker; it may throw
   * @param kernel may still be loading: the worker prepares it before there is a puzzle
   */
  constructor(start: () => PoolWorker, kernel: Promise<ArrayBuffer | undefined>) {
    this.#start = start
    this.#kernel = kernel
    this.#traits = new Promise(resolve => {
      this.#seeTraits = resolve
    })
    this.ready = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no worker started')), START_MS_MAX)
      this.#onFailure = error => {
        clearTimeout(timer)
        reject(error)
      }
      this.#onReady = () => {
        clearTimeout(timer)
        this.#onReady = () => {}
        resolve()
      }
      this.#add(false)
    })
    this.ready.catch(() => this.close())
  }

  #add(isLate: boolean): void {
    const worker = this.#start()
    const index = this.#workers.push(worker) - 1
    this.#alive++
    const fail = (message: string) => {
      // The other workers go on without it.
      this.#alive--
      if (this.#alive === 0) this.#onFailure(new ModeBlockedError(message || 'a worker could not be loaded'))
    }
    worker.onmessage = ({ data }: MessageEvent<WorkerReport>) => {
      if (data.kind === 'ready') this.#onReady()
      else if (data.kind === 'renderer') this.#seeTraits(data)
      else if (data.kind === 'failed') fail(data.message)
      else this.#onTries(index, data)
    }
    worker.onerror = (event: ErrorEvent) => {
      event.preventDefault()
      worker.terminate()
      fail(event.message)
    }
    this.#kernel.then(kernel => order(worker, { kind: 'prepare', kernel, isLate }))
  }

  /**
   * Rejects if all workers fail. Never settles if the pool is closed meanwhile.
   *
   * @param threadsMax workers; fewer if the browser starts no more
   */
  async solve(
    task: Task,
    threadsMax: number,
    onProgress: OnProgress,
    gpuCounter: Promise<number>,
  ): Promise<Solved> {
    try {
      while (!this.#isClosed && this.#workers.length < threadsMax) this.#add(true)
    } catch {
      // The pool goes on with fewer workers.
    }
    await this.#kernel // by now each worker has it
    const threads = this.#workers.length
    const tries = new Array<number>(threads).fill(0)
    const sum = () => tries.reduce((total, count) => total + count)
    const answer = new Promise<Found>((resolve, reject) => {
      gpuCounter.then(counter => resolve({ counter, solver: 'gpu', tries: sum() }))
      this.#onFailure = reject
      if (this.#alive === 0) reject(new ModeBlockedError('a worker has ended'))
      this.#onTries = (index, report) => {
        tries[index] = report.tries
        onProgress(sum())
        if (report.kind === 'found') resolve({ ...report, tries: report.tries * threads })
      }
    })
    this.#workers.forEach((worker, index) => {
      const signals = index === 0 ? task.signals : 'none'
      order(worker, { ...task, signals, kind: 'solve', start: rangeStart(index, threads) })
    })
    try {
      const { counter, solver, tries } = await answer
      this.#stop(1) // the first worker may still be reading the traits
      const patienceMs = task.signals === 'none' ? 0 : TRAITS_WAIT_MS
      const late = new Promise<undefined>(resolve => setTimeout(resolve, patienceMs))
      const { renderer, timeZone } = (await Promise.race([this.#traits, late])) ?? {}
      return { counter, solver, threads, tries, renderer, timeZone }
    } finally {
      this.close()
    }
  }

  /** Stops all workers at once. */
  close(): void {
    this.#isClosed = true
    this.#stop(0)
  }

  #stop(from: number): void {
    for (const worker of this.#workers.slice(from)) worker.terminate()
  }
}

const order = (worker: PoolWorker, message: WorkerOrder): void => worker.postMessage(message)

interface Hints {
  readonly deviceMemory?: number
  readonly connection?: { readonly saveData?: boolean }
  getBattery?(): Promise<{ readonly charging: boolean; readonly level: number }>
}

/**
 * All cores of a small machine, all but one of a large one, at most 8; half of that if power or memory is short. For a site that
 * asks for no signals only the cores are read.
 */
export async function threadCount(signals: Signals): Promise<number> {
  const THREADS_MAX = 8
  const cores = navigator.hardwareConcurrency || 2
  const threads = Math.min(THREADS_MAX, cores > 4 ? cores - 1 : cores)
  return signals !== 'none' && (await isSparing()) ? Math.ceil(threads / 2) : threads
}

async function isSparing(): Promise<boolean> {
  const SMALL_DEVICE_GIB = 2
  const LOW_BATTERY = 0.2
  /** The battery's state may arrive late. */
  const BATTERY_WAIT_MS = 50
  const hints = navigator as Navigator & Hints
  if (hints.connection?.saveData || (hints.deviceMemory ?? 8) <= SMALL_DEVICE_GIB) return true
  try {
    const late = new Promise<undefined>(resolve => setTimeout(resolve, BATTERY_WAIT_MS))
    const battery = await Promise.race([hints.getBattery?.(), late])
    return battery !== undefined && !battery.charging && battery.level <= LOW_BATTERY
  } catch {
    return false
  }
}
