/** A list whose rows have a title, a count, a bar, a text, and small columns for the counts in each step. */

import { h, setText, svg } from './dom.ts'
import { exact } from './format.ts'
import type { TimeFrame } from './line-plot.ts'

export interface BarRow {
  /** The same in each update, so that the row keeps the focus. */
  readonly key: string
  readonly title: string
  readonly text: string
  readonly total: number
  /** Stands behind the total; may be empty. */
  readonly share: string
  /** Counts in each step; empty if not known. */
  readonly counts: readonly number[]
}

const SPARK_WIDTH = 88
const SPARK_HEIGHT = 22

export class BarList {
  readonly element: HTMLElement
  readonly #choose: ((key: string) => void) | undefined
  readonly #empty: HTMLElement
  readonly #list = h('ol', { class: 'bars' })
  readonly #rows = new Map<string, ReturnType<typeof makeRow>>()

  /**
   * @param empty text for a list without rows
   * @param choose called with a row's key; titles are buttons then
   */
  constructor(empty: string, choose?: (key: string) => void) {
    this.#choose = choose
    this.#empty = h('p', { class: 'empty' }, empty)
    this.element = h('div', {}, this.#empty, this.#list)
  }

  update(rows: readonly BarRow[], frame: TimeFrame): void {
    const max = Math.max(1, ...rows.map(({ total }) => total))
    const choose = this.#choose
    const elements = rows.map(({ key, title, text, total, share, counts }) => {
      let row = this.#rows.get(key)
      if (row === undefined) this.#rows.set(key, (row = makeRow(choose && (() => choose(key)))))
      setText(row.title, title)
      setText(row.text, text)
      setText(row.total, exact(total))
      setText(row.share, share === '' ? '' : ` · ${share}`)
      row.bar.setAttribute('width', `${(100 * total) / max}%`)
      row.columns.setAttribute('d', columnsOf(counts, frame))
      row.when.toggleAttribute('hidden', counts.length === 0)
      return row.element
    })
    this.#empty.hidden = rows.length > 0
    setRows(this.#list, elements)
  }
}

function makeRow(choose?: () => void) {
  const title =
    choose === undefined ? h('span', { class: 'title' }) : h('button', { class: 'title', type: 'button' })
  if (choose !== undefined) title.addEventListener('click', choose)
  const total = h('b')
  const share = h('span')
  const text = h('span', { class: 'text' })
  const bar = svg('rect', { height: 5, rx: 2 })
  const track = svg('svg', { class: 'track', height: 5, 'aria-hidden': 'true' }, bar)
  const columns = svg('path')
  const size = { width: SPARK_WIDTH, height: SPARK_HEIGHT }
  const when = svg('svg', { class: 'when', ...size, 'aria-hidden': 'true' }, columns)
  const element = h('li', {}, title, h('span', { class: 'count' }, total, share), track, text, when)
  return { title, total, share, text, bar, columns, when, element }
}

/** A row that moves loses the focus, so rows that go are removed first, and then only those that are out of place move. */
function setRows(list: HTMLElement, rows: readonly HTMLElement[]): void {
  for (const row of [...list.children]) if (!rows.includes(row as HTMLElement)) row.remove()
  for (const [index, row] of rows.entries())
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null)
}

/** The path of a vertical line for each step. */
function columnsOf(counts: readonly number[], { times, fromMs, toMs }: TimeFrame): string {
  const max = Math.max(1, ...counts)
  const lines = counts.map((count, step) => {
    const x = ((times[step]! - fromMs) / (toMs - fromMs)) * (SPARK_WIDTH - 1)
    return x < 0 || count === 0
      ? ''
      : `M${x.toFixed(1)} ${SPARK_HEIGHT}V${(SPARK_HEIGHT * (1 - count / max)).toFixed(1)}`
  })
  return lines.join('')
}
