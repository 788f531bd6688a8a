/** Figures of repeated measurements: a row for each measurement, a column for each of its figures. */

import { spreadOf } from '../../harness/measure.ts'
import type { Run } from '../run.ts'

export class Rows {
  readonly #rows = new Map<string, Map<string, number[]>>()

  /** Adds the results of one repetition. Names of columns end with their units. */
  add(row: string, values: Readonly<Record<string, number>>): void {
    const columns = this.#rows.get(row) ?? new Map<string, number[]>()
    this.#rows.set(row, columns)
    for (const [column, value] of Object.entries(values)) {
      const list = columns.get(column) ?? []
      columns.set(column, list)
      list.push(value)
    }
  }

  median(row: string, column: string): number {
    return spreadOf(this.#values(row, column)).median
  }

  max(row: string, column: string): number {
    return spreadOf(this.#values(row, column)).max
  }

  /** Reports each row as a figure: its columns as median (min-max), or as the value if there is only one. */
  tell(run: Run): void {
    for (const [row, columns] of this.#rows) {
      const texts = [...columns].map(([column, values]) => `${column} ${spreadText(values)}`)
      run.figure(row, texts.join(' | '))
    }
  }

  #values(row: string, column: string): readonly number[] {
    return this.#rows.get(row)?.get(column) ?? []
  }
}

export function spreadText(values: readonly number[]): string {
  const { median, min, max } = spreadOf(values)
  return min === max ? text(median) : `${text(median)} (${text(min)}-${text(max)})`
}

function text(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toPrecision(3)
}
