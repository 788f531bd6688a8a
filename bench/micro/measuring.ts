/**
 * Measures steps in turn in one process: time, CPU time and the bytes that they leave behind. Turns of a few milliseconds, so that
 * whatever else the machine does befalls all steps alike, and their ratios stay.
 *
 * No library: mitata 1.0 and tinybench time by the clock alone, and count neither the CPU time of the collector's threads nor
 * the memory of buffers.
 */

import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { spreadOf } from '../../test/harness/measure.ts'
import type { Work } from './work.ts'

/** The mean cost of one operation. A median would leave out the garbage collector, which comes in few passes. */
export interface Timing {
  readonly ns: number
  /** CPU time of all threads of the process, in nanoseconds. */
  readonly cpuNs: number
  readonly operations: number
}

const TURN_MS = 3

/** @param milliseconds of measuring for each, and as long before to warm up */
export function timingsOf(works: readonly Work[], milliseconds: number): Timing[] {
  const turns = Math.ceil(milliseconds / TURN_MS)
  for (let turn = 0; turn < turns; turn++) for (const work of works) takeTurn(work)
  const sums = works.map(work => ({ work, ms: 0, cpuUs: 0, operations: 0 }))
  for (let turn = 0; turn < turns; turn++) {
    for (const sum of sums) {
      const { ms, cpuUs, operations } = takeTurn(sum.work)
      sum.ms += ms
      sum.cpuUs += cpuUs
      sum.operations += operations
    }
  }
  return sums.map(({ ms, cpuUs, operations }) => {
    return { ns: (ms * 1e6) / operations, cpuNs: (cpuUs * 1e3) / operations, operations }
  })
}

/** Throws unless every result is right. */
function takeTurn({ pass, count }: Work) {
  const cpuStart = process.cpuUsage()
  const startMs = performance.now()
  let [right, operations, ms] = [0, 0, 0]
  do {
    right += pass(count)
    operations += count
    ms = performance.now() - startMs
  } while (ms < TURN_MS)
  if (right !== operations) throw new Error(`${operations - right} of ${operations} results are wrong`)
  const { user, system } = process.cpuUsage(cpuStart)
  return { ms, cpuUs: user + system, operations }
}

/** The least growth of so many passes counts, none of which a collection has spoiled. */
const PASSES = 7
/** After so many passes that a collection spoiled, half as many operations are tried, which leave half as much to collect. */
const SPOILED_MAX = 3
/** The observer hears of a collection some turns of the event loop later. */
const SETTLE_MS = 2

/**
 * Garbage in bytes per operation: the growth of the heap and of buffers outside it, without garbage collection. Memory of native
 * code, such as OpenSSL's contexts, is not counted. To be called when the step is warm, in a process that was started with
 * --expose-gc.
 *
 * A process also allocates for itself at times, as when it compiles. Such allocations only add to the heap, so the least
 * growth of several measurements is the step's own.
 */
export async function garbageOf({ pass, count }: Work): Promise<number> {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('garbage is measured with --expose-gc')
  const collections = watchCollections()
  try {
    for (let operations = count; operations >= 1; operations >>= 1) {
      const growth = await leastGrowth(pass, operations, collections, gc)
      if (growth === undefined) continue
      const ofMeasuring = await leastGrowth(() => 0, operations, collections, gc)
      if (ofMeasuring !== undefined) return Math.max(0, (growth - ofMeasuring) / operations)
    }
    throw new Error('a single operation is too much for one garbage collection')
  } finally {
    collections.stop()
  }
}

/** Bytes of one pass; undefined if collections spoiled SPOILED_MAX passes. */
async function leastGrowth(
  pass: Work['pass'],
  operations: number,
  collections: Collections,
  gc: NodeJS.GCFunction,
): Promise<number | undefined> {
  const heapGrowths: number[] = []
  const bufferGrowths: number[] = []
  gc()
  // A whole collection also drops what is made again at the first use after it, which is no garbage of the step.
  pass(operations)
  for (let spoiled = 0; heapGrowths.length < PASSES; ) {
    // Makes room for a pass. Another thread frees the dead buffers, and the second collection waits for that.
    gc({ type: 'minor' })
    gc({ type: 'minor' })
    await setTimeout(SETTLE_MS)
    const startMs = performance.now()
    const before = process.memoryUsage()
    pass(operations)
    const after = process.memoryUsage()
    const endMs = performance.now()
    await setTimeout(SETTLE_MS)
    if (collections.isAnyWithin(startMs, endMs)) {
      if (++spoiled === SPOILED_MAX) return undefined
    } else {
      heapGrowths.push(after.heapUsed - before.heapUsed)
      bufferGrowths.push(after.external - before.external)
    }
  }
  // A buffer that is freed meanwhile would make the least growth too small, so that of buffers is the median.
  return spreadOf(heapGrowths).min + spreadOf(bufferGrowths).median
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
