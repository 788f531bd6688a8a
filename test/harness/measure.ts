/**
 * CPU time and memory as Linux counts them in /proc, of a process and of the whole machine, also between two moments; and the spread
 * of a figure that was measured several times.
 *
 * CPU time is user+system of all threads. /proc/<pid>/task/<tid>/schedstat has it in nanoseconds, of threads that live; a kernel
 * may lack that file. /proc/<pid>/stat has that of ended threads too, in ticks of 10 ms. The larger of both counts.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of this process' heap once garbage is collected. */
export function liveHeapBytes(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

/** USER_HZ, which Linux fixes at 100 on every architecture that Node.js runs on. */
const TICK_MS = 10

/** CPU time, and the memory that Linux counts as resident, shared pages and mapped files included. Throws if there is no such process. */
export function processUsage(pid: number) {
  return { cpuMs: Math.max(threadsCpuMs(pid), processStat(pid).cpuMs), residentBytes: residentBytes(pid) }
}

/** @returns 0 where the kernel has no `schedstat` */
function threadsCpuMs(pid: number): number {
  let nanoseconds = 0
  for (const thread of readdirSync(`/proc/${pid}/task`))
    nanoseconds += threadCpuNs(`/proc/${pid}/task/${thread}/schedstat`)
  return nanoseconds / 1e6
}

function threadCpuNs(path: string): number {
  try {
    return Number.parseInt(readFileSync(path, 'latin1'), 10)
  } catch {
    return 0 // The thread has just ended, or the kernel has no such file.
  }
}

/** The parent of a process; its CPU time, counted in ticks, with that of ended threads; that of ended children. Throws if there is no such process. */
export function processStat(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const rest = stat.slice(stat.lastIndexOf(')') + 2)
  const fields = rest.split(' ').map(Number)
  const [ownTicks, childrenTicks] = [fields[11]! + fields[12]!, fields[13]! + fields[14]!] // user and system
  return { parent: fields[1]!, cpuMs: ownTicks * TICK_MS, endedChildrenMs: childrenTicks * TICK_MS }
}

function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kibibytes ?? 0) * 1024
}

/** CPU time that all processes and the kernel have used since boot, over all cores; counted in ticks. */
export function machineCpuMs(): number {
  const total = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!.split(/\s+/).slice(1).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = total
  return (user + nice + system + irq + softIrq) * TICK_MS
}

type Mark = ReturnType<typeof takeMark>

/** What was used between two marks. */
export interface Stretch {
  readonly measuredMs: number
  /** CPU time of this process over measured time. */
  readonly generatorBusy: number
  /** CPU time of all but this process and the measured ones, over measured time: 1 is a whole core. */
  readonly othersBusy: number
  /** In the order of the processes. */
  readonly usages: readonly { readonly cpuMs: number }[]
}

/** Counters at one moment. This process is the load generator. */
export function takeMark(pids: readonly number[]) {
  const { user, system } = process.cpuUsage()
  const usages = pids.map(processUsage)
  return {
    atMs: performance.now(),
    generatorCpuMs: (user + system) / 1000,
    machineCpuMs: machineCpuMs(),
    usages,
  }
}

export function stretchBetween(from: Mark, to: Mark): Stretch {
  const measuredMs = to.atMs - from.atMs
  const generatorMs = to.generatorCpuMs - from.generatorCpuMs
  const usages = to.usages.map(({ cpuMs }, index) => ({ cpuMs: cpuMs - from.usages[index]!.cpuMs }))
  const ownMs = usages.reduce((sum, { cpuMs }) => sum + cpuMs, generatorMs)
  return {
    measuredMs,
    generatorBusy: generatorMs / measuredMs,
    othersBusy: Math.max(0, (to.machineCpuMs - from.machineCpuMs - ownMs) / measuredMs),
    usages,
  }
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('a spread needs at least one value')
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[sorted.length >> 1]!
  const lower = sorted[(sorted.length - 1) >> 1]!
  return { median: (lower + upper) / 2, min: sorted[0]!, max: sorted.at(-1)! }
}
