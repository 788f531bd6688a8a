/** A list of the most frequent events, as rows with a bar, a share and a small curve over time. */

import type { Tally } from '../../metrics/history-view.ts'
import { h, setText, svg } from './dom.ts'
import { exact, percent } from './format.ts'
import type { TimeFrame } from './line-plot.ts'

const ROWS_SHOWN = 7
const SPARK_WIDTH = 88
const SPARK_HEIGHT = 22

interface Row {
  readonly element: HTMLElement
  readonly title: HTMLElement
  readonly text: HTMLElement
  readonly count: HTMLElement
  readonly bar: SVGElement
  readonly spark: SVGElement
}

export class BarList {
  readonly element: HTMLElement
  readonly #explain: (name: string) => { title: string; text: string }
  readonly #choose: ((name: string) => void) | undefined
  readonly #empty: HTMLElement
  readonly #list = h('ol', { class: 'bars' })
  readonly #rest = h('ol', { class: 'bars' })
  readonly #restSummary = h('summary')
  readonly #restDetails = h('details', { hidden: true }, this.#restSummary, this.#rest)
  readonly #rows = new Map<string, Row>()

  /**
   * @param empty text for a list without rows
   * @param choose called with a name when its title, then a button, is clicked
   */
  constructor(
    empty: string,
    explain: (name: string) => { title: string; text: string },
    choose?: (name: string) => void,
  ) {
    this.#explain = explain
    this.#choose = choose
    this.#empty = h('p', { class: 'empty' }, empty)
    this.element = h('div', {}, this.#empty, this.#list, this.#restDetails)
  }

  /** @param whole the number of which the rows show their shares */
  update(tallies: readonly Tally[], whole: number, frame: TimeFrame): void {
    const most = Math.max(1, ...tallies.map(({ total }) => total))
    const rows = tallies.map(tally => {
      const row = this.#rowOf(tally.name)
      const share = whole > 0 ? ` · ${percent(Math.min(1, tally.total / whole))}` : ''
      const { title, text } = this.#explain(tally.name)
      setText(row.title, title)
      setText(row.text, text)
      setText(row.count, `${exact(tally.total)}${share}`)
      row.bar.setAttribute('width', `${(100 * tally.total) / most}%`)
      row.spark.setAttribute('d', sparkline(tally.counts, frame))
      return row.element
    })
    this.#empty.hidden = rows.length > 0
    place(this.#list, rows.slice(0, ROWS_SHOWN))
    place(this.#rest, rows.slice(ROWS_SHOWN))
    this.#restDetails.hidden = rows.length <= ROWS_SHOWN
    setText(this.#restSummary, `${rows.length - ROWS_SHOWN} more`)
  }

  #rowOf(name: string): Row {
    const known = this.#rows.get(name)
    if (known !== undefined) return known
    const choose = this.#choose
    const title =
      choose === undefined ? h('span', { class: 'title' }) : h('button', { class: 'title', type: 'button' })
    title.addEventListener('click', () => choose?.(name))
    const text = h('span', { class: 'text' })
    const count = h('span', { class: 'count' })
    const bar = svg('rect', { class: 'column', height: 5, rx: 2 })
    const spark = svg('path', { class: 'spark' })
    const element = h(
      'li',
      {},
      title,
      count,
      svg('svg', { class: 'track', height: 5, 'aria-hidden': 'true' }, bar),
      text,
      svg('svg', { class: 'when', width: SPARK_WIDTH, height: SPARK_HEIGHT, 'aria-hidden': 'true' }, spark),
    )
    const row = { element, title, text, count, bar, spark }
    this.#rows.set(name, row)
    return row
  }
}

/** Puts the rows into a list, and moves only those that are not yet in place. */
function place(list: HTMLElement, rows: readonly HTMLElement[]): void {
  for (const [index, row] of rows.entries()) {
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null)
  }
  while (list.children.length > rows.length) list.lastElementChild!.remove()
}

/** Path of an area whose height shows the counts over time. */
function sparkline(counts: readonly number[], { times, fromMs, toMs }: TimeFrame): string {
  const most = Math.max(1, ...counts)
  const base = SPARK_HEIGHT - 1
  const points = times.flatMap((timeMs, index) => {
    if (timeMs < fromMs) return []
    const x = ((timeMs - fromMs) / (toMs - fromMs)) * SPARK_WIDTH
    return [[x, base - ((counts[index] ?? 0) / most) * (base - 2)] as const]
  })
  if (points.length === 0) return ''
  const [first, last] = [points[0]!, points.at(-1)!]
  // The area of a single step would have no width.
  const start = Math.max(0, Math.min(first[0], last[0] - 3))
  const line = points.map(([x, y]) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join('')
  return `M${start.toFixed(1)} ${base}${points.length === 1 ? `L${start.toFixed(1)} ${first[1].toFixed(1)}` : ''}${line}L${last[0].toFixed(1)} ${base}Z`
}
