/** Workers that solve one puzzle together, each on its own range of counters. The first answer wins. */

import type { OnProgress, Puzzle, Solved, WorkerJob, WorkerReport } from './job.ts'
import { rangeStart } from './ranges.ts'

/** Workers of which none has said anything for so long were not allowed to run, or did not arrive. */
const START_MS_MAX = 8000
/** An answer does not wait longer than this for the name of the renderer. */
const RENDERER_WAIT_MS = 300

/** For one puzzle: the workers end with its answer. */
export class WorkerPool {
  /** Resolves as soon as one worker runs; rejects if none may. */
  readonly ready: Promise<void>
  readonly #workers: Worker[] = []
  #onReport: (index: number, report: WorkerReport) => void = () => {}
  #onFailure: (error: Error) => void = () => {}

  /** @param start makes one worker; it may throw */
  constructor(start: () => Worker, threads: number) {
    this.ready = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no worker started')), START_MS_MAX)
      this.#onFailure = reject
      this.#onReport = () => {
        clearTimeout(timer)
        for (let index = 1; index < threads; index++) this.#add(start(), index)
        this.#onReport = () => {}
        resolve()
      }
      // One alone at first: where the policy forbids workers, that is one violation report, not one a thread.
      this.#add(start(), 0)
    })
    this.ready.catch(() => this.close())
  }

  #add(worker: Worker, index: number): void {
    this.#workers.push(worker)
    worker.onmessage = ({ data }: MessageEvent<WorkerReport>) => this.#onReport(index, data)
    worker.onerror = event => {
      event.preventDefault()
      this.#onFailure(new Error(event.message || 'a worker could not be loaded'))
    }
  }

  /** Rejects if a worker fails. Never settles if the pool is closed meanwhile. */
  async solve(puzzle: Puzzle, kernel: ArrayBuffer | undefined, onProgress: OnProgress): Promise<Solved> {
    const threads = this.#workers.length
    const tries = new Array<number>(threads).fill(0)
    let seeRenderer: (renderer: string | undefined) => void
    const renderer = new Promise<string | undefined>(resolve => {
      seeRenderer = resolve
    })
    const answer = new Promise<Omit<Solved, 'renderer'>>((resolve, reject) => {
      this.#onFailure = reject
      this.#onReport = (index, report) => {
        if (report.kind === 'renderer') seeRenderer(report.renderer)
        if (report.kind !== 'progress' && report.kind !== 'found') return
        tries[index] = report.tries
        const total = tries.reduce((sum, count) => sum + count)
        onProgress(total)
        if (report.kind === 'found') {
          this.#stop(1) // the first worker may still be asking for the renderer
          resolve({ counter: report.counter, solver: report.solver, threads, tries: total })
        }
      }
    })
    this.#workers.forEach((worker, index) => {
      const start = rangeStart(index, threads)
      const job: WorkerJob = { ...puzzle, kernel, start, looksAtRenderer: index === 0 }
      worker.postMessage(job)
    })
    try {
      const found = await answer
      const late = new Promise<undefined>(resolve => setTimeout(resolve, RENDERER_WAIT_MS))
      return { ...found, renderer: await Promise.race([renderer, late]) }
    } finally {
      this.close()
    }
  }

  /** Stops all workers at once. */
  close(): void {
    this.#stop(0)
  }

  #stop(from: number): void {
    for (const worker of this.#workers.slice(from)) worker.terminate()
  }
}
