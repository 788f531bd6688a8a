/** How a bench publishes its report: as text, JSON or a web page. */

import { writeFileSync } from 'node:fs'
import { outputFile, toggle, type Values } from '../../test/harness/command-line.ts'
import { reportHtml } from './html.ts'
import type { Column, Report } from './report.ts'

/** The options that every bench has. */
export const OUTPUT = {
  json: toggle('The figures as JSON on standard output.'),
  report: outputFile('The figures as a web page too, which loads nothing.'),
}

/** @param figures what --json prints */
export function publish(
  report: Report,
  figures: unknown,
  { json, report: file }: Values<typeof OUTPUT>,
): void {
  process.stdout.write(`${json ? JSON.stringify(figures, undefined, 2) : reportText(report)}\n`)
  if (file !== undefined) writeFileSync(file, reportHtml(report))
}

export function reportText({ parts, intro }: Report): string {
  const texts = parts.flatMap(part => {
    if (part.kind === 'text') return part.text
    return part.kind === 'table' ? `${part.title}\n\n${renderTable(part.columns, part.rows)}` : []
  })
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
