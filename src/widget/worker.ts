/**
 * Entry of a worker, in which it solves one challenge of either puzzle, SHA-256 or HashWX. frame.html loads the same file, which saves
 * visitors a script: in a page it starts workers.
 */

import type { MachineExports } from '../protocol/hashwx-machine.ts'
import { FIRST_COUNTER } from '../protocol/proof.ts'
import { rendererName } from './signals.ts'
import type { Solver } from './solver/block.ts'
import { HASHWX_STRIDE, hashwxScriptSolver, hashwxSolver } from './solver/hashwx-solver.ts'
import {
  END_WORKER,
  PROGRESS_MS,
  type PrepareOrder,
  type SolveOrder,
  START_WORKER,
  type WorkerReport,
} from './solver/job.ts'
import { type ChosenSolver, chooseSolver } from './solver/solvers.ts'

/** A worker tries this many counters of SHA-256 before it reads the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const SHA256_STRIDE = 20_000

/**
 * The compiler optimises the loop only after a while, and between two calls, so the solver first runs on a made-up nonce. A
 * solve of 16 bits then takes 3 ms in the median, 7 ms without (npm run bench:solver).
 */
const WARM_UP_MS = 12
const WARM_UP_STRIDE = 1000

const report = (message: WorkerReport) => postMessage(message)

declare const importScripts: (url: string) => void
/** Set by hashwx-script.js. */
declare const powgateHashwx: MachineExports

/** HashWX in WebAssembly, or ten to thirty times slower in plain JavaScript. */
function chooseHashwx({ kernel, script }: PrepareOrder): ChosenSolver {
  try {
    if (kernel !== undefined) return { solver: hashwxSolver(kernel), kind: 'wasm' }
  } catch {
    // The page's policy (CSP) forbids compiling, or the browser cannot: the script does it.
  }
  if (script === undefined) throw new Error('HashWX needs WebAssembly if the page pins or bundles the widget')
  importScripts(script)
  return { solver: hashwxScriptSolver(powgateHashwx), kind: 'script' }
}

function solveForPage(): void {
  let chosen: ChosenSolver
  let stride: number
  addEventListener('message', ({ data }: MessageEvent<PrepareOrder | SolveOrder>) => {
    if (data.kind === 'solve') return solve(chosen, stride, data)
    const isHashwx = data.puzzle === 'hashwx'
    chosen = isHashwx ? chooseHashwx(data) : chooseSolver(data.kernel)
    stride = isHashwx ? HASHWX_STRIDE : SHA256_STRIDE
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

/** @param stride counters between two readings of the clock */
function solve(
  { solver, kind }: ChosenSolver,
  stride: number,
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

if (typeof document === 'undefined') solveForPage()
else startWorkersForPage()
