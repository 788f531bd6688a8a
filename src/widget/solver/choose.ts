/** Chooses the solver for a browser. */

import type { SolverKind } from './job.ts'
import { scriptSolver } from './script.ts'
import type { Solver } from './search.ts'
import { wasmSolver } from './wasm.ts'

/** Falls back to plain JavaScript if the policy forbids compiling WebAssembly, or the kernel did not arrive. */
export function chooseSolver(kernel: ArrayBuffer | undefined): { solver: Solver; kind: SolverKind } {
  try {
    if (kernel !== undefined) return { solver: wasmSolver(kernel), kind: 'wasm' }
  } catch {
    // Plain JavaScript is slower, but works everywhere.
  }
  return { solver: scriptSolver, kind: 'script' }
}
