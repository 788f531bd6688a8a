/** The figures as a page. */

import type { Report, ReportBars, ReportPart } from '../support/report.ts'
import type { Spread } from '../support/statistics.ts'
import type { Measured, MicroReport, Row } from './report.ts'
import { aimLine, legend, peerTable, stepTable, type Table } from './tables.ts'

export function pageOf(report: MicroReport): Report {
  const { rows, aims } = report
  const peers = peerTable(rows)
  const parts: ReportPart[] = [
    ...(aims.length === 0 ? [] : [{ kind: 'text', text: aims.map(aimLine).join('\n') } as const]),
    stepBars('Time of each step', 'ns', true, rows, ({ ns }) => ns),
    stepBars('Garbage of each step', 'bytes', false, rows, ({ garbageBytes }) => garbageBytes),
    tablePart(stepTable(rows), 'Steps', [
      'step',
      'ns',
      'per second',
      'garbage, bytes',
      'plain: ns',
      'times faster',
    ]),
    tablePart(stepTable(rows), 'The plain ways', ['step', 'notes']),
    ...(peers === undefined ? [] : [peerBars(rows), ...peerTables(peers)]),
  ]
  return { title: 'powgate: micro benches', intro: legend(report), parts }
}

function peerTables(table: Table): ReportPart[] {
  const figures = ['request', 'by', 'ns', 'CPU ns', 'powgate: times faster', 'times less CPU']
  return [
    tablePart(table, table.title, figures),
    tablePart(table, 'What the packages do', ['request', 'by', 'notes']),
  ]
}

/** A page is narrower than a terminal: some columns of a table, and no rows without a note where notes are all. */
function tablePart({ columns, rows }: Table, title: string, titles: readonly string[]): ReportPart {
  const indexes = titles.map(name => columns.findIndex(column => column.title === name))
  const isNotes = titles.at(-1) === 'notes'
  const kept = rows.map(row => indexes.map(index => row[index]!)).filter(row => !isNotes || row.at(-1) !== '')
  return { kind: 'table', title, columns: indexes.map(index => columns[index]!), rows: kept }
}

function stepBars(
  title: string,
  unit: string,
  isLog: boolean,
  rows: readonly Row[],
  figure: (measured: Measured) => Spread,
): ReportBars {
  const bars = rows.flatMap(({ name, ours, naive }) => [
    { label: 'powgate', group: name, ...figure(ours) },
    ...(naive === undefined ? [] : [{ label: naive.label, group: name, ...figure(naive) }]),
  ])
  return { kind: 'bars', title, unit, bars, isLog }
}

function peerBars(rows: readonly Row[]): ReportBars {
  const bars = rows
    .filter(({ peers }) => peers.length > 0)
    .flatMap(({ name, ours, peers }) => [
      { label: 'powgate', group: name, ...ours.cpuNs },
      ...peers.map(({ label, cpuNs }) => ({ label, group: name, ...cpuNs })),
    ])
  return { kind: 'bars', title: 'CPU time of whole requests', unit: 'ns', bars, isLog: true }
}
