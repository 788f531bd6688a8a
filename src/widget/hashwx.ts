/**
 * Entry of a worker for HashWX, and of hashwx.html, where the same file starts such workers. It solves SHA-256 too, because a page that
 * hosts this file itself (attribute `worker-src`) starts it before the challenge names the puzzle.
 */

import type { MachineExports } from '../protocol/hashwx-machine.ts'
import { HASHWX_STRIDE, hashwxScriptSolver, hashwxSolver } from './solver/hashwx-solver.ts'
import type { PrepareOrder } from './solver/job.ts'
import { type ChosenSolver, chooseSolver } from './solver/solvers.ts'
import { runSolver } from './solver/worker-loop.ts'

declare const importScripts: (url: string) => void
/** Set by hashwx-script.js. */
declare const powgateHashwx: MachineExports

function choose({ kernel, puzzle, script }: PrepareOrder): ChosenSolver {
  if (puzzle !== 'hashwx') return chooseSolver(kernel)
  try {
    if (kernel !== undefined) return { solver: hashwxSolver(kernel), kind: 'wasm' }
  } catch {
    // The page's policy (CSP) forbids compiling, or the browser cannot: the script does it.
  }
  if (script === undefined) throw new Error('HashWX needs WebAssembly if the page pins or bundles the widget')
  importScripts(script)
  return { solver: hashwxScriptSolver(powgateHashwx), kind: 'script' }
}

runSolver({ hasHashwx: true, choose, stride: HASHWX_STRIDE })
