/** Solves a challenge on all cores: one thread each, the first answer ends the race. */

import { Worker } from 'node:worker_threads'
import type { Challenge } from '../protocol/wire.ts'
import type { Race, RaceMessage } from './solve-worker.ts'

/** About 1.5 ms of hashing: a thread that lost stops as soon as that. */
const BLOCK_SIZE = 4096
const PROGRESS_MS = 100

/** What of a challenge its solving takes. */
export type Puzzle = Pick<Challenge, 'nonce' | 'difficulty'>

export interface Solved {
  readonly counter: number
  /** Counters tried by all threads, rounded up to whole blocks. */
  readonly hashes: number
  /** From the call to the answer. */
  readonly ms: number
  /** The same without the start of the threads, for the rate. */
  readonly hashingMs: number
  readonly threads: number
}

export interface SolveOptions {
  readonly threads: number
  /** Called ten times a second and at the end with the counters tried so far. */
  readonly onProgress?: (hashes: number, hashingMs: number) => void
}

export async function solve(
  { nonce, difficulty }: Puzzle,
  { threads, onProgress }: SolveOptions,
): Promise<Solved> {
  const claimedBlocks = new Int32Array(new SharedArrayBuffer(4))
  const isOver = new Int32Array(new SharedArrayBuffer(4))
  const race: Race = { nonce, difficulty, blockSize: BLOCK_SIZE, claimedBlocks, isOver }
  const start = performance.now()
  let hashingStart = Number.POSITIVE_INFINITY
  const progress = () => ({
    hashes: Atomics.load(claimedBlocks, 0) * BLOCK_SIZE,
    hashingMs: performance.now() - hashingStart,
  })
  const tell = () => {
    const { hashes, hashingMs } = progress()
    if (hashingMs > 0) onProgress?.(hashes, hashingMs)
  }
  const timer = setInterval(tell, PROGRESS_MS)
  const workers = Array.from({ length: threads }, () => new Worker(workerEntry(), { workerData: race }))
  try {
    const counter = await firstAnswer(workers, () => {
      hashingStart = Math.min(hashingStart, performance.now())
    })
    tell() // so that the quickest solution is seen too
    return { counter, ms: performance.now() - start, ...progress(), threads }
  } finally {
    clearInterval(timer)
    Atomics.store(isOver, 0, 1)
    await Promise.all(workers.map(worker => worker.terminate()))
  }
}

function firstAnswer(workers: readonly Worker[], onStart: () => void): Promise<number> {
  return new Promise((resolve, reject) => {
    for (const worker of workers) {
      worker.on('message', (message: RaceMessage) => {
        if (message === 'started') onStart()
        else resolve(message)
      })
      worker.once('error', reject)
    }
  })
}

function workerEntry(): URL {
  const isBuilt = import.meta.url.endsWith('.js')
  return new URL(isBuilt ? './solve-worker.js' : './solve-worker.mjs', import.meta.url)
}
