/** Entry of the bench's page: starts the workers and collects their results. */

import type { OnProgress, Puzzle, Solved } from '../../../src/widget/solver/job.ts'
import type { BenchPage, ContenderName, GpuRun, Order, PoolResult, RunResult } from '../contenders.ts'

/** What is used of browsers, whose types the project's benches are compiled without. */
interface BrowserWorker {
  onmessage: (event: { readonly data: unknown }) => void
  onerror: (event: { readonly message: string }) => void
  postMessage(order: Order): void
  terminate(): void
}
interface BrowserScope {
  readonly Worker: new (path: string, options?: { type: 'module' }) => BrowserWorker
  bench: BenchPage
}

/** The widget's own module, which is served as it is built for the widget. */
interface PoolModule {
  readonly WorkerPool: new (
    start: () => BrowserWorker,
    kernel: Promise<ArrayBuffer>,
  ) => {
    readonly ready: Promise<void>
    solve(
      puzzle: Puzzle,
      threadsMax: number,
      onProgress: OnProgress,
      gpuCounter: Promise<number>,
    ): Promise<Solved>
  }
  threadCount(signals: string): Promise<number>
}

interface GpuModule {
  search(puzzle: Puzzle, kind: string, goesOn: (tries: number) => boolean): Promise<number>
}

/** Calls of a GPU in a run, at least. */
const CALLS_MIN = 5
/** A challenge takes its time to come, in which workers get ready. */
const CHALLENGE_MS = 40

const scope = globalThis as unknown as BrowserScope
const load = <Module>(path: string) => import(path) as Promise<Module>
const kernel = fetch('/simd.wasm').then(response => response.arrayBuffer())

/** One contender on some threads, for as long as `use` takes. */
async function withThreads<Result>(
  contender: ContenderName,
  nonce: string,
  threads: number,
  use: (order: <Answer>(order: Order) => Promise<Answer[]>) => Promise<Result>,
): Promise<Result> {
  const workers = Array.from({ length: threads }, () => new scope.Worker('/worker.js', { type: 'module' }))
  const ask = <Answer>(order: Order) => Promise.all(workers.map(worker => answerTo<Answer>(worker, order)))
  try {
    await ask({ kind: 'open', contender, nonce })
    return await use(ask)
  } finally {
    for (const worker of workers) worker.terminate()
  }
}

function answerTo<Answer>(worker: BrowserWorker, order: Order): Promise<Answer> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data as Answer)
    worker.onerror = ({ message }) => reject(new Error(message || 'the worker could not be loaded'))
    worker.postMessage(order)
  })
}

scope.bench = {
  async threadCount() {
    const { threadCount } = await load<PoolModule>('/pool.js')
    return threadCount('flags')
  },

  rate: (contender, { nonce, threads, warmUpMs, ms }) =>
    withThreads(contender, nonce, threads, async ask => {
      await ask({ kind: 'run', ms: warmUpMs })
      const results = await ask<RunResult>({ kind: 'run', ms })
      return results.reduce((sum, result) => sum + (1000 * result.hashes) / result.ms, 0)
    }),

  find: (contender, nonce, bits) =>
    withThreads(contender, nonce, 1, async ask => (await ask<number>({ kind: 'find', bits }))[0]!),

  async solve(puzzle, threads): Promise<PoolResult> {
    const { WorkerPool } = await load<PoolModule>('/pool.js')
    await kernel
    const startMs = performance.now()
    const pool = new WorkerPool(() => new scope.Worker('/widget-worker.js'), kernel)
    await pool.ready
    await new Promise(resolve => setTimeout(resolve, CHALLENGE_MS))
    const readyMs = performance.now()
    let foundMs = readyMs
    // The last time that the pool tells of progress is when the counter is there.
    const onProgress = () => {
      foundMs = performance.now()
    }
    const { counter } = await pool.solve(puzzle, threads, onProgress, new Promise(() => {}))
    return { counter, searchMs: foundMs - readyMs, totalMs: performance.now() - startMs - CHALLENGE_MS }
  },

  async gpu(nonce, ms): Promise<GpuRun> {
    const { search } = await load<GpuModule>('/gpu.js')
    const beganMs = performance.now()
    const calls: { tries: number; atMs: number }[] = []
    const goesOn = (tries: number) => {
      calls.push({ tries, atMs: performance.now() })
      return calls.length < CALLS_MIN || performance.now() < calls[0]!.atMs + ms
    }
    // No counter of a bench meets 32 bits, so the search ends when its time is over.
    await search({ nonce, difficulty: 32 }, 'software', goesOn).catch(() => {})
    const [first, last] = [calls[1], calls.at(-1)]
    if (first === undefined || last === undefined) throw new Error('this browser has no WebGPU here')
    const seconds = (last.atMs - first.atMs) / 1000
    return { startMs: first.atMs - beganMs, hashesPerSecond: (last.tries - first.tries) / seconds }
  },
}
