/** Entry of a worker: one job, then it is ended from outside. */

import { rendererName } from './renderer.ts'
import { chooseSolver } from './solver/choose.ts'
import type { WorkerJob, WorkerReport } from './solver/job.ts'

/** Counters between two looks at the clock: 1.5 ms with SIMD, 20 ms in plain JavaScript on a phone. */
const STRIDE = 20_000
const PROGRESS_MS = 100

const report = (message: WorkerReport) => postMessage(message)

addEventListener('message', ({ data }: MessageEvent<WorkerJob>) => {
  if (data.looksAtRenderer) report({ kind: 'renderer', renderer: rendererName() })
  const { solver, kind } = chooseSolver(data.kernel)
  const search = solver(data.nonce, data.difficulty)
  let toldMs = performance.now()
  for (let tries = 0; ; tries += STRIDE) {
    const counter = search(data.start + tries, STRIDE)
    if (counter >= 0) {
      report({ kind: 'found', counter, solver: kind, tries: counter - data.start + 1 })
      return
    }
    const nowMs = performance.now()
    if (nowMs - toldMs >= PROGRESS_MS) {
      toldMs = nowMs
      report({ kind: 'progress', tries: tries + STRIDE })
    }
  }
})

report({ kind: 'ready' })
