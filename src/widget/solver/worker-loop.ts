/** A worker's loop, which solves one puzzle. */

import { FIRST_COUNTER } from '../../protocol/proof.ts'
import { startWorkers } from '../frame.ts'
import { rendererName } from '../signals.ts'
import type { Solver } from './block.ts'
import { PROGRESS_MS, type WorkerOrder, type WorkerReport } from './job.ts'
import type { ChosenSolver } from './solvers.ts'

/**
 * The compiler optimises the loop only after a while, and between two calls, so the solver first runs on a made-up nonce. A
 * solve of 16 bits then takes 3 ms in the median, 7 ms without (npm run bench:solver).
 */
const WARM_UP_MS = 12
const WARM_UP_STRIDE = 1000

type Preparation = Extract<WorkerOrder, { kind: 'prepare' }>

const report = (message: WorkerReport) => postMessage(message)

/**
 * In a worker, obeys the page's orders. In the frame, which loads the same file to save visitors a script, it starts workers instead.
 *
 * @param stride counters between two readings of the clock
 */
export function runWorker(
  hasHashwx: boolean,
  choose: (order: Preparation) => ChosenSolver,
  stride: number,
): void {
  if (typeof document !== 'undefined') return startWorkers()
  let chosen: ChosenSolver
  addEventListener('message', ({ data }: MessageEvent<WorkerOrder>) => {
    if (data.kind === 'solve') return solve(chosen, data, stride)
    chosen = choose(data)
    if (!data.isLate) warmUp(chosen.solver)
  })
  report({ kind: 'ready', hasHashwx })
}

function warmUp(solver: Solver): void {
  const search = solver('0'.repeat(32), 32) // 32 zero bits, which is hardly ever met
  const endMs = performance.now() + WARM_UP_MS
  for (let start = FIRST_COUNTER; performance.now() < endMs; start += WARM_UP_STRIDE)
    search(start, WARM_UP_STRIDE)
}

function solve(
  { solver, kind }: ChosenSolver,
  { nonce, difficulty, start, signals }: Extract<WorkerOrder, { kind: 'solve' }>,
  stride: number,
): void {
  if (signals !== 'none') report({ kind: 'renderer', renderer: rendererName() })
  const search = solver(nonce, difficulty)
  let reportedMs = performance.now()
  for (let tries = 0; ; tries += stride) {
    const counter = search(start + tries, stride)
    if (counter >= 0) return report({ kind: 'found', counter, solver: kind, tries: counter - start + 1 })
    const nowMs = performance.now()
    if (nowMs - reportedMs >= PROGRESS_MS) {
      reportedMs = nowMs
      report({ kind: 'progress', tries: tries + stride })
    }
  }
}
