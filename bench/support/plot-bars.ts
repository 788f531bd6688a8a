/** Horizontal bars with whiskers over their range; the label above each, so that long ones fit a phone. */

import { element, image, label, line } from './markup.ts'
import { figureText, isShowable, type Scale, scaleOf, tickText } from './plot-scale.ts'
import type { ReportBars } from './report.ts'

type Bar = ReportBars['bars'][number]

const WIDTH = 480
const MARGIN = 16
const PLOT_WIDTH = WIDTH - 2 * MARGIN
const TEXT_HEIGHT = 20
const BAR_HEIGHT = 14
const WHISKER_HEIGHT = 8
const GAP = 12
const AXIS_HEIGHT = 44

export function showableBars({ bars, isLog = false }: ReportBars): readonly Bar[] {
  return bars.filter(({ median, min, max }) => [median, min, max].every(value => isShowable(value, isLog)))
}

/** "12.35 (11.9-12.8) us" */
export function rangeText(median: number, min: number, max: number, unit: string): string {
  const range = min === max ? '' : ` (${figureText(min)}-${figureText(max)})`
  return `${figureText(median)}${range}${unit === '' ? '' : ` ${unit}`}`
}

/** @param id unique in its page */
export function barsSvg(part: ReportBars, id: string): string {
  const bars = showableBars(part)
  const scale = scaleOf(
    bars.flatMap(({ median, min, max }) => [median, min, max]),
    part.isLog ?? false,
    true,
  )
  const x = (value: number) => MARGIN + scale.position(value) * PLOT_WIDTH
  const shapes: string[] = []
  let y = 0
  for (const { group, members } of grouped(bars)) {
    if (group !== undefined) {
      y += TEXT_HEIGHT
      shapes.push(element('g', { class: 'group' }, label(MARGIN, y - 4, group)))
    }
    for (const bar of members) {
      shapes.push(barShapes(bar, part.unit, x, scale, y))
      y += TEXT_HEIGHT + BAR_HEIGHT + GAP
    }
  }
  const content = axis(scale, part.unit, y) + shapes.join('')
  return image(id, titleText(part, bars), WIDTH, y + AXIS_HEIGHT, content)
}

/** In the order in which the groups come first. */
function grouped(bars: readonly Bar[]): { group: string | undefined; members: readonly Bar[] }[] {
  const names = [...new Set(bars.map(({ group }) => group))]
  return names.map(group => ({ group, members: bars.filter(bar => bar.group === group) }))
}

function barShapes(
  { label: name, median, min, max }: Bar,
  unit: string,
  x: (value: number) => number,
  scale: Scale,
  top: number,
): string {
  const y = top + TEXT_HEIGHT
  const middle = y + BAR_HEIGHT / 2
  const [low, high] = [middle - WHISKER_HEIGHT / 2, middle + WHISKER_HEIGHT / 2]
  const start = scale.ticks.includes(0) ? x(0) : MARGIN
  const [left, right] = [Math.min(start, x(median)), Math.max(start, x(median))]
  const shapes = [
    label(MARGIN, y - 5, `${name}: ${rangeText(median, min, max, unit)}`),
    element('rect', { x: left, y, width: right - left, height: BAR_HEIGHT, class: 'bar' }),
  ]
  if (min !== max) {
    shapes.push(line(x(min), middle, x(max), middle, 'whisker'))
    shapes.push(line(x(min), low, x(min), high, 'whisker'), line(x(max), low, x(max), high, 'whisker'))
  }
  return shapes.join('')
}

function axis(scale: Scale, unit: string, height: number): string {
  const ticks = scale.ticks.map((tick, index) => {
    const x = MARGIN + scale.position(tick) * PLOT_WIDTH
    const anchor = index === 0 ? 'start' : index === scale.ticks.length - 1 ? 'end' : 'middle'
    const shift = anchor === 'start' ? -MARGIN / 2 : anchor === 'end' ? MARGIN / 2 : 0
    return line(x, 0, x, height, 'grid') + label(x + shift, height + 16, tickText(tick), anchor)
  })
  return ticks.join('') + label(WIDTH / 2, height + 36, unit, 'middle')
}

function titleText({ title, unit }: ReportBars, bars: readonly Bar[]): string {
  const list = bars.map(({ group, label: name, median }) => {
    const prefix = group === undefined ? '' : `${group}, `
    return `${prefix}${name} ${figureText(median)}`
  })
  return `Bars: ${title}. In ${unit || 'units of one'}: ${list.join('; ')}`
}
