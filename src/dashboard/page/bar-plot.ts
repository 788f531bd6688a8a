/** A histogram: columns side by side, one for the values in each bucket. */

import { h, svg } from './dom.ts'
import { exact, percent } from './format.ts'
import { sum } from './sum.ts'
import { textWidth } from './text-width.ts'

const HEIGHT = 150
const TOP = 20
const BOTTOM = 22
const GAP = 3

export class BarPlot {
  readonly element: HTMLElement
  readonly #label: string
  readonly #buckets: readonly string[]
  readonly #canvas = h('div', { class: 'canvas' })
  readonly #svg = svg('svg', { role: 'img', height: HEIGHT })
  #counts: readonly number[] = []
  #width = 0

  /** @param buckets labels below the columns */
  constructor(label: string, buckets: readonly string[]) {
    this.#label = label
    this.#buckets = buckets
    this.#canvas.append(this.#svg)
    this.element = h('figure', { class: 'plot' }, this.#canvas)
    new ResizeObserver(() => {
      if (this.#canvas.clientWidth !== this.#width) this.#draw()
    }).observe(this.#canvas)
  }

  update(counts: readonly number[]): void {
    this.#counts = counts
    const total = sum(counts)
    const parts = counts.flatMap((count, index) =>
      count === 0 ? [] : [`${this.#buckets[index]}: ${exact(count)} (${percent(count / total)})`],
    )
    this.#svg.setAttribute('aria-label', `${this.#label}. ${parts.join(', ') || 'None yet'}`)
    this.#draw()
  }

  #draw(): void {
    this.#width = this.#canvas.clientWidth
    if (this.#width === 0) return
    this.#svg.setAttribute('width', String(this.#width))
    const base = HEIGHT - BOTTOM
    const total = sum(this.#counts)
    const most = Math.max(1, ...this.#counts)
    const stride = this.#width / this.#buckets.length
    const columns = this.#buckets.flatMap((bucket, index) => {
      const count = this.#counts[index] ?? 0
      const height = count === 0 ? 0 : Math.max(2, (count / most) * (base - TOP))
      const middle = (index + 0.5) * stride
      const label = wholePercent(count, total)
      // The outermost labels may be wider than their columns.
      const room = textWidth(label) / 2 + 2
      const labelX = Math.max(room, Math.min(this.#width - room, middle))
      const column = { x: index * stride + GAP, y: base - height, width: stride - 2 * GAP, height }
      const share = svg('text', { class: 'label middle', x: labelX, y: base - height - 5 }, label)
      return [
        svg('rect', { class: 'column', ...column }),
        ...(count === 0 ? [] : [share]),
        svg('text', { class: 'tick middle', x: middle, y: HEIGHT - 6 }, bucket),
      ]
    })
    const line = svg('line', { class: 'base', x1: 0, x2: this.#width, y1: base, y2: base })
    this.#svg.replaceChildren(...columns, line)
  }
}

function wholePercent(count: number, total: number): string {
  const share = (100 * count) / total
  return share < 1 ? '<1%' : `${share > 99 && count < total ? '>99' : Math.round(share)}%`
}
