/** Entry of the bench's page: starts the workers and collects their results. */

import type { BenchPage, ContenderName, Order, RunResult } from '../contenders.ts'

/** The widget's own modules, served as they are built for the widget. */
type PoolModule = typeof import('../../../src/widget/solver/pool.ts')
type GpuModule = typeof import('../../../src/widget/gpu.ts')

/** What the widget fetches for its workers, by puzzle. */
const KERNELS = { sha256: '/simd.wasm', hashwx: '/hashwx.wasm' }
/** Calls of a GPU in a run, at least. */
const CALLS_MIN = 5
/** A widget's first worker waits about so long for the challenge to come. */
const CHALLENGE_MS = 40

const load = <Module>(path: string) => import(path) as Promise<Module>

/** One contender on some threads, for as long as `use` takes. */
async function withThreads<Result>(
  contender: ContenderName,
  nonce: string,
  threads: number,
  use: (order: <Answer>(order: Order) => Promise<Answer[]>) => Promise<Result>,
): Promise<Result> {
  const workers = Array.from({ length: threads }, () => new Worker('/worker.js', { type: 'module' }))
  const ask = <Answer>(order: Order) => Promise.all(workers.map(worker => answerTo<Answer>(worker, order)))
  try {
    await ask({ kind: 'open', contender, nonce })
    return await use(ask)
  } finally {
    for (const worker of workers) worker.terminate()
  }
}

function answerTo<Answer>(worker: Worker, order: Order): Promise<Answer> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message || 'the worker could not be loaded'))
    worker.postMessage(order)
  })
}

const bench: BenchPage = {
  async threadCount() {
    const { threadCount } = await load<PoolModule>('/pool.js')
    return threadCount('flags') // as for a site that asks for signals, where the widget takes fewer on a small device
  },

  rate: (contender, { nonce, threads, warmUpMs, ms }) =>
    withThreads(contender, nonce, threads, async ask => {
      await ask({ kind: 'run', ms: warmUpMs })
      const results = await ask<RunResult>({ kind: 'run', ms })
      return results.reduce((sum, result) => sum + (1000 * result.hashes) / result.ms, 0)
    }),

  find: (contender, nonce, bits) =>
    withThreads(contender, nonce, 1, async ask => (await ask<number>({ kind: 'find', bits }))[0]!),

  async solve(task, threads) {
    const { WorkerPool } = await load<PoolModule>('/pool.js')
    const kernel = fetch(KERNELS[task.algorithm]).then(response => response.arrayBuffer())
    await kernel
    const plan = { puzzle: task.algorithm, script: undefined }
    const pool = new WorkerPool(() => new Worker('/widget-worker.js'), kernel, plan)
    await pool.ready
    await new Promise(resolve => setTimeout(resolve, CHALLENGE_MS))
    const readyMs = performance.now()
    let foundMs = readyMs
    // The last time that the pool tells of progress is when the counter is there. `solve` resolves later, after the signals.
    const onProgress = () => void (foundMs = performance.now())
    const order = { ...task, signals: 'flags' } as const
    const noGpu = new Promise<never>(() => {})
    const { counter } = await pool.solve(order, threads, onProgress, noGpu)
    return { counter, searchMs: foundMs - readyMs }
  },

  async gpu(nonce, ms) {
    const { search } = await load<GpuModule>('/gpu.js')
    const beganMs = performance.now()
    const calls: { tries: number; atMs: number }[] = []
    let isOver = false
    const goesOn = (tries: number) => {
      calls.push({ tries, atMs: performance.now() })
      isOver = calls.length >= CALLS_MIN && performance.now() >= calls[0]!.atMs + ms
      return !isOver
    }
    // No counter of a bench meets 32 bits, so the search ends, and rejects, when its time is over. 'software' allows any GPU.
    await search({ nonce, difficulty: 32 }, 'software', goesOn).catch(error => {
      if (!isOver) throw new Error(`WebGPU does not work here: ${error.message}`)
    })
    // It is called before each dispatch: by the second call the first dispatch has answered, and the start is over.
    const [answered, end] = [calls[1]!, calls[calls.length - 1]!]
    const seconds = (end.atMs - answered.atMs) / 1000
    return { startMs: answered.atMs - beganMs, hashesPerSecond: (end.tries - answered.tries) / seconds }
  },
}

Object.assign(globalThis, { bench })
