/** What the worker's file does: in a worker it solves one challenge, in the hidden frame it starts workers for the page. */

import { FIRST_COUNTER } from '../../protocol/proof.ts'
import { rendererName } from '../signals.ts'
import type { Solver } from './block.ts'
import {
  END_WORKER,
  PROGRESS_MS,
  type PrepareOrder,
  type SolveOrder,
  START_WORKER,
  type WorkerReport,
} from './job.ts'
import type { ChosenSolver } from './solvers.ts'

/**
 * The compiler optimises the loop only after a while, and between two calls, so the solver first runs on a made-up nonce. A
 * solve of 16 bits then takes 3 ms in the median, 7 ms without (npm run bench:solver).
 */
const WARM_UP_MS = 12
const WARM_UP_STRIDE = 1000

const report = (message: WorkerReport) => postMessage(message)

interface WorkerSolver extends ChosenSolver {
  /** Counters between two readings of the clock. */
  readonly stride: number
}

/** The frame loads the worker's file too, which saves visitors a script. */
export function runSolver(choose: (order: PrepareOrder) => WorkerSolver): void {
  if (typeof document !== 'undefined') return startWorkersForPage()
  let chosen: WorkerSolver
  addEventListener('message', ({ data }: MessageEvent<PrepareOrder | SolveOrder>) => {
    if (data.kind === 'solve') return solve(chosen, data)
    chosen = choose(data)
    if (!data.isLate) warmUp(chosen.solver)
  })
  report({ kind: 'ready', hasHashwx: true })
}

/**
 * The frame has the service's origin and policy, so it may start workers where the page's own policy allows none. Any page may embed
 * it, because its workers only compute.
 */
function startWorkersForPage(): void {
  const { src } = document.currentScript as HTMLScriptElement
  addEventListener('message', ({ data, source, ports: [port] }) => {
    if (source !== parent || data !== START_WORKER || port === undefined) return
    const fail = (error: unknown) =>
      port.postMessage({ kind: 'failed', message: `${error}` } satisfies WorkerReport)
    try {
      const worker = new Worker(src)
      worker.onmessage = ({ data }) => port.postMessage(data)
      worker.onerror = ({ message }) => fail(message)
      port.onmessage = ({ data }) => (data === END_WORKER ? worker.terminate() : worker.postMessage(data))
    } catch (error) {
      fail(error)
    }
  })
  // Any message says that the frame is ready. The page's origin is unknown here, and pages from files and in sandboxes have none.
  parent.postMessage(0, '*')
}

function warmUp(solver: Solver): void {
  const search = solver('0'.repeat(32), 32) // 32 zero bits, which is hardly ever met
  const endMs = performance.now() + WARM_UP_MS
  for (let start = FIRST_COUNTER; performance.now() < endMs; start += WARM_UP_STRIDE)
    search(start, WARM_UP_STRIDE)
}

function solve(
  { solver, kind, stride }: WorkerSolver,
  { nonce, difficulty, start, signals }: SolveOrder,
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
