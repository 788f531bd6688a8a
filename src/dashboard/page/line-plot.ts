/**
 * Curves over time. The legend shows the numbers of the moment that the viewer points at. Assistive technology sees each plot as a
 * slider over time.
 */

import type { Gaps } from '../data.ts'
import { type Cursor, KEYS, nearestIndex } from './cursor.ts'
import { h, setText, svg, textWidth } from './dom.ts'
import { clock, clockSeconds, orDash } from './format.ts'
import { ticksFromZero, timeTicks } from './scale.ts'

export interface LinePlotSpec {
  /** The name for assistive technology. */
  readonly label: string
  /** Above the plot, unless it is alone in its panel. */
  readonly heading?: string
  /** Each curve's name and its colour and dashes: a class of the style sheet (plots.css), c0 to c3. */
  readonly curves: Readonly<Record<string, string>>
  /** A value with its unit. */
  readonly text: (value: number) => string
  /** A value at the axis. */
  readonly tick: (value: number) => string
  /** The axis ends at this value, or higher if a value is higher. */
  readonly axisEnd: number
  /** Default: 0. */
  readonly axisMin?: number
  /** True if only whole numbers have ticks. */
  readonly isWhole?: boolean
  readonly isStacked?: boolean
}

/** The time axis of all plots. */
export interface TimeFrame {
  readonly times: readonly number[]
  readonly fromMs: number
  readonly toMs: number
  /** The plots shade these times, in which the store did not answer. */
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[]
}

const HEIGHT = 150
const TOP = 8
const RIGHT = 10
const BOTTOM = 22
const Y_TICKS = 4
const X_LABEL_GAP = 28

type Point = readonly [x: number, y: number]

/** Each plot refers to its hatch pattern by an id, which must be unique in the page. */
let hatches = 0

export class LinePlot {
  readonly element: HTMLElement
  readonly #spec: LinePlotSpec
  readonly #curves: readonly (readonly [name: string, style: string])[]
  readonly #cursor: Cursor
  readonly #canvas: HTMLElement
  readonly #svg = svg('svg', { 'aria-hidden': 'true', height: HEIGHT })
  readonly #pointer = svg('g', { class: 'pointer' })
  /** The time of the legend's numbers. A plot without a heading leaves it to its panel. */
  readonly time = h('time')
  readonly #readings: HTMLElement[] = []
  readonly #hatch = `hatch-${hatches++}`
  #frame: TimeFrame = { times: [], fromMs: 0, toMs: 1, outages: [] }
  #values: readonly Gaps[] = []
  /** What is drawn: the values, or their running sums if the plot is stacked. */
  #layers: readonly Gaps[] = []
  #width = 0
  #left = 0
  #axisTop = 1

  constructor(spec: LinePlotSpec, cursor: Cursor) {
    this.#spec = spec
    this.#cursor = cursor
    const { curves, heading } = spec
    this.#curves = Object.entries(curves)
    const entries = this.#curves.map(([name, style]) => this.#legendEntry(name, style))
    const legend = h('ul', { class: 'legend' }, ...entries)
    const caption =
      heading === undefined
        ? h('figcaption', {}, legend)
        : h('figcaption', {}, h('h4', {}, heading), this.time, legend)
    const slider = { tabindex: 0, role: 'slider', 'aria-label': `${spec.label}: moment`, 'aria-valuemin': 0 }
    this.#canvas = h('div', { class: 'canvas', ...slider }, this.#svg)
    this.element = h('figure', { class: 'plot' }, caption, this.#canvas)
    this.#listen()
    this.#showMoment()
    cursor.onMove(() => this.#showMoment())
    new ResizeObserver(() => {
      if (this.#canvas.clientWidth !== this.#width) this.#draw()
    }).observe(this.#canvas)
  }

  #legendEntry(name: string, style: string): HTMLElement {
    const reading = h('b')
    this.#readings.push(reading)
    const shape = this.#spec.isStacked
      ? svg('rect', { class: 'area', width: 16, height: 10 })
      : svg('line', { class: 'curve', x1: 0, y1: 5, x2: 18, y2: 5 })
    const key = svg('svg', { class: style, width: 18, height: 10, 'aria-hidden': 'true' }, shape)
    return h('li', {}, key, `${name} `, reading)
  }

  #listen(): void {
    const point = (event: PointerEvent) => {
      const { left } = this.#canvas.getBoundingClientRect()
      this.#moveTo(nearestIndex(this.#frame.times, this.#timeAt(event.clientX - left)))
    }
    this.#canvas.addEventListener('pointermove', point)
    this.#canvas.addEventListener('pointerdown', point)
    // The moment stays after a touch, because its numbers must be readable.
    this.#canvas.addEventListener('pointerleave', event => {
      if (event.pointerType !== 'touch') this.#cursor.set(null)
    })
    this.#canvas.addEventListener('blur', () => this.#cursor.set(null))
    this.#canvas.addEventListener('keydown', event => {
      const move = KEYS[event.key]
      if (move === undefined) return
      event.preventDefault()
      const index = move(this.#index(), this.#frame.times.length)
      if (index === null) this.#cursor.set(null)
      else this.#moveTo(index)
    })
  }

  #moveTo(index: number): void {
    const { times } = this.#frame
    this.#cursor.set(times[Math.max(0, Math.min(times.length - 1, index))] ?? null)
  }

  /** The step that the viewer points at, otherwise the latest; -1 without steps. */
  #index(): number {
    const { times } = this.#frame
    const { timeMs } = this.#cursor
    return timeMs === null ? times.length - 1 : nearestIndex(times, timeMs)
  }

  update(frame: TimeFrame, values: readonly Gaps[]): void {
    this.#frame = frame
    this.#values = values
    this.#layers = this.#spec.isStacked ? stacked(values) : values
    this.#draw()
  }

  /** @param x pixels from the left edge */
  #timeAt(x: number): number {
    const { fromMs, toMs } = this.#frame
    return fromMs + ((x - this.#left) / (this.#width - this.#left - RIGHT)) * (toMs - fromMs)
  }

  #reading(curve: number, index: number): string {
    return orDash(this.#values[curve]?.[index], this.#spec.text)
  }

  #draw(): void {
    this.#width = this.#canvas.clientWidth
    if (this.#width === 0) return
    this.#svg.setAttribute('width', String(this.#width))
    const { axisMin = 0, axisEnd, isWhole, isStacked } = this.#spec
    const max = Math.max(axisEnd, ...this.#layers.flat().map(value => value ?? 0))
    const ticks = ticksFromZero(max - axisMin, Y_TICKS, isWhole).map(tick => tick + axisMin)
    this.#axisTop = ticks.at(-1)!
    const labels = ticks.map(this.#spec.tick)
    this.#left = Math.max(30, 10 + Math.max(...labels.map(textWidth)))
    this.#svg.replaceChildren(
      ...this.#outages(),
      ...ticks.flatMap((tick, index) => this.#gridLine(tick, labels[index]!)),
      ...this.#timeAxis(),
      ...(isStacked ? this.#areas() : this.#lines()),
      this.#pointer,
    )
    this.#showMoment()
  }

  #x(timeMs: number): number {
    const { fromMs, toMs } = this.#frame
    return this.#left + ((timeMs - fromMs) / (toMs - fromMs)) * (this.#width - this.#left - RIGHT)
  }

  #y(value: number): number {
    const { axisMin = 0 } = this.#spec
    return TOP + (1 - (value - axisMin) / (this.#axisTop - axisMin)) * (HEIGHT - TOP - BOTTOM)
  }

  #outages(): SVGElement[] {
    return this.#frame.outages.map(({ fromMs, toMs }) => {
      const x = Math.max(this.#left, this.#x(fromMs))
      const width = Math.max(2, this.#x(toMs) - x)
      return svg('rect', { class: 'band', x, y: TOP, width, height: HEIGHT - TOP - BOTTOM })
    })
  }

  #gridLine(tick: number, label: string): SVGElement[] {
    const y = this.#y(tick)
    const line = { x1: this.#left, x2: this.#width - RIGHT, y1: y, y2: y }
    const isBase = tick === (this.#spec.axisMin ?? 0)
    return [
      svg('line', { class: isBase ? 'base' : 'grid', ...line }),
      svg('text', { class: 'tick end', x: this.#left - 6, y: y + 4 }, label),
    ]
  }

  #timeAxis(): SVGElement[] {
    const { fromMs, toMs } = this.#frame
    const ticksMax = Math.max(2, Math.floor((this.#width - this.#left) / (textWidth('00:00') + X_LABEL_GAP)))
    const ticks = timeTicks(fromMs, toMs, ticksMax, new Date(toMs).getTimezoneOffset())
    const y = HEIGHT - BOTTOM
    return ticks.flatMap(timeMs => {
      const x = this.#x(timeMs)
      const hasRoom = x >= this.#left && x <= this.#width - textWidth('00:00') / 2
      const label = svg('text', { class: 'tick middle', x, y: HEIGHT - 6 }, clock(timeMs))
      return [svg('line', { class: 'base', x1: x, x2: x, y1: y, y2: y + 4 }), ...(hasRoom ? [label] : [])]
    })
  }

  /** Splits the points within the time shown at the gaps. */
  #runs(values: Gaps): Point[][] {
    const runs: Point[][] = [[]]
    for (const [index, timeMs] of this.#frame.times.entries()) {
      const value = values[index]
      if (timeMs < this.#frame.fromMs) continue
      if (value === null || value === undefined) runs.push([])
      else runs.at(-1)!.push([this.#x(timeMs), this.#y(value)])
    }
    return runs.filter(run => run.length > 0)
  }

  #lines(): SVGElement[] {
    return this.#layers.map((values, curve) => {
      const shapes = this.#runs(values).map(run => {
        const [x, y] = run[0]!
        return run.length === 1
          ? svg('circle', { class: 'dot', cx: x, cy: y, r: 3 })
          : svg('path', { class: 'curve', d: pathOf(run) })
      })
      return svg('g', { class: this.#curves[curve]![1] }, ...shapes)
    })
  }

  /** Draws the topmost first, because lower areas cover it. */
  #areas(): SVGElement[] {
    const groups = this.#layers.map((values, curve) => {
      const shapes = this.#runs(values).flatMap(points => {
        const [x, y] = points[0]!
        // A single step is drawn as a bar.
        const run: Point[] = points.length === 1 ? [[x - 3, y], [x + 3, y]] : points // biome-ignore format: short on one line
        const base = this.#y(0)
        const area = `${pathOf(run)}L${run.at(-1)![0]} ${base}L${run[0]![0]} ${base}Z`
        const isHatched = curve > 0
        return [
          svg('path', { class: 'area', d: area }),
          ...(isHatched ? [svg('path', { d: area, fill: `url(#${this.#hatch})` })] : []),
          svg('path', { class: 'curve', d: pathOf(run) }),
        ]
      })
      return svg('g', { class: this.#curves[curve]![1] }, ...shapes)
    })
    return [this.#hatchPattern(), ...groups.reverse()]
  }

  #hatchPattern(): SVGElement {
    const stripe = svg('path', { class: 'stripe', d: 'M-1 1L1 -1M0 6L6 0M5 7L7 5' })
    const size = { width: 6, height: 6, patternUnits: 'userSpaceOnUse' }
    return svg('defs', {}, svg('pattern', { id: this.#hatch, ...size }, stripe))
  }

  #showMoment(): void {
    const { times } = this.#frame
    const index = this.#index()
    const clockText = index < 0 ? '' : clockSeconds(times[index]!)
    setText(this.time, clockText)
    for (const [curve, reading] of this.#readings.entries()) setText(reading, this.#reading(curve, index))
    const readings = this.#curves.map(([name], curve) => `${name} ${this.#reading(curve, index)}`)
    this.#canvas.setAttribute('aria-valuemax', String(Math.max(0, times.length - 1)))
    this.#canvas.setAttribute('aria-valuenow', String(Math.max(0, index)))
    this.#canvas.setAttribute(
      'aria-valuetext',
      index < 0 ? 'no numbers yet' : `${clockText}: ${readings.join(', ')}`,
    )
    const isPointing = this.#cursor.timeMs !== null && index >= 0
    this.#pointer.replaceChildren(...(isPointing ? this.#pointerDots(index) : []))
  }

  #pointerDots(index: number): SVGElement[] {
    const x = this.#x(this.#frame.times[index]!)
    const dots = this.#layers.flatMap((values, curve) => {
      const value = values[index]
      if (value === null || value === undefined) return []
      const dot = svg('circle', { class: 'dot', cx: x, cy: this.#y(value), r: 3.5 })
      return [svg('g', { class: this.#curves[curve]![1] }, dot)]
    })
    return [svg('line', { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }), ...dots]
  }
}

function pathOf(run: readonly Point[]): string {
  return `M${run.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}`
}

/** Adds to each layer the sum of those below. */
function stacked(values: readonly Gaps[]): Gaps[] {
  const sums: number[] = []
  return values.map(layer => layer.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))))
}
