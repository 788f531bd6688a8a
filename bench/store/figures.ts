/** The figures by name, how repetitions are aggregated, and what the measurements of both stores share. */

import type { RequestStore } from '../../src/store/store.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { measured } from '../disturbance.ts'
import { grouped, type Spreads, spreadsOf } from '../report/report.ts'
import { collectGarbage, type Drive } from './drive.ts'

/** What an operation costs; what an address takes in memory; whether costs grow with the number of addresses. */
export const PARTS = ['costs', 'memory', 'growth'] as const
export type Part = (typeof PARTS)[number]

/** Titles in tables, and digits. All are of one operation, unless the name says otherwise. CPU time is that of a process, user and system. */
export const FIGURES = {
  redisUs: ['Redis CPU us', 2],
  storeUs: ['store CPU us', 2],
  /** Time within scripts, as Redis counts it: it goes on while the system lets another process run. */
  scriptUs: ['script us', 2],
  /** Commands that the scripts ran. */
  commands: ['commands', 2],
  operationsPerCall: ['operations/call', 1],
  /** Between Redis and its client, as Redis counts it. */
  bytesIn: ['bytes in', 0],
  bytesOut: ['bytes out', 0],
  /** CPU time of the bench's process: driver and store client. */
  clientUs: ['client CPU us', 2],
  /** The driver's part of `clientUs`: CPU time of the same pass against a store that does nothing (HOLLOW_STORE). */
  driverUs: ['driver alone', 2],
  wallUs: ['wall us', 2],
  longestBatchMs: ['longest batch ms', 2],
  /** Memory of Redis, or of the store process. */
  bytesPerAddress: ['bytes/address', 0],
  keysPerAddress: ['keys/address', 2],
  /** Growth: CPU time, and time of scripts or operations, over that of the row with the fewest addresses in the same repetition. */
  cpuOverFewest: ['CPU x fewest', 2],
  timeOverFewest: ['time x fewest', 2],
} as const

/** `expiredKeys`: how many keys expired before the measurement's end, which spoils it. `othersBusy`: see disturbance.ts. */
export type FigureName = keyof typeof FIGURES | 'expiredKeys' | 'othersBusy'
export type Sample = { readonly [Name in FigureName]?: number | undefined }

/** The client's deadline: a pause of a busy machine must not become an outage. */
export const DEADLINE_MS = 2000

export interface SubjectOptions {
  /** Unix milliseconds for all that the store remembers; the real clocks if undefined. */
  readonly clock?: () => number
}

/** A fresh store of either kind. */
export interface Subject {
  readonly store: RequestStore
  /** Runs a pass and tells what an operation of it cost. */
  measured(pass: () => Promise<Drive>): Promise<Sample>
  /** Memory, and number of keys, that the store has at present. */
  stateBytes(): Promise<number>
  stateKeys(): Promise<number>
  stop(): Promise<void>
}

/** Adds to the figures of a pass what others used of the machine meanwhile. */
export async function measureBesideOthers(subject: Subject, pass: () => Promise<Drive>): Promise<Sample> {
  collectGarbage()
  const { value, othersBusy } = await measured(() => subject.measured(pass))
  return { ...value, othersBusy }
}

interface RowLabel {
  readonly part: Part
  readonly store: StoreKind
  /** An operation, or in the part `memory` what each address has done. */
  readonly about: string
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
  readonly figures: Spreads<Sample>
}

export function rowsOf(runs: readonly Run[]): Row[] {
  return grouped(runs, ({ row }) => JSON.stringify(row)).map(same => {
    return { ...same[0]!.row, figures: spreadsOf(same.map(({ sample }) => sample)) }
  })
}
