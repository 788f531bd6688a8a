/**
 * Entry for pages where neither workers nor frames may run, and the puzzle is HashWX, the second one (docs/howto/which-puzzle.md). It
 * is plain JavaScript, made by wasm2js, because such pages rarely allow WebAssembly.
 */

import * as exports from '#hashwx-script'
import { hashwxScriptSolver } from './solver/hashwx-solver.ts'
import type { SolvePage } from './solver/job.ts'
import { solveInSlices } from './solver/slices.ts'

/** Counters of the shortest slice, for which an interpreter without a compiler takes 10 ms. */
const SLICE_MIN = 20

export const solvePage: SolvePage = (_kernel, job, onProgress, gpuCounter, signal) => {
  const solver = hashwxScriptSolver(exports)
  return solveInSlices({ solver, kind: 'script' }, SLICE_MIN, job, onProgress, gpuCounter, signal)
}
