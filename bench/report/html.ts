/**
 * A report as one HTML page: no script, nothing loaded, light or dark by the reader's setting. The figures of a plot stand in a
 * table below it.
 */

import type { Report, ReportLines, ReportPart, ReportTable } from './report.ts'

/** The page forbids itself to load anything, which also proves that it needs nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"

export function reportHtml({ title, intro, parts }: Report): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${paragraphs(intro)}
${parts.map((part, index) => partHtml(part, `part-${index}`)).join('\n')}
</main>
</body>
</html>
`
}

function partHtml(part: ReportPart, id: string): string {
  switch (part.kind) {
    case 'text':
      return paragraphs(part.text)
    case 'table':
      return figure(part.title, id, tableHtml(part, id))
    case 'lines': {
      const details = `<details><summary>The figures</summary>${tableHtml(figuresOf(part), id)}</details>`
      const isEmpty = part.series.every(({ points }) => shownPoints(points).length === 0)
      return figure(
        part.title,
        id,
        (isEmpty ? '<p>There is nothing to show.</p>' : image(part, id)) + details,
      )
    }
  }
}

function figure(title: string, id: string, content: string): string {
  return `<figure><figcaption id="${id}-title">${escaped(title)}</figcaption>${content}</figure>`
}

/** A wide table scrolls sideways by itself, by keyboard too, which takes a focusable region with a name. */
function tableHtml({ columns, rows }: Pick<ReportTable, 'columns' | 'rows'>, id: string): string {
  const cell = (element: string, text: string, column: number) =>
    `<${element} class="${columns[column]!.align}">${escaped(text)}</${element.split(' ')[0]}>`
  const head = columns.map(({ title }, index) => cell('th scope="col"', title, index))
  const body = rows.map(cells => {
    const list = cells.map((text, index) => cell(index === 0 ? 'th scope="row"' : 'td', text, index))
    return `<tr>${list.join('')}</tr>`
  })
  const table = `<table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table>`
  return `<div class="wide" role="group" tabindex="0" aria-labelledby="${id}-title">${table}</div>`
}

const FIGURES = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 })

function figuresOf({ xTitle, yTitle, series }: ReportLines): Pick<ReportTable, 'columns' | 'rows'> {
  const right = (title: string) => ({ title, align: 'right' }) as const
  const rows = series.flatMap(({ name, points }) =>
    points.map(({ x, y }) => [name, FIGURES.format(x), FIGURES.format(y)]),
  )
  return { columns: [{ title: 'series', align: 'left' }, right(xTitle), right(yTitle)], rows }
}

function paragraphs(text: string): string {
  return text
    .split(/\n{2,}/)
    .filter(paragraph => paragraph.trim() !== '')
    .map(paragraph => `<p>${escaped(paragraph.trim()).replaceAll('\n', '<br>')}</p>`)
    .join('\n')
}

/** Wide enough for plots, narrow enough for phones. Lines have a contrast of 3 to 1 at least, text 4.5 to 1. */
const STYLE = `
:root {
  color-scheme: light dark;
  --page: #fff; --text: #1c1f23; --quiet: #565c64; --grid: #d4d8dd; --s0: #1f6fd0; --s1: #b5490b; --s2: #1b7a3d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --text: #e6e9ed; --quiet: #a6adb6; --grid: #3a4048; --s0: #6aa9f7; --s1: #f0a15c; --s2: #66c98a;
  }
}
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 400; }
thead th { color: var(--quiet); white-space: nowrap; }
.left { text-align: left; }
.right { text-align: right; white-space: nowrap; }
summary { color: var(--quiet); cursor: pointer; padding: .25rem 0; }
svg { display: block; width: 100%; max-width: 40rem; height: auto; }
svg text { font: 14px system-ui, sans-serif; fill: var(--text); }
.grid { stroke: var(--grid); }
.series { fill: none; stroke-width: 2; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); stroke-dasharray: 7 4; } .s2 { stroke: var(--s2); stroke-dasharray: 2 3; }
`

type Point = ReportLines['series'][number]['points'][number]

const [WIDTH, LEFT, RIGHT, TOP] = [480, 56, 20, 28]
const [PLOT_WIDTH, PLOT_HEIGHT] = [WIDTH - LEFT - RIGHT, 230]
const BOTTOM = TOP + PLOT_HEIGHT
const [AXIS_HEIGHT, LEGEND_LINE] = [56, 20]
/** Colours and dashes that the page's style has. */
const STYLES = 3
/** Ticks of an axis at least; two or three more come of rounding. */
const TICKS_MIN = 4

/** From left to right. */
function shownPoints(points: readonly Point[]): Point[] {
  return points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)).toSorted((a, b) => a.x - b.x)
}

/**
 * Lines through points on linear axes, as SVG. Series differ in colour and dashes, so that neither is needed alone. One image to
 * a screen reader, which hears its title; the figures must be told elsewhere.
 *
 * @param id unique in its page
 */
function image({ title, xTitle, yTitle, series }: ReportLines, id: string): string {
  const drawn = series.map(({ name, points }) => ({ name, points: shownPoints(points) }))
  const all = drawn.flatMap(({ points }) => points)
  const xScale = scaleOf(all.map(({ x }) => x))
  const yScale = scaleOf([0, ...all.map(({ y }) => y)])
  const x = (value: number) => Math.round(10 * (LEFT + xScale.position(value) * PLOT_WIDTH)) / 10
  const y = (value: number) => Math.round(10 * (TOP + (1 - yScale.position(value)) * PLOT_HEIGHT)) / 10
  const legendTop = BOTTOM + AXIS_HEIGHT
  const shapes = [
    ...yScale.ticks.map(tick => line(LEFT, y(tick), LEFT + PLOT_WIDTH, y(tick), 'grid')),
    ...yScale.ticks.map(tick => label(LEFT - 6, y(tick) + 5, tickText(tick), 'end')),
    ...xScale.ticks.map(tick => line(x(tick), TOP, x(tick), BOTTOM, 'grid')),
    ...xScale.ticks.map(tick => label(x(tick), BOTTOM + 18, tickText(tick), 'middle')),
    label(4, 16, yTitle, 'start'),
    label(LEFT + PLOT_WIDTH / 2, BOTTOM + 38, xTitle, 'middle'),
    ...drawn.flatMap(({ name, points }, index) => {
      const style = `series s${index % STYLES}`
      const path = points.map(point => `${x(point.x)},${y(point.y)}`).join(' ')
      const legendY = legendTop + index * LEGEND_LINE
      return [
        `<polyline points="${path}" class="${style}"/>`,
        line(LEFT, legendY, LEFT + 36, legendY, style),
        label(LEFT + 46, legendY + 5, name, 'start'),
      ]
    }),
  ]
  const names = drawn.map(({ name }) => name).join(', ')
  const heading = escaped(`Lines: ${title}. ${yTitle} over ${xTitle}, of ${names}`)
  const height = legendTop + drawn.length * LEGEND_LINE
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="${id}-image"><title id="${id}-image">${heading}</title>${shapes.join('')}</svg>`
}

function line(x1: number, y1: number, x2: number, y2: number, className: string): string {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${className}"/>`
}

function label(x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped(text)}</text>`
}

/** Round ticks around all values, and where a value lies from 0, the start of the axis, to 1, its end. */
export function scaleOf(values: readonly number[]) {
  const min = values.reduce((least, value) => Math.min(least, value))
  const max = values.reduce((most, value) => Math.max(most, value))
  const step = niceStep((max - min || Math.abs(max) || 1) / TICKS_MIN)
  const first = Math.floor(min / step)
  const last = Math.max(first + 1, Math.ceil(max / step))
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => rounded((first + index) * step))
  const [start, end] = [ticks[0]!, ticks.at(-1)!]
  return { ticks, position: (value: number) => (value - start) / (end - start) }
}

/** The largest of 1, 2, 5 times a power of ten that is at most so much. */
function niceStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most))
  return power * [1, 2, 5, 10].findLast(step => rounded(step * power) <= rounded(most))!
}

/** Sums of tenths are none: 0.30000000000000004 is 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(12))
}

const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

/** "12.4", "1.2M" */
function tickText(tick: number): string {
  return SHORT.format(tick)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** For text and for quoted attributes. */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => ENTITIES[character]!)
}
