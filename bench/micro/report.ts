/** The figures, from what was measured, and as a table with the aims. */

import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  type Aim,
  aimsText,
  type Cell,
  left,
  type machine,
  notesText,
  percent,
  rangeNote,
  reportText,
  right,
  spreadsOf,
  sumOf,
  table,
  text,
} from '../report/report.ts'
import type { Figures } from './child.ts'
import { HASH, HASHWX, PARTS_OF_WHOLE, PLAIN, PROOF, STEPS, WHOLE } from './steps.ts'

interface MicroReport {
  readonly surroundings: ReturnType<typeof machine> & { readonly openssl: string }
  readonly milliseconds: number
  readonly rows: ReturnType<typeof rowsOf>
  readonly aims: readonly Aim[]
}

/** By name of the step, its figures in each round. A round is one process, which measures every step. */
type Rounds = ReadonlyMap<string, readonly Figures[]>

/** A row for each step: in how many rounds it was measured, and its figures per operation. */
export function rowsOf(rounds: Rounds) {
  return [...rounds].flatMap(([name, all]) => {
    const figures = all.map(one => ({ ...one, perSecond: 1e9 / one.ns }))
    return all.length === 0 ? [] : { name, rounds: all.length, ...spreadsOf(figures) }
  })
}

const PROOF_OVER_HASH_MAX = 1.25
/** A hash is faster than this only with the processor's instructions for SHA-256. The rest of a check then takes as long as the hash. */
const FAST_HASH_NS = 800
const PROOF_OVER_FAST_HASH_MAX = 2.2
/** A check makes a function, whose programs run in an interpreter: 31 times (29 to 35) a hash with SHA instructions, and less without. */
const HASHWX_OVER_HASH_MAX = 40
const WHOLE_OVER_PLAIN_MAX = 0.6
const SUM_OFF_MAX = 0.15
/** A step alone has the caches for itself, and the whole shares them among its steps: that explains a difference up to this one. */
const SUM_OFF_BY_CACHES = 0.25
/** The least size of an object in V8's heap: a growth below it is no object for each operation. */
const OBJECT_BYTES = 16

/** Aims about ratios within a process, which do not depend on the machine's speed, and about bytes; only of measured steps. */
export function aimsOf(rounds: Rounds): Aim[] {
  const medianOf = (name: string, figure: 'cpuNs' | 'garbageBytes') =>
    spreadOf(rounds.get(name)!.map(({ [figure]: value }) => value)).median
  /** CPU time of a step over that of other steps together, in each process. */
  const ratio = (name: string, others: readonly string[]) => {
    const ratios = rounds.get(name)!.map(({ cpuNs }, round) => {
      return cpuNs / sumOf(others.map(other => rounds.get(other)![round]!.cpuNs))
    })
    return spreadOf(ratios)
  }
  const has = (...names: readonly string[]) => names.every(name => (rounds.get(name) ?? []).length > 0)
  const aims: Aim[] = []
  if (has(PROOF, HASH)) {
    const found = ratio(PROOF, [HASH])
    const bytesBeyondHash = Math.round(medianOf(PROOF, 'garbageBytes') - medianOf(HASH, 'garbageBytes'))
    const isExcused = medianOf(HASH, 'cpuNs') < FAST_HASH_NS && found.median <= PROOF_OVER_FAST_HASH_MAX
    const excuse =
      'SHA instructions make the hash that fast, but writing its 48 characters takes a check 0.1 us on any processor'
    const about = `${PROOF} at most ${PROOF_OVER_HASH_MAX} times node's own hash`
    aims.push(atMost(about, PROOF_OVER_HASH_MAX, found, isExcused ? excuse : undefined))
    aims.push(garbageFree(PROOF, "node's own hash", bytesBeyondHash))
  }
  if (has(HASHWX, HASH)) {
    const about = `${HASHWX}, at most ${HASHWX_OVER_HASH_MAX} times node's own hash`
    aims.push(atMost(about, HASHWX_OVER_HASH_MAX, ratio(HASHWX, [HASH])))
    const bytesBeyondHash = Math.round(medianOf(HASHWX, 'garbageBytes') - medianOf(HASH, 'garbageBytes'))
    // V8 boxes a number, as an object, for a call within the check.
    aims.push(garbageFree(HASHWX, "node's own hash and a boxed number", bytesBeyondHash - OBJECT_BYTES))
  }
  if (has(WHOLE, PLAIN)) {
    const about = `${WHOLE}, at most ${WHOLE_OVER_PLAIN_MAX} times plain node:crypto`
    aims.push(atMost(about, WHOLE_OVER_PLAIN_MAX, ratio(WHOLE, [PLAIN])))
  }
  if (has(WHOLE, ...PARTS_OF_WHOLE)) {
    const found = ratio(WHOLE, PARTS_OF_WHOLE)
    const off = Math.abs(found.median - 1)
    aims.push({
      about: `${WHOLE}, within ${percent(SUM_OFF_MAX)} of the sum of its steps (else the bench measures something of its own)`,
      isMet: off <= SUM_OFF_MAX,
      found: `${text(found, 2)} times the sum`,
      because: off <= SUM_OFF_BY_CACHES ? 'what it reads shares the caches' : undefined,
    })
  }
  const garbage = STEPS.flatMap(({ name, garbageMax }) =>
    garbageMax === undefined || !has(name)
      ? []
      : garbageAim(name, garbageMax, medianOf(name, 'garbageBytes')),
  )
  return [...aims, ...garbage]
}

function atMost(about: string, most: number, found: Spread, because?: string): Aim {
  return { about, isMet: found.median <= most, found: text(found, 2), because }
}

function garbageFree(name: string, allowed: string, bytesBeyond: number): Aim {
  const about = `${name} without garbage beyond ${allowed}`
  return { about, isMet: bytesBeyond < OBJECT_BYTES, found: `${bytesBeyond} bytes` }
}

function garbageAim(name: string, most: number, found: number): Aim {
  const about = `${name}, at most ${most} bytes of garbage`
  return { about, isMet: found <= most, found: `${found.toFixed(0)} bytes` }
}

export function reportOf(micro: MicroReport): string {
  const cells: Cell<MicroReport['rows'][number]>[] = [
    [left('step'), ({ name }) => name],
    [right('ns'), ({ ns }) => nsText(ns!)],
    [right('CPU ns'), ({ cpuNs }) => nsText(cpuNs!)],
    [right('per second'), ({ perSecond }) => Math.round(perSecond!.median).toLocaleString('en')],
    [right('garbage, bytes'), ({ garbageBytes }) => text(garbageBytes, 0)],
    [left('notes'), row => notesText(rangeNote(row.ns!), disturbanceNote(row.othersBusy?.median))],
  ]
  return reportText([table('Steps', cells, micro.rows), aimsText(micro.aims), legend(micro)])
}

function nsText(ns: Spread): string {
  return text(ns, ns.median < 100 ? 1 : 0)
}

function legend({ surroundings, milliseconds, rows }: MicroReport): string {
  const { cpu, cores, node, openssl, loadAverage } = surroundings
  return `${cpu}, ${cores} cores, Node.js ${node}, OpenSSL ${openssl}; load average at the start ${loadAverage.toFixed(1)}.
Median (range) of ${rows[0]?.rounds ?? 0} processes. In each, the steps take turns, ${milliseconds} ms each after as long to warm up; the same seeded inputs
in every run, every result checked. Times are means over all that was run, garbage collection included; ratios are of CPU time
within a process. Garbage: growth of the heap and of buffers outside of it per operation.`
}
