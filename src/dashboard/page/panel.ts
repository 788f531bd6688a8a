/** A section: heading, plots, and their numbers as a table. */

import type { Gaps } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { h } from './dom.ts'
import { clockSeconds, moment, orDash } from './format.ts'
import type { TimeFrame } from './line-plot.ts'

export interface PagePart {
  readonly element: HTMLElement
  update(data: DashboardData, frame: TimeFrame): void
}

interface NumberTable {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export interface PanelSpec {
  readonly title: string
  /** Names what is plotted, with its unit. */
  readonly about: string
  /** Shows which time the numbers at the pointer are of; left out if each plot shows its own. */
  readonly time?: HTMLElement
  readonly isWide?: boolean
  /** True if the numbers are of all sites even if one site is chosen. The panel then says so. */
  readonly coversAllSites?: boolean
  /** False if the content shows its numbers as text. */
  readonly hasTable?: boolean
}

export class Panel {
  readonly element: HTMLElement
  readonly #title: string
  readonly #allSites = h('span', { class: 'tag', hidden: true }, 'all sites')
  readonly #coversAllSites: boolean
  readonly #holder = h('div', { class: 'scroll' })
  readonly #details: HTMLDetailsElement | undefined
  #table: (() => NumberTable) | undefined

  constructor(spec: PanelSpec, content: readonly HTMLElement[]) {
    const { title, about, time, isWide = false, coversAllSites = false, hasTable = true } = spec
    this.#title = title
    this.#coversAllSites = coversAllSites
    const heading = h('div', { class: 'heading' }, h('h3', {}, title), this.#allSites, h('p', {}, about))
    if (time !== undefined) heading.append(time)
    this.element = h('section', { class: isWide ? 'panel wide' : 'panel' }, heading, ...content)
    if (!hasTable) return
    const details = h('details', { class: 'numbers' }, h('summary', {}, 'Numbers'), this.#holder)
    details.addEventListener('toggle', () => this.#fill())
    this.#details = details
    this.element.append(details)
  }

  /** @param table called only while the table is open */
  update(isSiteChosen: boolean, table?: () => NumberTable): void {
    this.#allSites.hidden = !(this.#coversAllSites && isSiteChosen)
    this.#table = table
    this.#fill()
  }

  #fill(): void {
    if (this.#details?.open !== true || this.#table === undefined) return
    const { head, rows } = this.#table()
    const cells = (row: readonly string[]) =>
      row.map((cell, index) => (index === 0 ? h('th', { scope: 'row' }, cell) : h('td', {}, cell)))
    const body = rows.map(row => h('tr', {}, ...cells(row)))
    const headings = h('tr', {}, ...head.map(text => h('th', { scope: 'col' }, text)))
    const caption = h('caption', { class: 'unseen' }, this.#title)
    const { scrollTop } = this.#holder
    this.#holder.replaceChildren(h('table', {}, caption, h('thead', {}, headings), h('tbody', {}, ...body)))
    this.#holder.scrollTop = scrollTop
    // Scrolling content must be reachable by keyboard.
    this.#holder.tabIndex = 0
    this.#holder.setAttribute('role', 'region')
    this.#holder.setAttribute('aria-label', `${this.#title}: numbers`)
  }
}

/** A row per step, the latest first. */
export function stepTable(
  times: readonly number[],
  head: readonly string[],
  columns: readonly Gaps[],
  text: (value: number) => string,
): NumberTable {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 12 * 3_600_000
  const rows = times.map((time, index) => [
    isLong ? moment(time) : clockSeconds(time),
    ...columns.map(column => orDash(column[index], text)),
  ])
  return { head: ['Until', ...head], rows: rows.reverse() }
}
