/** What all benches print: tables, aims and notes, or their figures as JSON. */

import { availableParallelism, cpus, loadavg } from 'node:os'
import { toggle, type Values } from '../../test/harness/command-line.ts'
import { type Spread, spreadOf } from '../../test/harness/measure.ts'

export const OUTPUT = {
  json: toggle('The figures as JSON on standard output, and nothing else there.'),
}

/** @param figures what --json prints */
export function publish(report: string, figures: unknown, { json }: Values<typeof OUTPUT>): void {
  process.stdout.write(`${json ? JSON.stringify(figures, undefined, 2) : report}\n`)
}

/** The parts that are not empty, with an empty line between them. */
export function reportText(parts: readonly string[]): string {
  return parts.filter(part => part !== '').join('\n\n')
}

interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

/** A column, and its text in a row. */
export type Cell<Row> = readonly [column: Column, text: (row: Row) => string]

/** Empty if there are no rows. @param title may be empty */
export function table<Row>(title: string, cells: readonly Cell<Row>[], rows: readonly Row[]): string {
  if (rows.length === 0) return ''
  const heads = cells.map(([column]) => column.title)
  const texts = rows.map(row => cells.map(([, text]) => text(row)))
  const widths = heads.map((head, index) => Math.max(head.length, ...texts.map(row => row[index]!.length)))
  const line = (row: readonly string[]) =>
    cells
      .map(([{ align }], index) => row[index]![align === 'left' ? 'padEnd' : 'padStart'](widths[index]!))
      .join('  ')
      .trimEnd()
  const lines = [heads, widths.map(width => '-'.repeat(width)), ...texts].map(line).join('\n')
  return title === '' ? lines : `${title}\n\n${lines}`
}

export interface Aim {
  readonly about: string
  readonly isMet: boolean
  /** What was measured, in words. */
  readonly found: string
  /** Why the aim is missed, if that is known. Such an aim fails no check. */
  readonly because?: string | undefined
}

export function aimsText(aims: readonly Aim[]): string {
  const lines = aims.map(({ about, isMet, found, because }) => {
    const verdict = `aim: ${about}: ${isMet ? 'met' : 'NOT met'}, ${found}`
    return isMet || because === undefined ? verdict : `${verdict}, which is excused: ${because}`
  })
  return lines.join('\n')
}

/** Whether an aim is missed, and nothing explains it. */
export function isAnyMissed(aims: readonly Aim[]): boolean {
  return aims.some(({ isMet, because }) => !isMet && because === undefined)
}

/** The machine, and how many processes want a core, averaged over a minute. */
export function machine() {
  const cpu = cpus()[0]?.model ?? 'unknown CPU'
  return { cpu, cores: availableParallelism(), loadAverage: loadavg()[0]!, node: process.version }
}

/** The elements with each name, in the order in which the names first come. */
export function grouped<One>(all: readonly One[], nameOf: (one: One) => string): One[][] {
  const groups = new Map<string, One[]>()
  for (const one of all) {
    const group = groups.get(nameOf(one))
    if (group === undefined) groups.set(nameOf(one), [one])
    else group.push(one)
  }
  return [...groups.values()]
}

export type Spreads<Figures> = Readonly<Partial<Record<keyof Figures, Spread>>>

/** The spread over the repetitions of each figure that the first one has. */
export function spreadsOf<Figures extends object>(all: readonly Figures[]): Spreads<Figures> {
  const names = Object.keys(all[0] ?? {}) as (keyof Figures)[]
  const spreads = names.flatMap(name => {
    const values = all.flatMap(({ [name]: value }) => (value ?? []) as number | [])
    return values.length === 0 ? [] : [[name, spreadOf(values)] as const]
  })
  return Object.fromEntries(spreads) as Spreads<Figures>
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** NaN of none. */
export function meanOf(values: readonly number[]): number {
  return sumOf(values) / values.length
}

/** "12.3 (11.9-12.8)": the median and the range, or the value alone if all agree at this precision. A dash if nothing was measured. */
export function text(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return '-'
  const [median, min, max] = [spread.median, spread.min, spread.max].map(value => value.toFixed(digits))
  return min === max ? median! : `${median} (${min}-${max})`
}

/** A column of such texts. */
export function figure<Name extends string>(title: string, name: Name, digits: number) {
  type Row = { readonly figures: { readonly [One in Name]?: Spread } }
  return [right(title), ({ figures }: Row) => text(figures[name], digits)] as const
}

/** Beyond this the median is a matter of luck. */
const RANGE_MAX = 1.3

/** A note for a table; empty if the repetitions agree. */
export function rangeNote({ min, max }: Spread): string {
  return max > min * RANGE_MAX ? `VARIES: the longest is ${(max / min).toFixed(1)} times the shortest` : ''
}

/** Joins the notes that are not empty, for one cell. */
export function notesText(...notes: readonly string[]): string {
  return notes.filter(note => note !== '').join('; ')
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(0)}%`
}
