/** Computes figures from measurements. */

import { type Spread, spreadOf } from '../support/statistics.ts'
import { PIPELINE } from './cases/endpoints.ts'
import { ONE_SHOT_HASH, PROOF } from './cases/pow.ts'
import type { Figures } from './child.ts'
import type { Run } from './runs.ts'

export interface Surroundings {
  readonly cpu: string
  readonly cores: number
  readonly node: string
  readonly openssl: string
  /** Processes that wanted a core when the bench started, averaged over a minute. */
  readonly loadAverage: number
  /** By package name; empty if they are not measured. */
  readonly peers: Readonly<Record<string, string>>
}

/** One way to do a step. Times are nanoseconds per operation. */
export interface Measured {
  /** By the clock, garbage collection included. */
  readonly ns: Spread
  /** Of the median pass over the inputs: without most of the garbage collection. */
  readonly typicalNs: Spread
  /** CPU time of all threads. */
  readonly cpuNs: Spread
  readonly perSecond: Spread
  readonly garbageBytes: Spread
  /** Of all repetitions. */
  readonly operations: number
  /** Cores that others used meanwhile, by median. */
  readonly othersBusy: number | undefined
}

/** Another way, and how it compares with ours of the same round. */
export interface Other extends Measured {
  readonly label: string
  readonly note: string
  /** How many times its time ours goes into. */
  readonly timesFaster: Spread
  readonly timesLessCpu: Spread
}

export interface Row {
  readonly name: string
  readonly area: string
  readonly source: string
  readonly ours: Measured
  readonly naive?: Other
  readonly peers: readonly Other[]
}

export interface Aim {
  readonly about: string
  readonly isMet: boolean
  /** What was measured, in words. */
  readonly found: string
}

export interface MicroReport {
  readonly surroundings: Surroundings
  readonly repeat: number
  readonly milliseconds: number
  readonly rows: readonly Row[]
  readonly aims: readonly Aim[]
}

export function rowOf({ case: one, figures }: Run): Row {
  const { name, area, source, naiveNote = '', peers = [] } = one
  const ours = figures.get('ours')!
  const naive = figures.get('naive')
  const row = {
    name,
    area,
    source,
    ours: measuredOf(ours),
    peers: peers.flatMap(({ label, note }, index) => {
      const list = figures.get(String(index))
      return list === undefined ? [] : [otherOf(label, note, list, ours)]
    }),
  }
  return naive === undefined ? row : { ...row, naive: otherOf('plain', naiveNote, naive, ours) }
}

function measuredOf(figures: readonly Figures[]): Measured {
  const spread = (figure: (figures: Figures) => number) => spreadOf(figures.map(figure))
  const othersBusy = figures.flatMap(figure => figure.othersBusy ?? [])
  return {
    ns: spread(({ ns }) => ns),
    typicalNs: spread(({ typicalNs }) => typicalNs),
    cpuNs: spread(({ cpuNs }) => cpuNs),
    perSecond: spread(({ ns }) => 1e9 / ns),
    garbageBytes: spread(({ garbageBytes }) => garbageBytes),
    operations: figures.reduce((sum, { operations }) => sum + operations, 0),
    othersBusy: othersBusy.length === 0 ? undefined : spreadOf(othersBusy).median,
  }
}

function otherOf(label: string, note: string, figures: readonly Figures[], ours: readonly Figures[]): Other {
  const times = (figure: (figures: Figures) => number) =>
    spreadOf(figures.map((other, round) => figure(other) / figure(ours[round]!)))
  return {
    label,
    note,
    ...measuredOf(figures),
    timesFaster: times(({ ns }) => ns),
    timesLessCpu: times(({ cpuNs }) => cpuNs),
  }
}

const PROOF_NS_MAX = 500
const PIPELINE_PER_SECOND_MIN = 150_000
const PIPELINE_GARBAGE_MAX = 1024

/** Those whose steps were measured. */
export function aimsOf(rows: readonly Row[]): Aim[] {
  const ours = (name: string) => rows.find(row => row.name === name)?.ours
  const [proof, hash, pipeline] = [ours(PROOF), ours(ONE_SHOT_HASH), ours(PIPELINE)]
  return [
    ...(proof === undefined ? [] : [proofTimeAim(proof)]),
    ...(proof === undefined || hash === undefined ? [] : [proofGarbageAim(proof, hash)]),
    ...(pipeline === undefined ? [] : [pipelineAim(pipeline)]),
  ]
}

function proofTimeAim({ ns }: Measured): Aim {
  return {
    about: `${PROOF} in at most ${PROOF_NS_MAX} ns`,
    isMet: ns.median <= PROOF_NS_MAX,
    found: `${ns.median.toFixed(0)} ns`,
  }
}

function proofGarbageAim(proof: Measured, hash: Measured): Aim {
  const hashBytes = hash.garbageBytes.median
  // Whole objects are made or not: less than a byte per operation is the measuring.
  const beyond = Math.round(proof.garbageBytes.median - hashBytes)
  return {
    about: `${PROOF} without garbage beyond the ${hashBytes.toFixed(0)} bytes of one node:crypto hash call`,
    isMet: beyond <= 0,
    found: `${Math.max(0, beyond)} bytes`,
  }
}

function pipelineAim({ perSecond, garbageBytes }: Measured): Aim {
  return {
    about: `${PIPELINE}: at least ${count(PIPELINE_PER_SECOND_MIN)}/s and at most ${PIPELINE_GARBAGE_MAX} bytes of garbage`,
    isMet: perSecond.median >= PIPELINE_PER_SECOND_MIN && garbageBytes.median <= PIPELINE_GARBAGE_MAX,
    found: `${count(perSecond.median)}/s, ${garbageBytes.median.toFixed(0)} bytes`,
  }
}

/** "150,000" */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en')
}
