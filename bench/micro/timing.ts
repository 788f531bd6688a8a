/** Runs a step over its inputs, and times it with tinybench. One sample is a pass over all inputs. */

import { Bench, type FnReturnedObject } from 'tinybench'
import type { AsyncWork, SyncWork, Work } from './case.ts'

/** So many calls of an asynchronous step are under way at a time, as in a service with traffic. */
export const UNDER_WAY = 32

/** @returns how many of the first `count` results are right */
export function syncPass(step: SyncWork['step'], count: number): number {
  let right = 0
  for (let index = 0; index < count; index++) if (step(index)) right++
  return right
}

export async function asyncPass(step: AsyncWork['step'], count: number): Promise<number> {
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
  const { count } = work
  const right = work.kind === 'sync' ? syncPass(work.step, count) : await asyncPass(work.step, count)
  requireAll(right, count)
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
