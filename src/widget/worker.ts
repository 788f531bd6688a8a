/** Entry of a worker, which solves one puzzle. The frame loads the same file, so a visitor loads a script less. */

import { startWorkers } from './frame.ts'
import { slowTraits } from './signals.ts'
import type { Solver } from './solver/block.ts'
import type { WorkerOrder, WorkerReport } from './solver/job.ts'
import { chooseSolver } from './solver/solvers.ts'

/** Counters between two readings of the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const STRIDE = 20_000
const PROGRESS_MS = 100
/**
 * The compiler optimises the loop only after a while, and between two calls, so the solver first runs on a made-up nonce. A
 * solve of 16 bits then takes 3 ms in the median, 7 ms without (npm run bench:solver).
 */
const WARM_UP_MS = 12
const WARM_UP_STRIDE = 1000

const report = (message: WorkerReport) => postMessage(message)

let chosen = chooseSolver(undefined)

const obey = ({ data }: MessageEvent<WorkerOrder>) => {
  if (data.kind === 'solve') return solve(data)
  chosen = chooseSolver(data.kernel)
  if (!data.isLate) warmUp(chosen.solver)
}

function warmUp(solver: Solver): void {
  const search = solver('0'.repeat(32), 32)
  const endMs = performance.now() + WARM_UP_MS
  for (let start = 1e15; performance.now() < endMs; start += WARM_UP_STRIDE) search(start, WARM_UP_STRIDE)
}

function solve({ nonce, difficulty, start, signals }: Extract<WorkerOrder, { kind: 'solve' }>): void {
  if (signals !== 'none') report({ kind: 'renderer', ...slowTraits(signals) })
  const search = chosen.solver(nonce, difficulty)
  let toldMs = performance.now()
  for (let tries = 0; ; tries += STRIDE) {
    const counter = search(start + tries, STRIDE)
    if (counter >= 0) {
      report({ kind: 'found', counter, solver: chosen.kind, tries: counter - start + 1 })
      return
    }
    const nowMs = performance.now()
    if (nowMs - toldMs >= PROGRESS_MS) {
      toldMs = nowMs
      report({ kind: 'progress', tries: tries + STRIDE })
    }
  }
}

if (typeof document === 'undefined') {
  addEventListener('message', obey)
  report({ kind: 'ready' })
} else startWorkers()
