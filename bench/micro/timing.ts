/** Times a step with tinybench. One sample is a pass over all inputs. */

import { Bench, type FnReturnedObject } from 'tinybench'
import type { Work } from './case.ts'
import { asyncPass, requireAll, syncPass } from './passes.ts'

export interface Timing {
  /**
   * Nanoseconds per operation, the mean of all passes: the median of passes would leave out the garbage collector, which
   * comes in few of them.
   */
  readonly ns: number
  /** Of the median pass. */
  readonly typicalNs: number
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
  const { mean, p50, samplesCount } = result.latency
  const operations = samplesCount * count
  return { ns: mean * 1e6, typicalNs: p50 * 1e6, cpuNs: (cpuMs * 1e6) / operations, operations }
}
