/** A section of the page, and the table of numbers that it may have. */

import type { Gaps } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { h } from './dom.ts'
import { clockSeconds, moment, orDash } from './format.ts'
import type { TimeFrame } from './line-plot.ts'

export interface PanelSpec {
  readonly title: string
  /** Names what is shown, with its unit. */
  readonly about: string
  /** Classes of the style sheet: as wide as the page, with rows beside each other. */
  readonly look?: 'wide' | 'wide funnel'
  /** True if the numbers are of all sites even if one site is chosen. The panel then says so. */
  readonly coversAllSites?: boolean
}

export interface Panel {
  readonly element: HTMLElement
  update(data: DashboardData, frame: TimeFrame): void
}

/** @param update shows new numbers in the content */
export function makePanel(
  { title, about, look, coversAllSites = false }: PanelSpec,
  content: readonly HTMLElement[],
  update: Panel['update'],
): Panel {
  const allSites = h('span', { class: 'tag', hidden: true }, 'all sites')
  const heading = h('div', { class: 'heading' }, h('h3', {}, title), allSites, h('p', {}, about))
  return {
    element: h('section', { class: `panel ${look ?? ''}` }, heading, ...content),
    update(data, frame) {
      allSites.hidden = !coversAllSites || data.site === null
      update(data, frame)
    },
  }
}

export interface TableColumn {
  readonly head: string
  readonly values: Gaps
  readonly text: (value: number) => string
}

/** The table of a longer time names the day in each row. */
const WITHOUT_DAY_MS_MAX = 12 * 3_600_000

/** A row per step, the latest first. The viewer unfolds it. */
export class NumberTable {
  readonly element: HTMLDetailsElement
  readonly #holder: HTMLElement
  readonly #title: string
  #times: readonly number[] = []
  #columns: readonly TableColumn[] = []

  constructor(title: string) {
    this.#title = title
    // Scrolling content must be reachable by keyboard.
    const region = { tabindex: 0, role: 'region', 'aria-label': `${title}: numbers` }
    this.#holder = h('div', { class: 'scroll', ...region })
    const summary = h('summary', {}, 'Numbers')
    // A closed table is empty, so that it costs nothing. The keyboard clicks too.
    summary.addEventListener('click', () => this.#fill())
    this.element = h('details', {}, summary, this.#holder)
  }

  update(times: readonly number[], columns: readonly TableColumn[]): void {
    this.#times = times
    this.#columns = columns
    if (this.element.open) this.#fill()
  }

  #fill(): void {
    const [times, columns] = [this.#times, this.#columns]
    const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > WITHOUT_DAY_MS_MAX
    const rows = times.map((timeMs, step) => {
      const cells = columns.map(({ values, text }) => h('td', {}, orDash(values[step], text)))
      return h('tr', {}, h('th', { scope: 'row' }, isLong ? moment(timeMs) : clockSeconds(timeMs)), ...cells)
    })
    const head = ['Until', ...columns.map(({ head }) => head)].map(text => h('th', { scope: 'col' }, text))
    const body = h('tbody', {}, ...rows.reverse())
    const { scrollTop } = this.#holder
    this.#holder.replaceChildren(
      h('table', { 'aria-label': this.#title }, h('thead', {}, h('tr', {}, ...head)), body),
    )
    this.#holder.scrollTop = scrollTop
  }
}
