/** Bars: rankings, a histogram, and the funnel from challenges to tokens. */

import { sum, type Tally } from '../data.ts'
import type { TrafficColumns } from '../history.ts'
import { h, setText, svg, textWidth } from './dom.ts'
import { exact, percent } from './format.ts'
import type { TimeFrame } from './line-plot.ts'

const ROWS_SHOWN = 7
const SPARK_WIDTH = 88
const SPARK_HEIGHT = 22

/** A ranking, whose rows have a bar, a share and a small curve. */
export class BarList {
  readonly element: HTMLElement
  readonly #choose: ((name: string) => void) | undefined
  readonly #empty: HTMLElement
  readonly #list = h('ol', { class: 'bars' })
  readonly #rest = h('ol', { class: 'bars' })
  readonly #restSummary = h('summary')
  readonly #restDetails = h('details', { hidden: true }, this.#restSummary, this.#rest)
  readonly #rows = new Map<string, ReturnType<typeof makeRow>>()

  /**
   * @param empty text for a list without rows
   * @param choose makes titles buttons
   */
  constructor(empty: string, choose?: (name: string) => void) {
    this.#choose = choose
    this.#empty = h('p', { class: 'empty' }, empty)
    this.element = h('div', {}, this.#empty, this.#list, this.#restDetails)
  }

  /** @param whole the number that shares refer to */
  update(
    tallies: readonly Tally[],
    whole: number,
    explain: (name: string) => { title: string; text: string },
    frame: TimeFrame,
  ): void {
    const max = Math.max(1, ...tallies.map(({ total }) => total))
    const choose = this.#choose
    const rows = tallies.map(tally => {
      let row = this.#rows.get(tally.name)
      if (row === undefined) this.#rows.set(tally.name, (row = makeRow(choose && (() => choose(tally.name)))))
      const share = whole > 0 ? ` · ${percent(Math.min(1, tally.total / whole))}` : ''
      const { title, text } = explain(tally.name)
      setText(row.title, title)
      setText(row.text, text)
      setText(row.count, `${exact(tally.total)}${share}`)
      row.bar.setAttribute('width', `${(100 * tally.total) / max}%`)
      row.spark.setAttribute('d', sparkline(tally.counts, frame))
      return row.element
    })
    this.#empty.hidden = rows.length > 0
    setRows(this.#list, rows.slice(0, ROWS_SHOWN))
    setRows(this.#rest, rows.slice(ROWS_SHOWN))
    this.#restDetails.hidden = rows.length <= ROWS_SHOWN
    setText(this.#restSummary, `${rows.length - ROWS_SHOWN} more`)
  }
}

function makeRow(choose?: () => void) {
  const title =
    choose === undefined ? h('span', { class: 'title' }) : h('button', { class: 'title', type: 'button' })
  if (choose !== undefined) title.addEventListener('click', choose)
  const text = h('span', { class: 'text' })
  const count = h('span', { class: 'count' })
  const bar = svg('rect', { class: 'column', height: 5, rx: 2 })
  const spark = svg('path', { class: 'spark' })
  const track = svg('svg', { class: 'track', height: 5, 'aria-hidden': 'true' }, bar)
  const size = { width: SPARK_WIDTH, height: SPARK_HEIGHT }
  const when = svg('svg', { class: 'when', ...size, 'aria-hidden': 'true' }, spark)
  return { title, text, count, bar, spark, element: h('li', {}, title, count, track, text, when) }
}

/** Moves only rows that are out of place: a row that moves would lose the focus. */
function setRows(list: HTMLElement, rows: readonly HTMLElement[]): void {
  for (const [index, row] of rows.entries()) {
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null)
  }
  while (list.children.length > rows.length) list.lastElementChild!.remove()
}

/** The path of a small filled curve. */
function sparkline(counts: readonly number[], { times, fromMs, toMs }: TimeFrame): string {
  const max = Math.max(1, ...counts)
  const base = SPARK_HEIGHT - 1
  const points = times.flatMap((timeMs, index) => {
    if (timeMs < fromMs) return []
    const x = ((timeMs - fromMs) / (toMs - fromMs)) * SPARK_WIDTH
    return [[x, base - ((counts[index] ?? 0) / max) * (base - 2)] as const]
  })
  if (points.length === 0) return ''
  const [first, last] = [points[0]!, points.at(-1)!]
  // An area of a single step would have no width.
  const start = Math.max(0, Math.min(first[0], last[0] - 3))
  const line = points.map(([x, y]) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join('')
  return `M${start.toFixed(1)} ${base}${points.length === 1 ? `L${start.toFixed(1)} ${first[1].toFixed(1)}` : ''}${line}L${last[0].toFixed(1)} ${base}Z`
}

const HEIGHT = 150
const TOP = 20
const BOTTOM = 22
const GAP = 3

/** A histogram: a column for each bucket, with its share above. */
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
    const max = Math.max(1, ...this.#counts)
    const stride = this.#width / this.#buckets.length
    const columns = this.#buckets.flatMap((bucket, index) => {
      const count = this.#counts[index] ?? 0
      const height = count === 0 ? 0 : Math.max(2, (count / max) * (base - TOP))
      const middle = (index + 0.5) * stride
      const label = wholePercent(count, total)
      // The outermost labels may be wider than their columns.
      const halfWidth = textWidth(label) / 2 + 2
      const labelX = Math.max(halfWidth, Math.min(this.#width - halfWidth, middle))
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

const STAGES = [
  ['Challenges', 'issued'],
  ['Solutions', 'of challenges'],
  ['Passed', 'of solutions'],
  ['Redeemed', 'of passed'],
] as const

/** Four numbers in a row: challenges, solutions, passed and redeemed, each with its share of the one before. */
export class Funnel {
  readonly element: HTMLElement
  readonly #stages = STAGES.map(([name]) => {
    const count = h('b')
    const share = h('span', { class: 'share' })
    const bar = svg('rect', { class: 'column', height: 8, rx: 2 })
    const track = svg('svg', { class: 'track', height: 8, 'aria-hidden': 'true' }, bar)
    const label = h('span', { class: 'stage' }, `${name} `, share)
    return { count, share, bar, element: h('li', {}, label, count, track) }
  })

  constructor() {
    this.element = h('ol', { class: 'funnel' }, ...this.#stages.map(({ element }) => element))
  }

  update({ challenges, passed, failed, redeemed }: TrafficColumns): void {
    const solved = sum(passed) + sum(failed)
    const counts = [sum(challenges), solved, sum(passed), sum(redeemed)]
    const max = Math.max(1, ...counts)
    for (const [index, { count, share, bar }] of this.#stages.entries()) {
      const value = counts[index]!
      const before = counts[index - 1]
      // A stage may exceed the one before, whose requests may be older than the range.
      const isShare = before !== undefined && before > 0 && value <= before
      setText(count, exact(value))
      const note = STAGES[index]![1]
      setText(share, index === 0 ? note : isShare ? `${percent(value / before)} ${note}` : '')
      bar.setAttribute('width', `${(100 * value) / max}%`)
    }
  }
}
