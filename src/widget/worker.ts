/** Entry of a worker, for both puzzles. frame.html loads the same file; `runSolver` finds that it is in a page, and starts workers. */

import type { MachineExports } from '../protocol/hashwx-machine.ts'
import { HASHWX_STRIDE, hashwxScriptSolver, hashwxSolver } from './solver/hashwx-solver.ts'
import type { PrepareOrder } from './solver/job.ts'
import { type ChosenSolver, chooseSolver } from './solver/solvers.ts'
import { runSolver } from './solver/worker-loop.ts'

/** A worker tries this many counters of SHA-256 before it reads the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const SHA256_STRIDE = 20_000

declare const importScripts: (url: string) => void
/** Set by hashwx-script.js. */
declare const powgateHashwx: MachineExports

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

runSolver(order =>
  order.puzzle === 'hashwx'
    ? { ...chooseHashwx(order), stride: HASHWX_STRIDE }
    : { ...chooseSolver(order.kernel), stride: SHA256_STRIDE },
)
