/** The parts of a report, and what all benches write in the same way. */

import { availableParallelism, cpus, loadavg } from 'node:os'
import type { Spread } from '../../test/harness/measure.ts'

export interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

export interface ReportTable {
  readonly kind: 'table'
  readonly title: string
  readonly columns: readonly Column[]
  /** A cell for each column. */
  readonly rows: readonly (readonly string[])[]
}

export interface ReportText {
  readonly kind: 'text'
  /** An empty line starts a new paragraph. */
  readonly text: string
}

export type ReportPart = ReportTable | ReportText

export interface Report {
  readonly title: string
  /** What was measured and how the figures are to be read; comes last. */
  readonly intro: string
  readonly parts: readonly ReportPart[]
}

/** @param cells the columns, each with its text in a row */
export function table<Row>(
  title: string,
  cells: readonly (readonly [column: Column, text: (row: Row) => string])[],
  rows: readonly Row[],
): ReportTable {
  const columns = cells.map(([column]) => column)
  return { kind: 'table', title, columns, rows: rows.map(row => cells.map(([, text]) => text(row))) }
}

export interface Aim {
  readonly about: string
  readonly isMet: boolean
  /** What was measured, in words. */
  readonly found: string
  /** Of an aim that is known to be missed: why. It fails no check. */
  readonly because?: string
}

export function aimsText(aims: readonly Aim[]): ReportText {
  const lines = aims.map(({ about, isMet, found, because }) => {
    const verdict = `aim: ${about}: ${isMet ? 'met' : 'NOT met'}, ${found}`
    return isMet || because === undefined ? verdict : `${verdict}: ${because}`
  })
  return { kind: 'text', text: lines.join('\n') }
}

/** Whether an aim is missed, and nothing explains it. */
export function isAnyMissed(aims: readonly Aim[]): boolean {
  return aims.some(({ isMet, because }) => !isMet && because === undefined)
}

/** The machine, and how many processes want a core, averaged over a minute. */
export function machine() {
  const cpu = cpus()[0]?.model ?? 'unknown CPU'
  return { cpu, cores: availableParallelism(), loadAverage: loadavg()[0]! }
}

/** "12.3 (11.9-12.8)": the median and the range, or the value alone if all agree at this precision. */
export function spreadText({ median, min, max }: Spread, digits: number): string {
  const [middle, low, high] = [median, min, max].map(value => value.toFixed(digits))
  return low === high ? middle! : `${middle} (${low}-${high})`
}

/** The same, or a dash if nothing was measured. */
export function text(spread: Spread | undefined, digits: number): string {
  return spread === undefined ? '-' : spreadText(spread, digits)
}

/** Beyond this the median is a matter of luck. */
const RANGE_MAX = 1.3

/** A note for a table; empty if the repetitions agree. */
export function rangeNote({ min, max }: Spread): string {
  return max > min * RANGE_MAX ? `VARIES: the longest is ${(max / min).toFixed(1)} times the shortest` : ''
}

/** "12%" */
export function percent(share: number): string {
  return `${(share * 100).toFixed(0)}%`
}
