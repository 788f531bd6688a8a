/** Solves on the page's own thread, in slices. */

import { FIRST_COUNTER } from '../../protocol/proof.ts'
import { nowMs } from '../dom.ts'
import { rendererName } from '../signals.ts'
import { type Job, type OnProgress, PROGRESS_MS, type Solved } from './job.ts'
import type { ChosenSolver } from './solvers.ts'

/** Half of a frame of 16 ms: the rest is for input and drawing. */
const SLICE_MS = 8

/**
 * @param sliceMin counters of the shortest slice
 * @throws the signal's reason
 */
export async function solveInSlices(
  { solver, kind }: ChosenSolver,
  sliceMin: number,
  { nonce, difficulty, signals }: Job,
  onProgress: OnProgress,
  gpuCounter: Promise<number>,
  signal: AbortSignal,
): Promise<Solved> {
  const search = solver(nonce, difficulty)
  let gpuFound = -1 // none yet; `search` returns a negative number for none too
  gpuCounter.then(counter => (gpuFound = counter)) // It never rejects.
  const channel = new MessageChannel() // Its own, so that elements that solve at the same time do not take each other's messages.
  let slice = sliceMin
  let reportedMs = nowMs()
  for (let tries = 0; ; ) {
    const beganMs = nowMs()
    const counter = search(FIRST_COUNTER + tries, slice)
    tries = counter < 0 ? tries + slice : counter - FIRST_COUNTER + 1
    if (counter >= 0 || gpuFound >= 0) {
      await yieldThread(channel) // because reading the renderer is slow
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
    const wanted = (slice * SLICE_MS) / (nowMs() - beganMs)
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
