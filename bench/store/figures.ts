/** The figures by name, how repetitions are aggregated, and what all measurements of a store share. */

import type { RequestStore } from '../../src/store/store.ts'
import { machineCpuMs, type Spread, spreadOf } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { collectGarbage, type Drive } from './drive.ts'

export const PARTS = ['costs', 'batches', 'memory', 'expiry', 'growth'] as const
export type Part = (typeof PARTS)[number]

/** All of one operation, unless the name says otherwise; "of" what is the row's: see each part. */
export interface Figures {
  /** CPU time of the Redis process, user and system. */
  readonly redisUs: number
  /** Time within scripts, as Redis counts it: it goes on while the system lets another process run. */
  readonly scriptUs: number
  readonly scriptCallUs: number
  /** Commands that the scripts ran. */
  readonly commands: number
  readonly operationsPerCall: number
  /** Between Redis and its client, as Redis counts it. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** CPU time of the bench's process: driver, and store client or LMDB itself. */
  readonly clientUs: number
  /** The part of it that the driver alone takes. */
  readonly driverUs: number
  readonly wallUs: number
  /** Longest script call of a pass, from its start: what it waited before is not in it. */
  readonly longestCallUs: number
  readonly callsOver1Ms: number
  /** What a client that only sends PING waits meanwhile. */
  readonly pingMinMs: number
  readonly pingMeanMs: number
  readonly pingMaxMs: number
  /** Keys that expired before the end of what was measured. */
  readonly expiredKeys: number

  /** Of a transaction: wall time of its whole event-loop turn, and CPU time of this process. */
  readonly transactionUs: number
  readonly transactionCpuUs: number
  readonly operationsPerTransaction: number
  readonly longestTurnMs: number
  /** Pages of 4096 bytes that went from this process to the system by write calls (/proc/self/io wchar). */
  readonly pagesWritten: number
  /** Pages of the page cache that these made dirty and were not before (write_bytes): the least that a disk gets. */
  readonly pagesDirtied: number
  /** Minor faults of this process, LMDB's map included. */
  readonly pageFaults: number
  /** Of the deepest tree. */
  readonly treeDepth: number

  /** Memory of Redis or allocated bytes of the state's files, for each address. */
  readonly bytesPerAddress: number
  readonly keysPerAddress: number

  /** Keys that expired, and how long that took in all. */
  readonly keys: number
  readonly tookMs: number
  /** CPU time for each key, beyond what the idle process takes. */
  readonly expiryUs: number
  /** CPU time of the idle process, share of a core. */
  readonly idleShare: number

  /** CPU time, and time of scripts or transactions, against the fewest addresses of the same repetition. */
  readonly cpuTimesFewest: number
  readonly timeTimesFewest: number
  /** CPU time of everything else on the machine over measured time: 1 is a whole core. */
  readonly othersBusy: number
}

export type FigureName = keyof Figures
export type Sample = Partial<Figures>

export interface SubjectOptions {
  /** Unix milliseconds for all that the store remembers; the real clocks if undefined. */
  readonly clock?: () => number
  /** Whether the embedded store removes what has expired; only where that is what is measured. */
  readonly sweeps?: boolean
}

/** A fresh store of either kind. */
export interface Subject {
  readonly store: RequestStore
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

/** What a row of figures is of. */
export interface RowLabel {
  readonly part: Part
  readonly store: StoreKind
  /** An operation, a mix of them, or a state of the store. */
  readonly of: string
  readonly batch?: number
  readonly addresses?: number
}

/** One repetition of one row. */
export interface Run {
  readonly row: RowLabel
  readonly sample: Sample
}

/** All repetitions of one row. */
export interface Row extends RowLabel {
  readonly repetitions: number
  readonly figures: Readonly<Partial<Record<FigureName, Spread>>>
}

/** In the order in which the rows first came. */
export function rowsOf(runs: readonly Run[]): Row[] {
  const rows = new Map<string, Run[]>()
  for (const run of runs) {
    const name = JSON.stringify(run.row)
    rows.set(name, [...(rows.get(name) ?? []), run])
  }
  return [...rows.values()].map(same => {
    const names = Object.keys(same[0]!.sample) as FigureName[]
    const figures = names.map(name => [name, spreadOf(same.flatMap(({ sample }) => sample[name] ?? []))])
    return { ...same[0]!.row, repetitions: same.length, figures: Object.fromEntries(figures) }
  })
}
