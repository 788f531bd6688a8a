/**
 * Writes a bench's figures as one HTML page: no script, nothing loaded, light or dark by the reader's setting. The figures
 * of every plot stand in a table below it.
 */

import { writeFileSync } from 'node:fs'
import { UsageError } from './arguments.ts'
import { element, escaped } from './markup.ts'
import { barsSvg, showableBars } from './plot-bars.ts'
import { linesSvg, showablePoints } from './plot-lines.ts'
import { figureText } from './plot-scale.ts'
import type { Report, ReportBars, ReportLines, ReportPart, ReportTable } from './report.ts'
import { REPORT_STYLE } from './report-style.ts'
import type { Column } from './table.ts'

/** The page forbids itself to load anything, which also proves that it needs nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"

/** One self-contained page. Figures that an axis cannot show, as zero on a logarithmic one, are said to be left out. */
export function reportHtml({ title, intro, parts }: Report): string {
  const body = parts.map((part, index) => partHtml(part, `part-${index}`)).join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>
${REPORT_STYLE}
</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${paragraphs(intro)}
${body}
</main>
</body>
</html>
`
}

/** Throws UsageError if the file cannot be written. */
export function writeReport(file: string, report: Report): void {
  const html = reportHtml(report)
  try {
    writeFileSync(file, html)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`--report: cannot write ${file}: ${code ?? message}`)
  }
}

function partHtml(part: ReportPart, id: string): string {
  switch (part.kind) {
    case 'text':
      return paragraphs(part.text)
    case 'table':
      return figure(part.title, id, tableHtml(part, `${id}-title`))
    case 'bars':
      return plot(part.title, id, part.bars.length - showableBars(part).length, {
        hasPoints: showableBars(part).length > 0,
        svg: () => barsSvg(part, `${id}-image`),
        table: barsTable(part),
      })
    case 'lines': {
      const shown = part.series.reduce((sum, series) => sum + showablePoints(part, series).length, 0)
      const all = part.series.reduce((sum, { points }) => sum + points.length, 0)
      return plot(part.title, id, all - shown, {
        hasPoints: shown > 0,
        svg: () => linesSvg(part, `${id}-image`),
        table: linesTable(part),
      })
    }
  }
}

interface Plot {
  readonly hasPoints: boolean
  svg(): string
  readonly table: ReportTable
}

function plot(title: string, id: string, hidden: number, { hasPoints, svg, table }: Plot): string {
  const image = hasPoints ? svg() : '<p>There is nothing to show.</p>'
  const note = hidden === 0 ? '' : `<p>${hidden} that the axes cannot show: see the figures.</p>`
  const rows = tableHtml(table, `${id}-title`)
  return figure(title, id, `${image}${note}<details><summary>The figures</summary>${rows}</details>`)
}

function figure(title: string, id: string, content: string): string {
  const caption = element('figcaption', { id: `${id}-title` }, escaped(title))
  return element('figure', {}, caption + content)
}

/** A wide table scrolls sideways by itself, by keyboard too, which takes a focusable region with a name. */
function tableHtml({ columns, rows }: ReportTable, titleId: string): string {
  const head = columns.map(({ title, align }) =>
    element('th', { scope: 'col', class: align }, escaped(title)),
  )
  const body = rows.map(cells => {
    const list = cells.map((cell, index) => {
      const attributes = { class: columns[index]!.align }
      return index === 0
        ? element('th', { scope: 'row', ...attributes }, escaped(cell))
        : element('td', attributes, escaped(cell))
    })
    return `<tr>${list.join('')}</tr>`
  })
  const table = `<table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table>`
  return element('div', { class: 'wide', role: 'group', tabindex: 0, 'aria-labelledby': titleId }, table)
}

function column(title: string, align: Column['align'] = 'right'): Column {
  return { title, align }
}

function barsTable({ title, unit, bars }: ReportBars): ReportTable {
  const hasGroups = bars.some(({ group }) => group !== undefined)
  const suffix = unit === '' ? '' : `, ${unit}`
  const figures = [column(`median${suffix}`), column('least'), column('most')]
  const names = hasGroups ? [column('group', 'left'), column('of', 'left')] : [column('of', 'left')]
  const rows = bars.map(({ label, group = '', median, min, max }) => {
    const cells = [label, ...[median, min, max].map(figureText)]
    return hasGroups ? [group, ...cells] : cells
  })
  return { kind: 'table', title, columns: [...names, ...figures], rows }
}

function linesTable({ title, xTitle, yTitle, series }: ReportLines): ReportTable {
  const columns = [column('series', 'left'), column(xTitle), column(yTitle), column('least'), column('most')]
  const rows = series.flatMap(({ name, points }) =>
    points.map(({ x, y, min = y, max = y }) => [name, ...[x, y, min, max].map(figureText)]),
  )
  return { kind: 'table', title, columns, rows }
}

function paragraphs(text: string): string {
  return text
    .split(/\n{2,}/)
    .filter(paragraph => paragraph.trim() !== '')
    .map(paragraph => element('p', {}, escaped(paragraph.trim()).replaceAll('\n', '<br>')))
    .join('\n')
}
