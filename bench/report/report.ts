/** The parts of a report, whatever it is published as. */

import type { Column } from './table.ts'

export interface ReportTable {
  readonly kind: 'table'
  readonly title: string
  readonly columns: readonly Column[]
  /** A cell for each column. */
  readonly rows: readonly (readonly string[])[]
}

/** A plot, only on the page. */
export interface ReportLines {
  readonly kind: 'lines'
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly series: readonly {
    readonly name: string
    readonly points: readonly { readonly x: number; readonly y: number }[]
  }[]
}

export interface ReportText {
  readonly kind: 'text'
  /** An empty line starts a new paragraph. */
  readonly text: string
}

export type ReportPart = ReportTable | ReportLines | ReportText

export interface Report {
  readonly title: string
  /** What was measured and how the figures are to be read: on a page first, on a terminal last. */
  readonly intro: string
  readonly parts: readonly ReportPart[]
}
