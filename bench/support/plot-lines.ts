/** Lines through points with their ranges. Series differ in colour, dashes and marks, so that none is needed alone. */

import { element, image, label, line } from './markup.ts'
import { isShowable, type Scale, scaleOf, tickText } from './plot-scale.ts'
import type { ReportLines } from './report.ts'

type Series = ReportLines['series'][number]
type Point = Series['points'][number]

const WIDTH = 480
const LEFT = 56
const RIGHT = 20
const TOP = 28
const PLOT_WIDTH = WIDTH - LEFT - RIGHT
const PLOT_HEIGHT = 230
const AXIS_HEIGHT = 56
const LEGEND_LINE = 20
const MARK = 4
/** Of the font at its size in this drawing, on average. */
const CHARACTER_WIDTH = 8
/** Colours and dashes that the page's style has. */
export const SERIES_STYLES = 6

interface Axes {
  readonly x: (value: number) => number
  readonly y: (value: number) => number
  readonly xScale: Scale
  readonly yScale: Scale
}

/** The points that its axes can show, from left to right. */
export function showablePoints(
  { isLogX = false, isLogY = false }: ReportLines,
  { points }: Series,
): readonly Point[] {
  return points
    .filter(({ x, y, min = y, max = y }) => {
      return isShowable(x, isLogX) && [y, min, max].every(value => isShowable(value, isLogY))
    })
    .toSorted((a, b) => a.x - b.x)
}

/** @param id unique in its page */
export function linesSvg(part: ReportLines, id: string): string {
  const drawn = part.series.map(series => ({ name: series.name, points: showablePoints(part, series) }))
  const axes = axesOf(
    part,
    drawn.flatMap(({ points }) => points),
  )
  const shapes = drawn.map(({ points }, index) => seriesShapes(points, index % SERIES_STYLES, axes))
  const legendTop = TOP + PLOT_HEIGHT + AXIS_HEIGHT
  const legend = drawn.map(({ name }, index) => legendLine(name, index, legendTop + index * LEGEND_LINE))
  const names = drawn.map(({ name }) => name).join(', ')
  const title = `Lines: ${part.title}. ${part.yTitle} over ${part.xTitle}, of ${names}`
  const content = grid(part, axes) + shapes.join('') + legend.join('')
  return image(id, title, WIDTH, legendTop + drawn.length * LEGEND_LINE, content)
}

function axesOf({ isLogX = false, isLogY = false }: ReportLines, points: readonly Point[]): Axes {
  const xScale = scaleOf(
    points.map(({ x }) => x),
    isLogX,
  )
  const yScale = scaleOf(
    points.flatMap(({ y, min = y, max = y }) => [y, min, max]),
    isLogY,
    true,
  )
  return {
    x: value => LEFT + xScale.position(value) * PLOT_WIDTH,
    y: value => TOP + (1 - yScale.position(value)) * PLOT_HEIGHT,
    xScale,
    yScale,
  }
}

function grid({ xTitle, yTitle }: ReportLines, { x, y, xScale, yScale }: Axes): string {
  const bottom = TOP + PLOT_HEIGHT
  const rows = yScale.ticks.map(
    tick =>
      line(LEFT, y(tick), LEFT + PLOT_WIDTH, y(tick), 'grid') +
      label(LEFT - 6, y(tick) + 5, tickText(tick), 'end'),
  )
  let freeFrom = Number.NEGATIVE_INFINITY
  const columns = xScale.ticks.map(tick => {
    const text = tickText(tick)
    const halfWidth = (text.length * CHARACTER_WIDTH) / 2
    const isFree = x(tick) - halfWidth > freeFrom
    if (isFree) freeFrom = x(tick) + halfWidth + CHARACTER_WIDTH / 2
    return (
      line(x(tick), TOP, x(tick), bottom, 'grid') +
      (isFree ? label(x(tick), bottom + 18, text, 'middle') : '')
    )
  })
  const titles = label(4, 16, yTitle) + label(LEFT + PLOT_WIDTH / 2, bottom + 38, xTitle, 'middle')
  return rows.join('') + columns.join('') + titles
}

function seriesShapes(points: readonly Point[], style: number, { x, y }: Axes): string {
  const path = points.map(point => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(' ')
  const ranges = points.map(({ x: at, y: value, min = value, max = value }) =>
    min === max ? '' : line(x(at), y(min), x(at), y(max), 'range'),
  )
  const marks = points.map(point => mark(x(point.x), y(point.y), style))
  const content = element('polyline', { points: path, class: 'path' }) + ranges.join('') + marks.join('')
  return element('g', { class: `series s${style}` }, content)
}

function legendLine(name: string, index: number, y: number): string {
  const style = index % SERIES_STYLES
  const sample = line(LEFT, y, LEFT + 36, y, 'path') + mark(LEFT + 18, y, style)
  return element('g', { class: `series s${style}` }, sample) + label(LEFT + 46, y + 5, name)
}

/** A circle, square or triangle by turns. */
function mark(x: number, y: number, style: number): string {
  if (style % 3 === 0) return element('circle', { cx: x, cy: y, r: MARK, class: 'mark' })
  if (style % 3 === 1) {
    return element('rect', { x: x - MARK, y: y - MARK, width: 2 * MARK, height: 2 * MARK, class: 'mark' })
  }
  const corners = [x, y - MARK - 1, x + MARK + 1, y + MARK, x - MARK - 1, y + MARK]
  return element('polygon', { points: corners.map(value => value.toFixed(1)).join(' '), class: 'mark' })
}
