/** Entry of a worker for SHA-256, and of the frame that starts such workers. */

import { chooseSolver } from './solver/solvers.ts'
import { runWorker } from './solver/worker-loop.ts'

/** Counters between two readings of the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const STRIDE = 20_000

runWorker(false, ({ kernel }) => chooseSolver(kernel), STRIDE)
