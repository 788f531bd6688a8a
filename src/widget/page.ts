/** Entry for pages where neither workers nor frames may run, and the puzzle is SHA-256. */

import type { SolvePage } from './solver/job.ts'
import { solveInSlices } from './solver/slices.ts'
import { chooseSolver } from './solver/solvers.ts'

/** Counters of the shortest slice: 1 ms in plain JavaScript on a phone. */
const SLICE_MIN = 1000

export const solvePage: SolvePage = (kernel, ...rest) =>
  solveInSlices(chooseSolver(kernel), SLICE_MIN, ...rest)
