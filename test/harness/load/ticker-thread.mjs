/**
 * The thread of ticker.ts. In plain JavaScript, so that it starts without a loader.
 *
 *   state[0]   1 while a tick is on its way: no further one is sent then
 *   state[1]   1 when it should end
 */

import { parentPort, workerData } from 'node:worker_threads'

const { shared, intervalMs } = workerData
const state = new Int32Array(shared)

while (Atomics.wait(state, 1, 0, intervalMs) === 'timed-out') {
  if (Atomics.exchange(state, 0, 1) === 0) parentPort.postMessage(0)
}
