/** Two results that a bench saved with --json, side by side. */

import { readFileSync } from 'node:fs'
import { UsageError } from '../../test/harness/command-line.ts'
import type { Spread } from '../../test/harness/measure.ts'
import { type Cell, left, notesText, rangeNote, reportText, right, table } from '../report/report.ts'

/** What tells the elements of a list apart, in the results of all benches. */
const NAMES = 'part store endpoint server name label of busy batch addresses difficulty'.split(' ')

interface Row {
  readonly name: string
  readonly first: Spread
  readonly second: Spread
}

/** @param files two; throws UsageError unless both are there */
export function savedRows(files: readonly string[]): Row[] {
  if (files.length !== 2) throw new UsageError('--report: expected two files')
  const [all, others] = files.map(file => new Map(spreadsIn(read(file), '')))
  return [...all!].flatMap(([name, first]) => {
    const second = others!.get(name)
    return second === undefined ? [] : [{ name, first, second }]
  })
}

export function savedReport(files: readonly string[], rows: readonly Row[]): string {
  const text = (spread: Spread) => {
    const [median, min, max] = [spread.median, spread.min, spread.max].map(value =>
      Number(value.toPrecision(3)),
    )
    return min === max ? `${median}` : `${median} (${min}-${max})`
  }
  const cells: Cell<Row>[] = [
    [left('figure'), ({ name }) => name],
    [right('first'), ({ first }) => text(first)],
    [right('second'), ({ second }) => text(second)],
    [right('second/first'), ({ first, second }) => (second.median / first.median).toFixed(3)],
    [left('notes'), ({ first, second }) => notesText(rangeNote(first), rangeNote(second))],
  ]
  return reportText([
    table('Side by side', cells, rows),
    `Medians (ranges) of ${files.join(' and ')}. The ratio is of the medians: two results that were not measured side by side differ by whatever the machine did meanwhile.`,
  ])
}

function read(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`--report: ${file}: ${(error as Error).message}`)
  }
}

/** Every spread below a value, with a name that says where it is. */
function spreadsIn(value: unknown, name: string): [string, Spread][] {
  if (typeof value !== 'object' || value === null) return []
  if ('median' in value && 'min' in value && 'max' in value) return [[name.trim(), value as Spread]]
  if (Array.isArray(value)) return value.flatMap(element => spreadsIn(element, `${name} ${nameOf(element)}`))
  return Object.entries(value).flatMap(([key, inner]) => {
    const isTransparent = ['rows', 'cases', 'latencies', 'figures', 'fixed'].includes(key)
    return spreadsIn(inner, isTransparent ? name : `${name} ${key}`)
  })
}

function nameOf(element: unknown): string {
  if (typeof element !== 'object' || element === null) return ''
  return NAMES.flatMap(key => (element as Record<string, string>)[key] ?? []).join(' ')
}
