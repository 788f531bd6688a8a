/** A fresh store of either kind, with what all measurements share. */

import type { Store } from '../../src/store/store.ts'
import { machineCpuMs } from '../../test/harness/measure.ts'
import { collectGarbage, type Drive } from './drive.ts'
import type { Sample } from './figures.ts'

export interface SubjectOptions {
  /** Unix milliseconds for all that the store remembers; the real clocks if undefined. */
  readonly clock?: () => number
  /** Whether the embedded store removes what has expired; only where that is what is measured. */
  readonly sweeps?: boolean
}

export interface Subject {
  readonly store: Store
  /** CPU time so far of the processes that this bench has to do with, this one included. */
  cpuMs(): number
  /** Runs a pass and tells what an operation of it cost. */
  measured(pass: () => Promise<Drive>): Promise<Sample>
  /** Runs passes whose costs do not count, and tells for how long the store kept others waiting. */
  holding(passes: () => Promise<void>): Promise<Sample>
  /** Memory or files; what of the store's state is there at present. */
  stateBytes(): Promise<number>
  stateKeys(): Promise<number>
  /** Lets all expire that can, and tells what each key cost. */
  expired(isSpread: boolean): Promise<Sample>
  stop(): Promise<void>
}

/** Adds to the figures of a pass what others used of the machine meanwhile. */
export async function besideOthers(subject: Subject, pass: () => Promise<Drive>): Promise<Sample> {
  collectGarbage()
  const [startMs, machineMs, ownMs] = [performance.now(), machineCpuMs(), subject.cpuMs()]
  const sample = await subject.measured(pass)
  const othersMs = machineCpuMs() - machineMs - (subject.cpuMs() - ownMs)
  return { ...sample, othersBusy: Math.max(0, othersMs) / (performance.now() - startMs) }
}

/** CPU time of this process so far. */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
