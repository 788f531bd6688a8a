/** The figures, from what was measured, and as a table with the aims. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { disturbanceNote } from '../disturbance.ts'
import { type Aim, aimsText, left, machine, type Report, right, spreadText, table } from '../report/report.ts'
import { waysOf } from './case.ts'
import { ONE_SHOT_HASH, PROOF } from './cases.ts'
import type { Figures } from './child.ts'
import { UNDER_WAY } from './measuring.ts'
import type { Run, Sizes } from './processes.ts'
import { PIPELINE } from './requests.ts'

/** One way to do a step. Times are nanoseconds per operation. */
export interface Measured {
  readonly label: string
  readonly note: string
  /** By the clock, garbage collection included. */
  readonly ns: Spread
  /** CPU time of all threads. */
  readonly cpuNs: Spread
  readonly perSecond: Spread
  readonly garbageBytes: Spread
  /** Of all repetitions. */
  readonly operations: number
  /** Cores that others used meanwhile, by median. */
  readonly othersBusy: number | undefined
  /** How many times its time ours of the same round goes into; not of ours. */
  readonly timesFaster?: Spread
  readonly timesLessCpu?: Spread
}

export interface Row {
  readonly name: string
  /** Ours is the first. */
  readonly ways: readonly Measured[]
}

export interface MicroReport extends Sizes {
  readonly surroundings: ReturnType<typeof surroundingsOf>
  readonly rows: readonly Row[]
  readonly aims: readonly Aim[]
}

/** @param packages versions by name; empty if they are not measured */
export function surroundingsOf(packages: Readonly<Record<string, string>>) {
  return {
    ...machine(),
    node: process.versions.node,
    openssl: process.versions.openssl,
    packages,
  }
}

export function rowOf({ case: one, figures }: Run): Row {
  const [ours] = figures.values()
  const ways = waysOf(one, true).flatMap(({ label, note }, index) => {
    const list = figures.get(label)
    return list === undefined ? [] : [measuredOf({ label, note }, list, index === 0 ? undefined : ours)]
  })
  return { name: one.name, ways }
}

function measuredOf(
  way: Pick<Measured, 'label' | 'note'>,
  figures: readonly Figures[],
  ours: readonly Figures[] | undefined,
): Measured {
  const spread = (figure: (figures: Figures, round: number) => number) => spreadOf(figures.map(figure))
  const othersBusy = figures.flatMap(figure => figure.othersBusy ?? [])
  return {
    ...way,
    ns: spread(({ ns }) => ns),
    cpuNs: spread(({ cpuNs }) => cpuNs),
    perSecond: spread(({ ns }) => 1e9 / ns),
    garbageBytes: spread(({ garbageBytes }) => garbageBytes),
    operations: figures.reduce((sum, { operations }) => sum + operations, 0),
    othersBusy: othersBusy.length === 0 ? undefined : spreadOf(othersBusy).median,
    ...(ours !== undefined && {
      timesFaster: spread(({ ns }, round) => ns / ours[round]!.ns),
      timesLessCpu: spread(({ cpuNs }, round) => cpuNs / ours[round]!.cpuNs),
    }),
  }
}

const PROOF_NS_MAX = 500
const PIPELINE_PER_SECOND_MIN = 150_000
const PIPELINE_GARBAGE_MAX = 1024

/** Those whose steps were measured. */
export function aimsOf(rows: readonly Row[]): Aim[] {
  const ours = (name: string) => rows.find(row => row.name === name)?.ways[0]
  const [proof, hash, pipeline] = [ours(PROOF), ours(ONE_SHOT_HASH), ours(PIPELINE)]
  const aims: Aim[] = []
  if (proof !== undefined) {
    aims.push({
      about: `${PROOF} in at most ${PROOF_NS_MAX} ns`,
      isMet: proof.ns.median <= PROOF_NS_MAX,
      found: `${proof.ns.median.toFixed(0)} ns`,
    })
  }
  if (proof !== undefined && hash !== undefined) {
    const hashBytes = hash.garbageBytes.median
    // Whole objects are made or not: less than a byte per operation is the measuring.
    const beyond = Math.round(proof.garbageBytes.median - hashBytes)
    aims.push({
      about: `${PROOF} without garbage beyond the ${hashBytes.toFixed(0)} bytes of one node:crypto hash call`,
      isMet: beyond <= 0,
      found: `${Math.max(0, beyond)} bytes`,
    })
  }
  if (pipeline !== undefined) {
    const [perSecond, bytes] = [pipeline.perSecond.median, pipeline.garbageBytes.median]
    aims.push({
      about: `${PIPELINE}: at least ${count(PIPELINE_PER_SECOND_MIN)}/s and at most ${PIPELINE_GARBAGE_MAX} bytes of garbage`,
      isMet: perSecond >= PIPELINE_PER_SECOND_MIN && bytes <= PIPELINE_GARBAGE_MAX,
      found: `${count(perSecond)}/s, ${bytes.toFixed(0)} bytes`,
    })
  }
  return aims
}

/** "150,000" */
function count(value: number): string {
  return Math.round(value).toLocaleString('en')
}

export function reportOf(micro: MicroReport): Report {
  const rows = micro.rows.flatMap(({ name, ways }) => ways.map(way => ({ name, ...way })))
  return {
    title: 'powgate: micro benches',
    intro: legend(micro),
    parts: [stepTable(rows), aimsText(micro.aims)],
  }
}

function stepTable(rows: readonly (Measured & { readonly name: string })[]) {
  const times = (spread: Spread | undefined) => (spread === undefined ? '' : spreadText(spread, 1))
  return table(
    'Steps',
    [
      [left('step'), ({ name }) => name],
      [left('by'), ({ label }) => label],
      [right('ns'), ({ ns }) => nsText(ns)],
      [right('CPU ns'), ({ cpuNs }) => nsText(cpuNs)],
      [right('per second'), ({ perSecond }) => count(perSecond.median)],
      [right('garbage, bytes'), ({ garbageBytes }) => spreadText(garbageBytes, 0)],
      [right('powgate: times faster'), ({ timesFaster }) => times(timesFaster)],
      [right('times less CPU'), ({ timesLessCpu }) => times(timesLessCpu)],
      [
        left('notes'),
        ({ note, othersBusy }) => [note, disturbanceNote(othersBusy)].filter(text => text !== '').join('; '),
      ],
    ],
    rows,
  )
}

/** Short times with a digit more. */
function nsText(ns: Spread): string {
  return spreadText(ns, ns.median < 100 ? 1 : 0)
}

function legend({ surroundings, repeat, milliseconds }: MicroReport): string {
  const { cpu, cores, node, openssl, loadAverage, packages } = surroundings
  const versions = Object.entries(packages).map(([name, version]) => `, ${name} ${version}`)
  return `${cpu}, ${cores} cores, Node.js ${node}, OpenSSL ${openssl}${versions.join('')}; load average at the start ${loadAverage.toFixed(1)}.
Median (range) of ${repeat} processes for each way, in turn, ${milliseconds} ms each after as long to warm up; the same seeded
inputs in every run, every result checked. Times are means over all that was run, garbage collection included; ratios within a round.
Garbage: growth of the heap and of buffers outside of it per operation. Packages are asynchronous: ${UNDER_WAY} calls under way, some
of their work on other threads, which their CPU time includes. plain: node:crypto and the language alone.`
}
