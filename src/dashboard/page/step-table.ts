/** The numbers of a plot over time, as a table. */

import type { Gaps } from '../../metrics/history-view.ts'
import { clockSeconds, moment } from './format.ts'
import type { NumberTable } from './panel.ts'

/** A row for each step, the latest first. */
export function stepTable(
  times: readonly number[],
  head: readonly string[],
  columns: readonly Gaps[],
  text: (value: number) => string,
): NumberTable {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 12 * 3_600_000
  const rows = times.map((time, index) => [
    isLong ? moment(time) : clockSeconds(time),
    ...columns.map(column => cell(column[index], text)),
  ])
  return { head: ['Until', ...head], rows: rows.reverse() }
}

function cell(value: number | null | undefined, text: (value: number) => string): string {
  return value === null || value === undefined ? '–' : text(value)
}
