/** The report as a page: tables as they are printed, and pictures of what is compared. */

import type { Report as Page, ReportPart } from '../support/report.ts'
import { aimLine, legend, RATE_COLUMNS, type Report, rateCells, SOLVE_COLUMNS, solveCells } from './report.ts'

export function pageOf(report: Report): Page {
  const { rates, solves, aims } = report
  const bars = rates.map(({ label, threads, hashesPerSecond: { median, min, max } }) => ({
    label,
    median: median / 1e6,
    min: min / 1e6,
    max: max / 1e6,
    group: threads === 1 ? 'one thread' : `${threads} threads`,
  }))
  const parts: ReportPart[] = [
    ...aims.map((aim): ReportPart => ({ kind: 'text', text: aimLine(aim) })),
    { kind: 'bars', title: 'Hashes', unit: 'million a second', bars },
    { kind: 'table', title: 'Hashes', columns: RATE_COLUMNS, rows: rates.map(rateCells) },
  ]
  if (solves.length > 0) {
    const seriesOf = (figure: 'median' | 'p95', name: string) => ({
      name,
      points: solves.map(({ difficulty, totalMs }) => ({ x: difficulty, y: totalMs[figure] })),
    })
    parts.push(
      {
        kind: 'lines',
        title: 'From a challenge to its counter',
        xTitle: 'difficulty, bits',
        yTitle: 'ms',
        isLogY: true,
        series: [seriesOf('median', 'median'), seriesOf('p95', '95 %')],
      },
      { kind: 'table', title: 'Solving', columns: SOLVE_COLUMNS, rows: solves.map(solveCells) },
    )
  }
  return { title: 'powgate: the solvers in a browser', intro: legend(report), parts }
}
