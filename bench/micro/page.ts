/** The figures as a page. */

import type { Report, ReportBars, ReportPart } from '../support/html-report.ts'
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
    tablePart(stepTable(rows)),
    ...(peers === undefined ? [] : [peerBars(rows), tablePart(peers)]),
  ]
  return { title: 'powgate: micro benches', intro: legend(report), parts }
}

function tablePart(table: Table): ReportPart {
  return { kind: 'table', ...table }
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
