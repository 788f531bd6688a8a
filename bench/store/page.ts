/** The report as a page: tables as they are printed, and pictures of what is compared. */

import type { Report, ReportBars, ReportLines, ReportPart } from '../support/report.ts'
import type { FigureName, Row } from './figures.ts'
import { aimText, legendOf, type StoreReport } from './report.ts'
import { sectionsOf } from './sections.ts'

export function pageOf(report: StoreReport): Report {
  const { rows } = report
  const pictures = [
    costBars(rows),
    memoryBars(rows),
    linesOf(rows, 'redis', 'batches', 'redisUs', 'Redis CPU by batch size'),
    linesOf(rows, 'embedded', 'batches', 'clientUs', 'LMDB: CPU time by batch size'),
    linesOf(rows, 'redis', 'growth', 'redisUs', 'Redis: CPU time by active addresses'),
    linesOf(rows, 'embedded', 'growth', 'clientUs', 'LMDB: CPU time by active addresses'),
  ]
  return {
    title: 'powgate: the stores',
    intro: legendOf(report).join(' '),
    parts: [
      ...report.aims.map((aim): ReportPart => ({ kind: 'text', text: aimText(aim) })),
      ...pictures.filter(picture => picture !== undefined),
      ...sectionsOf(rows).map((section): ReportPart => ({ kind: 'table', ...section })),
    ],
  }
}

function costBars(rows: readonly Row[]): ReportBars | undefined {
  const bars = rows
    .filter(({ part }) => part === 'costs')
    .flatMap(({ of, store, figures }) => {
      const spread = store === 'redis' ? figures.redisUs : figures.clientUs
      const group = store === 'redis' ? 'Redis: its process' : 'LMDB: the process that asks'
      return spread === undefined ? [] : [{ label: of, ...spread, group }]
    })
  if (bars.length === 0) return undefined
  return { kind: 'bars', title: 'CPU time of an operation', unit: 'us', bars }
}

function memoryBars(rows: readonly Row[]): ReportBars | undefined {
  const bars = rows
    .filter(({ part }) => part === 'memory')
    .map(({ of, store, figures }) => ({
      label: of,
      ...figures.bytesPerAddress!,
      group: store === 'redis' ? 'Redis: memory' : 'LMDB: files',
    }))
  if (bars.length === 0) return undefined
  return { kind: 'bars', title: 'Bytes of an address', unit: 'bytes', bars }
}

/** A line for each operation, over batch sizes or addresses. */
function linesOf(
  rows: readonly Row[],
  store: Row['store'],
  part: 'batches' | 'growth',
  name: FigureName,
  title: string,
): ReportLines | undefined {
  const shown = rows.filter(
    row => row.store === store && row.part === part && row.figures[name] !== undefined,
  )
  if (shown.length === 0) return undefined
  const series = [...new Set(shown.map(({ of }) => of))].map(operation => ({
    name: operation,
    points: shown
      .filter(({ of }) => of === operation)
      .map(({ batch, addresses, figures }) => {
        const { median, min, max } = figures[name]!
        return { x: part === 'growth' ? addresses! : batch!, y: median, min, max }
      }),
  }))
  const xTitle = part === 'growth' ? 'active addresses' : 'operations in a turn'
  return { kind: 'lines', title, xTitle, yTitle: 'us for each operation', isLogX: true, series }
}
