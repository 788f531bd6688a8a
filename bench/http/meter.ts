/** Measures the CPU time between two moments: of the measured processes, of this process, and of the whole machine. */

import { machineCpuMs, type ProcessUsage, processUsage } from '../support/cpu.ts'

/** One moment. */
export interface Mark {
  readonly atMs: number
  readonly generatorCpuMs: number
  readonly machineCpuMs: number
  readonly usages: readonly ProcessUsage[]
}

export interface MeasuredUsage {
  /** Within the measured time. */
  readonly cpuMs: number
  /** Before the first request, and at the end of the measured time. */
  readonly residentBytesBefore: number
  readonly residentBytesAfter: number
}

/** What lies between two marks. */
export interface Stretch {
  readonly measuredMs: number
  /** CPU time of this process over measured time. */
  readonly generatorBusy: number
  /** CPU time of everything else on the machine over measured time: 1 is a whole core. */
  readonly othersBusy: number
  /** In the order of the processes. */
  readonly usages: readonly MeasuredUsage[]
}

export function residentBytesOf(pids: readonly number[]): number[] {
  return pids.map(pid => processUsage(pid).residentBytes)
}

export function takeMark(pids: readonly number[]): Mark {
  const { user, system } = process.cpuUsage()
  const usages = pids.map(processUsage)
  return {
    atMs: performance.now(),
    generatorCpuMs: (user + system) / 1000,
    machineCpuMs: machineCpuMs(),
    usages,
  }
}

/** @param residentBytesBefore of each process, before the first request */
export function stretchBetween(from: Mark, to: Mark, residentBytesBefore: readonly number[]): Stretch {
  const measuredMs = to.atMs - from.atMs
  const generatorMs = to.generatorCpuMs - from.generatorCpuMs
  const usages = to.usages.map((usage, index) => ({
    cpuMs: usage.cpuMs - from.usages[index]!.cpuMs,
    residentBytesBefore: residentBytesBefore[index]!,
    residentBytesAfter: usage.residentBytes,
  }))
  const ownMs = usages.reduce((sum, { cpuMs }) => sum + cpuMs, generatorMs)
  return {
    measuredMs,
    generatorBusy: generatorMs / measuredMs,
    othersBusy: Math.max(0, (to.machineCpuMs - from.machineCpuMs - ownMs) / measuredMs),
    usages,
  }
}
