/** Lines through points on linear axes, as SVG. Series differ in colour and dashes, so that neither is needed alone. */

import type { ReportLines } from './report.ts'

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
export function shownPoints(points: readonly Point[]): Point[] {
  return points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)).toSorted((a, b) => a.x - b.x)
}

/**
 * One image to a screen reader, which hears its title; the figures must be told elsewhere.
 *
 * @param id unique in its page
 */
export function image({ title, xTitle, yTitle, series }: ReportLines, id: string): string {
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
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => ENTITIES[character]!)
}
