/**
 * Curves over time. The legend shows the numbers of the moment that the viewer points at, in all plots at once. Assistive
 * technology sees each plot as a slider over time.
 */

import type { Curve } from '../data.ts'
import { h, setText, svg } from './dom.ts'
import { clock, clockSeconds, orDash } from './format.ts'
import { ticksFromZero, timeTicks } from './scale.ts'

export interface LinePlotSpec {
  /** Above the plot, unless it is alone in its panel. */
  readonly heading?: string
  /** Names, at most four. The first curve has the class c0 of panels.css, with a colour and dashes, the last c3. */
  readonly curves: readonly string[]
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
}

/** The time axis of all plots. */
export interface TimeFrame {
  readonly times: readonly number[]
  readonly fromMs: number
  readonly toMs: number
}

/** All lengths are pixels. */
const HEIGHT = 150
const TOP = 8
/** Leaves room for half a time at the right, and for a label such as "500 ms" at the left. */
const RIGHT = 18
const LEFT = 56
const BASE = HEIGHT - 22
const Y_TICKS = 4
const X_TICK_WIDTH = 60

type Point = readonly [x: number, y: number]

/** The step that a key moves to, perhaps beyond the first or last; null to point nowhere. */
const KEYS: Readonly<Record<string, (index: number, count: number) => number | null>> = {
  ArrowLeft: index => index - 1,
  ArrowDown: index => index - 1,
  ArrowRight: index => index + 1,
  ArrowUp: index => index + 1,
  Home: () => 0,
  End: (_, count) => count - 1,
  Escape: () => null,
}

/** All plots of the page. */
const plots: LinePlot[] = []

/** @param timeMs Unix milliseconds; null if the viewer points nowhere */
function pointAllAt(timeMs: number | null): void {
  for (const plot of plots) plot.pointAt(timeMs)
}

export class LinePlot {
  readonly element: HTMLElement
  readonly #spec: LinePlotSpec
  readonly #canvas: HTMLElement
  readonly #svg = svg('svg', { 'aria-hidden': 'true', height: HEIGHT })
  readonly #pointer = svg('g', { class: 'pointer' })
  readonly #time = h('time')
  readonly #readings: readonly HTMLElement[]
  #frame: TimeFrame = { times: [], fromMs: 0, toMs: 1 }
  #values: readonly Curve[] = []
  #pointedAtMs: number | null = null
  #width = 0
  /** A value's distance from the top; #draw sets it, because it depends on the axis. */
  #y: (value: number) => number = () => BASE

  /** @param name for assistive technology */
  constructor(spec: LinePlotSpec, name: string) {
    this.#spec = spec
    this.#readings = spec.curves.map(() => h('b'))
    const legend = h('ul', { class: 'legend' }, ...spec.curves.map((_, index) => this.#legendEntry(index)))
    const heading = spec.heading === undefined ? [] : [h('h4', {}, spec.heading)]
    const slider = { tabindex: 0, role: 'slider', 'aria-label': `${name}: moment`, 'aria-valuemin': 0 }
    this.#canvas = h('div', { class: 'canvas', ...slider }, this.#svg)
    this.element = h('figure', {}, h('figcaption', {}, ...heading, legend, this.#time), this.#canvas)
    this.#listen()
    this.#showMoment()
    plots.push(this)
    new ResizeObserver(() => {
      if (this.#canvas.clientWidth !== this.#width) this.#draw()
    }).observe(this.#canvas)
  }

  #legendEntry(index: number): HTMLElement {
    const line = svg('line', { class: 'curve', x1: 0, y1: 5, x2: 18, y2: 5 })
    const key = svg('svg', { class: `c${index}`, width: 18, height: 10, 'aria-hidden': 'true' }, line)
    return h('li', {}, key, ` ${this.#spec.curves[index]} `, this.#readings[index]!)
  }

  #listen(): void {
    const point = (event: PointerEvent) => {
      const { fromMs, toMs, times } = this.#frame
      const share = (event.clientX - this.#canvas.getBoundingClientRect().left - LEFT) / this.#plotWidth
      this.#moveTo(nearestIndex(times, fromMs + share * (toMs - fromMs)))
    }
    this.#canvas.addEventListener('pointermove', point)
    this.#canvas.addEventListener('pointerdown', point)
    // The moment stays after a touch, because its numbers must be readable.
    this.#canvas.addEventListener('pointerleave', event => {
      if (event.pointerType !== 'touch') pointAllAt(null)
    })
    this.#canvas.addEventListener('blur', () => pointAllAt(null))
    this.#canvas.addEventListener('keydown', event => {
      const move = KEYS[event.key]
      if (move === undefined) return
      event.preventDefault()
      const index = move(this.#index(), this.#frame.times.length)
      if (index === null) pointAllAt(null)
      else this.#moveTo(index)
    })
  }

  /** @param index may lie beyond the first or last step */
  #moveTo(index: number): void {
    const { times } = this.#frame
    pointAllAt(times[Math.max(0, Math.min(times.length - 1, index))] ?? null)
  }

  pointAt(timeMs: number | null): void {
    this.#pointedAtMs = timeMs
    this.#showMoment()
  }

  /** The step that the viewer points at, otherwise the latest; -1 without steps. */
  #index(): number {
    const { times } = this.#frame
    return this.#pointedAtMs === null ? times.length - 1 : nearestIndex(times, this.#pointedAtMs)
  }

  /** Leaves out steps before the time shown: there are some if the service stood still meanwhile. */
  update({ times, ...span }: TimeFrame, values: readonly Curve[]): void {
    const first = times.filter(timeMs => timeMs < span.fromMs).length
    this.#frame = { times: times.slice(first), ...span }
    this.#values = values.map(curve => curve.slice(first))
    this.#draw()
  }

  get #plotWidth(): number {
    return this.#width - LEFT - RIGHT
  }

  #draw(): void {
    this.#width = this.#canvas.clientWidth
    if (this.#width === 0) return
    this.#svg.setAttribute('width', String(this.#width))
    const { axisMin = 0, axisEnd, isWhole, tick } = this.#spec
    const max = Math.max(axisEnd, ...this.#values.flat().map(value => value ?? 0))
    const ticks = ticksFromZero(max - axisMin, Y_TICKS, isWhole).map(fromMin => axisMin + fromMin)
    const top = ticks.at(-1)!
    this.#y = value => TOP + ((top - value) / (top - axisMin)) * (BASE - TOP)
    this.#svg.replaceChildren(
      ...ticks.flatMap(value => this.#gridLine(value, tick(value))),
      ...this.#timeAxis(),
      ...this.#curves(),
      this.#pointer,
    )
    this.#showMoment()
  }

  #x(timeMs: number): number {
    const { fromMs, toMs } = this.#frame
    return LEFT + ((timeMs - fromMs) / (toMs - fromMs)) * this.#plotWidth
  }

  #gridLine(value: number, label: string): SVGElement[] {
    const y = this.#y(value)
    const line = { class: y === BASE ? 'axis' : 'grid-line', x1: LEFT, x2: this.#width - RIGHT, y1: y, y2: y }
    return [svg('line', line), svg('text', { 'text-anchor': 'end', x: LEFT - 6, y: y + 4 }, label)]
  }

  #timeAxis(): SVGElement[] {
    const { fromMs, toMs } = this.#frame
    const ticksMax = Math.max(2, Math.floor(this.#plotWidth / X_TICK_WIDTH))
    return timeTicks(fromMs, toMs, ticksMax, new Date(toMs).getTimezoneOffset()).flatMap(timeMs => {
      const x = this.#x(timeMs)
      return [
        svg('line', { class: 'axis', x1: x, x2: x, y1: BASE, y2: BASE + 4 }),
        svg('text', { 'text-anchor': 'middle', x, y: HEIGHT - 6 }, clock(timeMs)),
      ]
    })
  }

  #curves(): SVGElement[] {
    return this.#values.map((values, curve) => {
      const shapes = this.#runs(values).map(run => {
        const [x, y] = run[0]!
        return run.length === 1
          ? svg('circle', { class: 'dot', cx: x, cy: y, r: 3 })
          : svg('polyline', { class: 'curve', points: run.join(' ') })
      })
      return svg('g', { class: `c${curve}` }, ...shapes)
    })
  }

  /** Splits the points at the gaps. */
  #runs(values: Curve): Point[][] {
    const runs: Point[][] = [[]]
    for (const [index, timeMs] of this.#frame.times.entries()) {
      const value = values[index]
      if (value === null || value === undefined) runs.push([])
      else runs.at(-1)!.push([this.#x(timeMs), this.#y(value)])
    }
    return runs.filter(run => run.length > 0)
  }

  #showMoment(): void {
    const { times } = this.#frame
    const index = this.#index()
    const { curves, text } = this.#spec
    const clockText = index < 0 ? '' : clockSeconds(times[index]!)
    const texts = curves.map((_, curve) => orDash(this.#values[curve]?.[index], text))
    setText(this.#time, clockText)
    for (const [curve, reading] of this.#readings.entries()) setText(reading, texts[curve]!)
    const readings = curves.map((name, curve) => `${name} ${texts[curve]}`).join(', ')
    this.#canvas.setAttribute('aria-valuemax', String(Math.max(0, times.length - 1)))
    this.#canvas.setAttribute('aria-valuenow', String(Math.max(0, index)))
    this.#canvas.setAttribute('aria-valuetext', index < 0 ? 'no numbers yet' : `${clockText}: ${readings}`)
    const isPointing = this.#pointedAtMs !== null && index >= 0
    this.#pointer.replaceChildren(...(isPointing ? this.#pointerAt(index) : []))
  }

  #pointerAt(index: number): SVGElement[] {
    const x = this.#x(this.#frame.times[index]!)
    const dots = this.#values.flatMap((values, curve) => {
      const value = values[index]
      if (value === null || value === undefined) return []
      const dot = svg('circle', { class: 'dot', cx: x, cy: this.#y(value), r: 3.5 })
      return [svg('g', { class: `c${curve}` }, dot)]
    })
    return [svg('line', { x1: x, x2: x, y1: TOP, y2: BASE }), ...dots]
  }
}

/** The index of the step that ends nearest to a time; -1 without steps. */
function nearestIndex(times: readonly number[], timeMs: number): number {
  const distancesMs = times.map(time => Math.abs(time - timeMs))
  return distancesMs.indexOf(Math.min(...distancesMs))
}
