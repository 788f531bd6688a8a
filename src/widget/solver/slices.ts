/** Solves on the page's own thread, in slices. */

import { rangeStart } from '../../protocol/proof.ts'
import { nowMs } from '../dom.ts'
import { rendererName } from '../signals.ts'
import type { OnProgress, Solved, Task } from './job.ts'
import type { ChosenSolver } from './solvers.ts'

/** Half of a frame of 16 ms: the rest is for input and drawing. */
const SLICE_MS = 8
const PROGRESS_MS = 100

/**
 * @param sliceMin counters of the shortest slice
 * @throws the signal's reason
 */
export async function solveInSlices(
  { solver, kind }: ChosenSolver,
  sliceMin: number,
  { nonce, difficulty, signals }: Task,
  onProgress: OnProgress,
  gpuCounter: Promise<number>,
  signal: AbortSignal,
): Promise<Solved> {
  const search = solver(nonce, difficulty)
  const start = rangeStart(0, 1)
  let gpuFound = -1
  gpuCounter.then(counter => {
    gpuFound = counter
  })
  const channel = new MessageChannel() // Several elements may be solving, each with its own channel.
  let slice = sliceMin
  let reportedMs = nowMs()
  for (let tries = 0; ; ) {
    const beganMs = nowMs()
    const counter = search(start + tries, slice)
    tries = counter < 0 ? tries + slice : counter - start + 1
    if (counter >= 0 || gpuFound >= 0) {
      await yieldThread(channel)
      channel.port1.close()
      const found = counter < 0 ? ({ counter: gpuFound, solver: 'gpu' } as const) : { counter, solver: kind }
      const renderer = signals === 'none' ? undefined : rendererName()
      return { ...found, tries, threads: 1, renderer }
    }
    if (beganMs - reportedMs >= PROGRESS_MS) {
      reportedMs = beganMs
      onProgress(tries)
    }
    // Grows to at most twice the last slice, because the compiler makes the loop faster only after some slices.
    const wanted = (slice * SLICE_MS) / Math.max(0.1, nowMs() - beganMs)
    slice = Math.max(sliceMin, Math.min(2 * slice, Math.floor(wanted)))
    await yieldThread(channel)
    if (signal.aborted) throw signal.reason
  }
}

/** Lets the thread's other tasks run. A timer would do so only once a second in a hidden page. */
function yieldThread({ port1, port2 }: MessageChannel): Promise<void> {
  return new Promise(resolve => {
    port1.onmessage = () => resolve()
    port2.postMessage(0)
  })
}
