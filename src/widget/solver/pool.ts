/** Workers of one mode (../modes.ts) that solve one challenge, each in its own range of counters: the first answer wins. */

import { type PuzzleName, rangeStart } from '../../protocol/proof.ts'
import { sleep, timeoutSignal } from '../dom.ts'
import type { Job, OnProgress, PrepareOrder, Signals, Solved, SolveOrder, WorkerReport } from './job.ts'

/** The page forbids a mode, or the mode's workers fail. The mode is not tried again. */
export class ModeBlockedError extends Error {
  override readonly name = 'ModeBlockedError'
}

/** The time in which a file must load. */
export const FILE_MS_MAX = 10_000

/** The smallest module with a SIMD instruction: (func (result v128) i32.const 0 i8x16.splat). */
const SIMD_PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]

/** Bounds the retries of all the page's verifications together, so that they do not all wait for a kernel that a filter refuses. */
let kernelRetriesLeft = 2

/**
 * The best kernel that the browser supports; undefined if none, or if the file does not load. It is tried more than once, because a
 * solver without it takes 4 times as long, with HashWX 10 to 30. It needs no integrity value: without imports it reaches only its own memory, and
 * a wrong one finds no counter, or one that the service refuses.
 */
export async function fetchKernel(assets: string, puzzle: PuzzleName): Promise<ArrayBuffer | undefined> {
  if (typeof WebAssembly !== 'object') return undefined
  const hasSimd = WebAssembly.validate(Uint8Array.from(SIMD_PROBE))
  const sha256Wasm = hasSimd ? ASSET_NAMES.simdWasm : ASSET_NAMES.scalarWasm
  const signal = timeoutSignal(FILE_MS_MAX)
  try {
    const response = await fetch(assets + (puzzle === 'hashwx' ? ASSET_NAMES.hashwxWasm : sha256Wasm), {
      signal,
      referrerPolicy: 'no-referrer',
    })
    if (response.ok) return await response.arrayBuffer()
  } catch {
    // The next try may succeed.
  }
  if (signal.aborted || kernelRetriesLeft-- < 1) return undefined
  await sleep(1000)
  return fetchKernel(assets, puzzle)
}

/** A worker, or a port to one in the frame. */
export interface PoolWorker extends Pick<Worker, 'postMessage' | 'terminate'> {
  onmessage: unknown
  /** Ports have none: the frame reports errors of its workers as messages. */
  onerror?: unknown
}

/** A worker that reports nothing in this time was forbidden, or loads slowly: no ModeBlockedError, so the mode may be tried again. */
const START_MS_MAX = 8000
/** The renderer's name takes 100 ms on a slow machine. */
const RENDERER_WAIT_MS = 300

/** Workers get these besides their kernel. */
type PoolSetup = Pick<PrepareOrder, 'puzzle' | 'script'>

export class WorkerPool {
  /** Resolves as soon as one worker runs. Rejects with a ModeBlockedError if it fails, with another error if it is late or `start` throws. */
  readonly ready: Promise<void>
  readonly #start: () => PoolWorker
  readonly #kernel: Promise<ArrayBuffer | undefined>
  readonly #setup: PoolSetup
  readonly #workers: PoolWorker[] = []
  readonly #living = new Set<PoolWorker>()
  #isClosed = false
  /** Called with each report. Until `solve` it settles `ready`, then the answer; `#onFailure` likewise. */
  #onReport!: (report: WorkerReport, index: number) => void
  /** Called when the last worker has failed. */
  #onFailure!: (error: Error) => void

  /** Starts only one worker, because each worker that the page's policy forbids is a violation report. */
  constructor(start: () => PoolWorker, kernel: Promise<ArrayBuffer | undefined>, setup: PoolSetup) {
    this.#start = start
    this.#kernel = kernel
    this.#setup = setup
    this.ready = new Promise((resolve, reject) => {
      const timer = setTimeout(reject, START_MS_MAX, new Error('a worker did not load'))
      this.#onReport = () => {
        clearTimeout(timer)
        resolve()
      }
      this.#onFailure = reject
      this.#add({ isLate: false })
    })
    this.ready.catch(() => this.close())
  }

  #add({ isLate }: Pick<PrepareOrder, 'isLate'>): void {
    const worker = this.#start()
    const index = this.#workers.push(worker) - 1
    this.#living.add(worker)
    const fail = (message: string) => {
      worker.terminate()
      this.#living.delete(worker) // not a count: a worker may report several errors
      if (this.#living.size === 0) this.#onFailure(new ModeBlockedError(message || 'a worker did not load'))
    }
    worker.onmessage = ({ data }: MessageEvent<WorkerReport>) => {
      const lacksHashwx = data.kind === 'ready' && this.#setup.puzzle === 'hashwx' && !data.hasHashwx
      if (lacksHashwx)
        fail('worker-src: renew the copy of worker.js') // see WorkerReport
      else if (data.kind === 'failed') fail(data.message)
      else this.#onReport(data, index)
    }
    worker.onerror = (event: ErrorEvent) => {
      event.preventDefault()
      fail(event.message)
    }
    this.#kernel.then(kernel => order(worker, { kind: 'prepare', kernel, isLate, ...this.#setup }))
  }

  /** Rejects if all workers fail. Never settles if the pool is closed meanwhile. */
  async solve(
    job: Job,
    threadsMax: number,
    onProgress: OnProgress,
    gpuCounter: Promise<number>,
  ): Promise<Solved> {
    try {
      while (!this.#isClosed && this.#workers.length < threadsMax) this.#add({ isLate: true })
    } catch {
      // The workers that started solve alone.
    }
    await this.#kernel // Each worker gets `prepare` before `solve`.
    const threads = this.#workers.length
    const tries = new Array<number>(threads).fill(0)
    let sum = 0 // Old libraries replace `reduce`.
    let onRenderer!: (renderer: string | undefined) => void
    const renderer = new Promise<string | undefined>(resolve => (onRenderer = resolve))
    const answer = new Promise<Pick<Solved, 'counter' | 'solver' | 'tries'>>((resolve, reject) => {
      gpuCounter.then(counter => resolve({ counter, solver: 'gpu', tries: sum }))
      this.#onFailure = reject
      if (this.#living.size === 0) reject(new ModeBlockedError('no worker started'))
      this.#onReport = (report, index) => {
        if (report.kind === 'renderer') onRenderer(report.renderer)
        if (!('tries' in report)) return
        sum += report.tries - tries[index]!
        tries[index] = report.tries
        onProgress(sum)
        // An estimate, as if no worker had failed: the others report each PROGRESS_MS, so in a quick search not at all.
        if (report.kind === 'found') resolve({ ...report, tries: report.tries * threads })
      }
    })
    this.#workers.forEach((worker, index) => {
      const signals = index === 0 ? job.signals : 'none'
      order(worker, { ...job, signals, kind: 'solve', start: rangeStart(index) })
    })
    try {
      const { counter, solver, tries } = await answer
      this.#terminateFrom(1) // the first worker may still be reading the renderer
      const late = sleep(job.signals === 'none' ? 0 : RENDERER_WAIT_MS)
      return { counter, solver, threads, tries, renderer: await Promise.race([renderer, late]) }
    } finally {
      this.close()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#terminateFrom(0)
  }

  #terminateFrom(index: number): void {
    for (const worker of this.#workers.slice(index)) worker.terminate()
  }
}

const order = (worker: PoolWorker, message: PrepareOrder | SolveOrder): void => worker.postMessage(message)

/** Leaves one of more than 4 cores to the page. Reads only the number of cores if the site asks for no signals. */
export async function threadCount(signals: Signals): Promise<number> {
  const THREADS_MAX = 8
  const cores = navigator.hardwareConcurrency || 2
  const threads = Math.min(THREADS_MAX, cores > 4 ? cores - 1 : cores)
  return signals !== 'none' && (await isSparing()) ? Math.ceil(threads / 2) : threads
}

/** True if half of the threads are to be spared: on a small device, with a low battery, or if the visitor saves data. */
async function isSparing(): Promise<boolean> {
  const SMALL_DEVICE_GIB = 2
  const LOW_BATTERY = 0.2
  const BATTERY_WAIT_MS = 50
  const hints = navigator as Navigator & {
    readonly deviceMemory?: number
    readonly connection?: { readonly saveData?: boolean }
    getBattery?(): Promise<{ readonly charging: boolean; readonly level: number }>
  }
  if (hints.connection?.saveData || (hints.deviceMemory ?? 8) <= SMALL_DEVICE_GIB) return true
  try {
    const battery = await Promise.race([hints.getBattery?.(), sleep(BATTERY_WAIT_MS)])
    return battery !== undefined && !battery.charging && battery.level <= LOW_BATTERY
  } catch {
    return false
  }
}
