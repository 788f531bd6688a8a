/** How a bench publishes its report: as text or JSON. */

import { toggle, type Values } from '../../test/harness/command-line.ts'
import type { Column, Report } from './report.ts'

/** The options that every bench has. */
export const OUTPUT = {
  json: toggle('The figures as JSON on standard output, and nothing else there.'),
}

/** @param figures what --json prints */
export function publish(report: Report, figures: unknown, { json }: Values<typeof OUTPUT>): void {
  process.stdout.write(`${json ? JSON.stringify(figures, undefined, 2) : reportText(report)}\n`)
}

export function reportText({ parts, intro }: Report): string {
  const texts = parts.map(part =>
    part.kind === 'text' ? part.text : `${part.title}\n\n${renderTable(part.columns, part.rows)}`,
  )
  return [...texts, intro].filter(text => text !== '').join('\n\n')
}

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
