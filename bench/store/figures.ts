/** The figures by name, how repetitions are aggregated, and what the measurements of both stores share. */

import type { RequestStore } from '../../src/store/store.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { measured } from '../disturbance.ts'
import { grouped, type Spreads, spreadsOf } from '../report/report.ts'
import { collectGarbage, type Drive } from './drive.ts'

export const PARTS = ['costs', 'memory', 'growth'] as const
export type Part = (typeof PARTS)[number]

/** Titles in tables, and digits. All are of one operation, unless the name says otherwise. */
export const FIGURES = {
  /** CPU time of the Redis process, user and system. */
  redisUs: ['Redis CPU us', 2],
  /** CPU time of the store process, user and system. */
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
  /** The part of it that the driver alone takes. */
  driverUs: ['driver alone', 2],
  wallUs: ['wall us', 2],
  longestTurnMs: ['longest turn ms', 2],
  /** Memory of Redis, or of the store process. */
  bytesPerAddress: ['bytes/address', 0],
  keysPerAddress: ['keys/address', 2],
  /** CPU time, and time of scripts or operations, against the fewest addresses of the same repetition. */
  cpuTimesFewest: ['CPU x fewest', 2],
  timeTimesFewest: ['time x fewest', 2],
} as const

/** `expiredKeys`: before the end of what was measured. `othersBusy`: see disturbance.ts. */
export type FigureName = keyof typeof FIGURES | 'expiredKeys' | 'othersBusy'
export type Sample = { readonly [Name in FigureName]?: number | undefined }

/** Of the client, in milliseconds: a pause of a busy machine must not become an outage. */
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
export async function besideOthers(subject: Subject, pass: () => Promise<Drive>): Promise<Sample> {
  collectGarbage()
  const { value, othersBusy } = await measured(() => subject.measured(pass))
  return { ...value, othersBusy }
}

/** What a row of figures is of. */
interface RowLabel {
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
  readonly figures: Spreads<Sample>
}

export function rowsOf(runs: readonly Run[]): Row[] {
  return grouped(runs, ({ row }) => JSON.stringify(row)).map(same => {
    return { ...same[0]!.row, figures: spreadsOf(same.map(({ sample }) => sample)) }
  })
}
