/** The figures, from what was measured, and as a table with the aims. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  type Aim,
  aimsText,
  left,
  machine,
  percent,
  type Report,
  rangeNote,
  right,
  spreadText,
  table,
} from '../report/report.ts'
import type { Figures } from './child.ts'
import { HASH, PARTS_OF_WHOLE, PLAIN, PROOF, STEPS, WHOLE } from './steps.ts'

/** A step. Times are nanoseconds per operation. */
export interface Row {
  readonly name: string
  /** By the clock, garbage collection included. */
  readonly ns: Spread
  /** CPU time of all threads. */
  readonly cpuNs: Spread
  readonly perSecond: Spread
  readonly garbageBytes: Spread
  /** Processes that measured it. */
  readonly rounds: number
  /** Cores that others used meanwhile, by median. */
  readonly othersBusy: number | undefined
}

export interface MicroReport {
  readonly surroundings: ReturnType<typeof surroundingsOf>
  readonly milliseconds: number
  readonly rows: readonly Row[]
  readonly aims: readonly Aim[]
}

/** What a step came to in each process, in the order of the processes. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>

export function surroundingsOf() {
  return { ...machine(), node: process.versions.node, openssl: process.versions.openssl }
}

export function rowsOf(rounds: Rounds): Row[] {
  return [...rounds].flatMap(([name, figures]) => {
    if (figures.length === 0) return []
    const spread = (figure: (figures: Figures) => number) => spreadOf(figures.map(figure))
    const othersBusy = figures.flatMap(figure => figure.othersBusy ?? [])
    return {
      name,
      ns: spread(({ ns }) => ns),
      cpuNs: spread(({ cpuNs }) => cpuNs),
      perSecond: spread(({ ns }) => 1e9 / ns),
      garbageBytes: spread(({ garbageBytes }) => garbageBytes),
      rounds: figures.length,
      othersBusy: othersBusy.length === 0 ? undefined : spreadOf(othersBusy).median,
    }
  })
}

const PROOF_OVER_HASH_MAX = 1.25
/** With instructions for SHA-256 a hash takes less than so long, a third of what it takes without; the rest of the check stays. */
const FAST_HASH_NS = 800
const PROOF_OVER_FAST_HASH_MAX = 2.2
const WHOLE_OVER_PLAIN_MAX = 0.6
const WHOLE_GARBAGE_MAX = 1536
const SUM_OFF_MAX = 0.15
/** The whole with its inputs in turn has the caches for itself less than its steps: up to here that alone explains it. */
const SUM_OFF_BY_CACHES = 0.25
/** No object is smaller. */
const OBJECT_BYTES = 16

function isMeasured(rounds: Rounds, name: string): boolean {
  return (rounds.get(name) ?? []).length > 0
}

/** Ratios within a process, which do not depend on the machine's speed, and bytes. Those whose steps were measured. */
export function aimsOf(rounds: Rounds): Aim[] {
  const bytes = (name: string) => spreadOf(rounds.get(name)!.map(({ garbageBytes }) => garbageBytes)).median
  const ratio = (name: string, others: readonly string[]) => {
    const all = rounds.get(name)!.map(({ cpuNs }, round) => {
      return cpuNs / others.reduce((sum, other) => sum + rounds.get(other)![round]!.cpuNs, 0)
    })
    return spreadOf(all)
  }
  const has = (...names: readonly string[]) => names.every(name => isMeasured(rounds, name))
  const aims: Aim[] = []
  if (has(PROOF, HASH)) {
    const [found, beyond] = [ratio(PROOF, [HASH]), Math.round(bytes(PROOF) - bytes(HASH))]
    const hashNs = spreadOf(rounds.get(HASH)!.map(({ cpuNs }) => cpuNs)).median
    aims.push(
      {
        about: `${PROOF} at most ${PROOF_OVER_HASH_MAX} times node's own hash`,
        isMet: found.median <= PROOF_OVER_HASH_MAX,
        found: spreadText(found, 2),
        ...(hashNs < FAST_HASH_NS &&
          found.median <= PROOF_OVER_FAST_HASH_MAX && {
            because:
              'SHA instructions make the hash that fast, and 48 characters take 0.1 us to write on any processor',
          }),
      },
      {
        about: `${PROOF} without garbage beyond node's own hash`,
        isMet: beyond < OBJECT_BYTES,
        found: `${beyond} bytes`,
      },
    )
  }
  if (has(WHOLE, PLAIN)) {
    const found = ratio(WHOLE, [PLAIN])
    aims.push({
      about: `${WHOLE}, at most ${WHOLE_OVER_PLAIN_MAX} times plain node:crypto`,
      isMet: found.median <= WHOLE_OVER_PLAIN_MAX,
      found: spreadText(found, 2),
    })
  }
  if (has(WHOLE)) {
    const found = bytes(WHOLE)
    aims.push({
      about: `${WHOLE}, at most ${WHOLE_GARBAGE_MAX} bytes of garbage`,
      isMet: found <= WHOLE_GARBAGE_MAX,
      found: `${found.toFixed(0)} bytes`,
      because:
        'the body as text and its match take 0.7 KB, six digests 0.4 KB, the token 0.5 KB (what there is must not grow: below)',
    })
  }
  if (has(WHOLE, ...PARTS_OF_WHOLE)) {
    const found = ratio(WHOLE, PARTS_OF_WHOLE)
    aims.push({
      about: `${WHOLE}, within ${percent(SUM_OFF_MAX)} of the sum of its steps (else the bench measures something of its own)`,
      isMet: Math.abs(found.median - 1) <= SUM_OFF_MAX,
      found: `${spreadText(found, 2)} times the sum`,
      ...(Math.abs(found.median - 1) <= SUM_OFF_BY_CACHES && { because: 'what it reads shares the caches' }),
    })
  }
  return [...aims, ...garbageAims(rounds, bytes)]
}

function garbageAims(rounds: Rounds, bytes: (name: string) => number): Aim[] {
  return STEPS.flatMap(({ name, garbageMax }) => {
    if (garbageMax === undefined || !isMeasured(rounds, name)) return []
    const found = bytes(name)
    const isMet = found <= garbageMax
    return [
      { about: `${name}, at most ${garbageMax} bytes of garbage`, isMet, found: `${found.toFixed(0)} bytes` },
    ]
  })
}

export function reportOf(micro: MicroReport): Report {
  return {
    title: 'powgate: micro benches',
    intro: legend(micro),
    parts: [stepTable(micro.rows), aimsText(micro.aims)],
  }
}

function stepTable(rows: readonly Row[]) {
  return table<Row>(
    'Steps',
    [
      [left('step'), ({ name }) => name],
      [right('ns'), ({ ns }) => nsText(ns)],
      [right('CPU ns'), ({ cpuNs }) => nsText(cpuNs)],
      [right('per second'), ({ perSecond }) => Math.round(perSecond.median).toLocaleString('en')],
      [right('garbage, bytes'), ({ garbageBytes }) => spreadText(garbageBytes, 0)],
      [
        left('notes'),
        ({ ns, othersBusy }) => [rangeNote(ns), disturbanceNote(othersBusy)].filter(Boolean).join('; '),
      ],
    ],
    rows,
  )
}

/** Short times with a digit more. */
function nsText(ns: Spread): string {
  return spreadText(ns, ns.median < 100 ? 1 : 0)
}

function legend({ surroundings, milliseconds, rows }: MicroReport): string {
  const { cpu, cores, node, openssl, loadAverage } = surroundings
  return `${cpu}, ${cores} cores, Node.js ${node}, OpenSSL ${openssl}; load average at the start ${loadAverage.toFixed(1)}.
Median (range) of ${rows[0]?.rounds ?? 0} processes. In each, the steps take turns, ${milliseconds} ms each after as long to warm up; the same seeded inputs
in every run, every result checked. Times are means over all that was run, garbage collection included; ratios are of CPU time
within a process. Garbage: growth of the heap and of buffers outside of it per operation.`
}
