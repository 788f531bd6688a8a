/** Tables for people, in plain text. */

import type { Spread } from '../../test/harness/measure.ts'

export interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

/** @param rows a cell for each column */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...rows.map(row => row[index]!.length)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) =>
        columns[index]!.align === 'left' ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!),
      )
      .join('  ')
      .trimEnd()
  const rule = widths.map(width => '-'.repeat(width))
  return [line(columns.map(({ title }) => title)), line(rule), ...rows.map(line)].join('\n')
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

/** "12%" */
export function percent(share: number): string {
  return `${(share * 100).toFixed(0)}%`
}
