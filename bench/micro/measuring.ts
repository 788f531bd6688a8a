/**
 * Runs a step over its inputs, times it with tinybench, one sample a pass over all inputs, and measures the bytes that it leaves
 * behind.
 */

import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { Bench, type FnReturnedObject } from 'tinybench'
import { spreadOf } from '../../test/harness/measure.ts'
import type { AsyncWork, SyncWork, Work } from './case.ts'

/** So many calls of an asynchronous step are under way at a time, as in a service with traffic. */
export const UNDER_WAY = 32

function syncPass(step: SyncWork['step'], count: number): number {
  let right = 0
  for (let index = 0; index < count; index++) if (step(index)) right++
  return right
}

async function asyncPass(step: AsyncWork['step'], count: number): Promise<number> {
  let right = 0
  for (let start = 0; start < count; start += UNDER_WAY) {
    const results: Promise<boolean>[] = []
    for (let index = start; index < Math.min(count, start + UNDER_WAY); index++) results.push(step(index))
    for (const isRight of await Promise.all(results)) if (isRight) right++
  }
  return right
}

/** Throws Error unless every result is right: figures of work that fails would say nothing. */
export async function checkedPass(work: Work): Promise<void> {
  work.rewind?.()
  requireAll(await somePass(work, work.count), work.count)
}

/** @returns how many of the first `count` results are right */
async function somePass(work: Work, count: number): Promise<number> {
  return work.kind === 'sync' ? syncPass(work.step, count) : await asyncPass(work.step, count)
}

function requireAll(right: number, count: number): void {
  if (right !== count) throw new Error(`${count - right} of ${count} results are wrong`)
}

export interface Timing {
  /**
   * Nanoseconds per operation, the mean of all passes: the median of passes would leave out the garbage collector, which
   * comes in few of them.
   */
  readonly ns: number
  /** CPU time of all threads of the process per operation, in nanoseconds. */
  readonly cpuNs: number
  readonly operations: number
}

/** At least so many passes, however long one takes. */
const PASSES_MIN = 3

/** @param milliseconds of measuring, and as long before to warm up */
export async function timingOf(work: Work, milliseconds: number): Promise<Timing> {
  let cpuMs = 0
  const bench = new Bench({
    time: milliseconds,
    iterations: PASSES_MIN,
    warmupTime: milliseconds,
    warmupIterations: PASSES_MIN,
    throws: true,
    setup: () => {
      cpuMs = 0 // the warm-up does not count
    },
  })
  const { count, rewind } = work
  const sampleOf = (startMs: number, cpuStart: NodeJS.CpuUsage, right: number): FnReturnedObject => {
    const elapsedMs = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuStart)
    cpuMs += (user + system) / 1000
    requireAll(right, count)
    return { overriddenDuration: elapsedMs / count, overriddenIterationCost: elapsedMs }
  }
  if (work.kind === 'sync') {
    const { step } = work
    const pass = () => {
      rewind?.()
      const cpuStart = process.cpuUsage()
      return sampleOf(performance.now(), cpuStart, syncPass(step, count))
    }
    bench.add('pass', pass, { async: false })
    bench.runSync()
  } else {
    const { step } = work
    const pass = async () => {
      rewind?.()
      const cpuStart = process.cpuUsage()
      return sampleOf(performance.now(), cpuStart, await asyncPass(step, count))
    }
    bench.add('pass', pass, { async: true })
    await bench.run()
  }
  const { result } = bench.tasks[0]!
  if (result.state !== 'completed') throw new Error(`tinybench: ${result.state}`)
  const { mean, samplesCount } = result.latency
  const operations = samplesCount * count
  return { ns: mean * 1e6, cpuNs: (cpuMs * 1e6) / operations, operations }
}

const MEASUREMENTS = 7
/** If collections come between so often, it is tried with half the operations. */
const COLLECTED_MAX = 3
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
