/** Two results that a bench saved with --json, side by side. */

import { readFileSync } from 'node:fs'
import { UsageError } from '../../test/harness/command-line.ts'
import type { Spread } from '../../test/harness/measure.ts'
import { left, type Report, rangeNote, right, table } from '../report/report.ts'

/** What tells the elements of a list apart, in the results of all benches. */
const NAMES = [
  'part',
  'store',
  'endpoint',
  'server',
  'name',
  'label',
  'of',
  'busy',
  'batch',
  'addresses',
  'difficulty',
]

interface Row {
  readonly name: string
  readonly first: Spread
  readonly second: Spread
}

/** @param files two; throws UsageError unless both are there */
export function savedReport(files: readonly string[]): Report {
  if (files.length !== 2) throw new UsageError('--report: expected two files')
  const [first, second] = files.map(file => new Map(spreadsIn(read(file), '')))
  const rows = [...first!].flatMap(([name, spread]): Row[] => {
    const other = second!.get(name)
    return other === undefined ? [] : [{ name, first: spread, second: other }]
  })
  const figure = ({ median, min, max }: Spread) =>
    [median, min, max].map(value => Number(value.toPrecision(3)))
  const text = (spread: Spread) => {
    const [median, min, max] = figure(spread)
    return min === max ? `${median}` : `${median} (${min}-${max})`
  }
  return {
    title: 'Two results',
    intro: `Medians (ranges) of ${files.join(' and ')}. The ratio is of the medians: two results that were not measured side by side differ by whatever the machine did meanwhile.`,
    parts: [
      table<Row>(
        'Side by side',
        [
          [left('figure'), ({ name }) => name],
          [right('first'), one => text(one.first)],
          [right('second'), one => text(one.second)],
          [right('second/first'), one => (one.second.median / one.first.median).toFixed(3)],
          [left('notes'), one => [one.first, one.second].map(rangeNote).filter(Boolean).join('; ')],
        ],
        rows,
      ),
    ],
  }
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
