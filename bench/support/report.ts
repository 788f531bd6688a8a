/** The parts of a report, whatever it is written as. */

import type { Column } from './table.ts'

export interface ReportTable {
  readonly kind: 'table'
  readonly title: string
  readonly columns: readonly Column[]
  /** A cell for each column. */
  readonly rows: readonly (readonly string[])[]
}

export interface ReportBars {
  readonly kind: 'bars'
  readonly title: string
  readonly unit: string
  readonly bars: readonly {
    readonly label: string
    readonly median: number
    readonly min: number
    readonly max: number
    /** Bars of one group stand together under its name. */
    readonly group?: string
  }[]
  readonly isLog?: boolean
}

export interface ReportLines {
  readonly kind: 'lines'
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly isLogX?: boolean
  readonly isLogY?: boolean
  readonly series: readonly {
    readonly name: string
    readonly points: readonly {
      readonly x: number
      readonly y: number
      readonly min?: number
      readonly max?: number
    }[]
  }[]
}

export interface ReportText {
  readonly kind: 'text'
  /** An empty line starts a new paragraph. */
  readonly text: string
}

export type ReportPart = ReportTable | ReportBars | ReportLines | ReportText

export interface Report {
  readonly title: string
  readonly intro: string
  readonly parts: readonly ReportPart[]
}
