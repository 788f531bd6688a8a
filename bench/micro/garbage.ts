/**
 * Measures the bytes that a step leaves behind: the growth of the heap and of buffers outside it, without garbage
 * collection. Memory of native code, such as OpenSSL's contexts, is not counted.
 */

import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { spreadOf } from '../../test/harness/measure.ts'
import type { Work } from './case.ts'
import { asyncPass, syncPass } from './timing.ts'

const MEASUREMENTS = 7
/** If collections come between so often, it is tried with half the operations. */
const COLLECTED_MAX = 3
/** The observer hears of a collection some turns of the event loop later. */
const SETTLE_MS = 2

/**
 * Bytes per operation. To be called when the step is warm, in a process that was started with --expose-gc.
 *
 * A process also allocates for itself now and then, as when it compiles: that only ever adds to the heap, so the least
 * growth of several measurements is the step's own.
 */
export async function garbageOf(work: Work): Promise<number> {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('garbage is measured with --expose-gc')
  const collections = watchCollections()
  try {
    for (let operations = work.count; operations >= 1; operations >>= 1) {
      const growth = await leastGrowth(work, operations, collections, gc)
      if (growth === undefined) continue
      const own = await leastGrowth(emptyLike(work), operations, collections, gc)
      if (own !== undefined) return Math.max(0, (growth - own) / operations)
    }
    throw new Error('a single operation is too much for one garbage collection')
  } finally {
    collections.stop()
  }
}

/** For what the loop and the measuring themselves leave behind. */
function emptyLike({ kind, count }: Work): Work {
  const result = Promise.resolve(true)
  return kind === 'sync' ? { kind, count, step: () => true } : { kind, count, step: () => result }
}

/** undefined if something is collected again and again before it is done. */
async function leastGrowth(
  work: Work,
  operations: number,
  collections: Collections,
  gc: NodeJS.GCFunction,
): Promise<number | undefined> {
  const heap: number[] = []
  const external: number[] = []
  gc()
  // A whole collection also drops what is made again at the first use after it, which is no garbage of the step.
  work.rewind?.()
  await somePass(work, operations)
  for (let collected = 0; heap.length < MEASUREMENTS; ) {
    // Room for what comes. Another thread frees the dead buffers, and the second collection waits for that.
    gc({ type: 'minor' })
    gc({ type: 'minor' })
    await setTimeout(SETTLE_MS)
    work.rewind?.()
    const startMs = performance.now()
    const before = process.memoryUsage()
    await somePass(work, operations)
    const after = process.memoryUsage()
    const endMs = performance.now()
    await setTimeout(SETTLE_MS)
    if (collections.isAnyWithin(startMs, endMs)) {
      if (++collected === COLLECTED_MAX) return undefined
    } else {
      heap.push(after.heapUsed - before.heapUsed)
      external.push(after.external - before.external)
    }
  }
  return spreadOf(heap).min + spreadOf(external).median
}

async function somePass(work: Work, operations: number): Promise<void> {
  if (work.kind === 'sync') syncPass(work.step, operations)
  else await asyncPass(work.step, operations)
}

type Collections = ReturnType<typeof watchCollections>

function watchCollections() {
  const spans: { startMs: number; endMs: number }[] = []
  const observer = new PerformanceObserver(list => {
    for (const { startTime, duration } of list.getEntries())
      spans.push({ startMs: startTime, endMs: startTime + duration })
  })
  observer.observe({ entryTypes: ['gc'] })
  return {
    isAnyWithin: (startMs: number, endMs: number) =>
      spans.some(span => span.endMs > startMs && span.startMs < endMs),
    stop: () => observer.disconnect(),
  }
}
