/** Entry of a worker for SHA-256. frame.html loads the file too, and `runSolver`, which sees where it is, starts workers of it there. */

import { chooseSolver } from './solver/solvers.ts'
import { runSolver } from './solver/worker-loop.ts'

/** A worker tries this many counters before it reads the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const STRIDE = 20_000

runSolver({ hasHashwx: false, choose: ({ kernel }) => chooseSolver(kernel), stride: STRIDE })
