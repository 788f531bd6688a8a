/** The reports as tables for people: columns and rows, what they mean, and the whole as text or as a web page. */

import { availableParallelism } from 'node:os'
import type { Report, ReportLines, ReportPart, ReportTable } from '../support/report.ts'
import type { Spread } from '../support/statistics.ts'
import { type Column, renderTable, spreadText } from '../support/table.ts'
import { type Options, PARTS, type Part } from './options.ts'
import { FLAT_WITHIN, type PointReport, type SeriesReport } from './report.ts'

interface Words {
  readonly title: string
  /** Of the column that tells the points of a series apart. */
  readonly size: string
  /** What points are compared with. */
  readonly against: string
  readonly legend: string
}

const WORDS: Readonly<Record<Part, Words>> = {
  workers: {
    title: 'Workers',
    size: 'workers',
    against: 'x one',
    legend: `Beside the workers there is a primary, which only supervises. With as many workers as cores the load
generator has no core left: then requests/s cannot scale, while CPU time per request can be compared.`,
  },
  cluster: {
    title: 'From one Redis to a Cluster of three primaries',
    size: 'Redis servers',
    against: 'x single',
    legend: `One worker. Redis: the sum of all servers. All of them, the worker and the load generator share this machine, so requests/s do
not show what a Cluster of machines could do; CPU time per request can be compared.`,
  },
  addresses: {
    title: 'Addresses in the store',
    size: 'addresses',
    against: 'x fewest',
    legend: `Addresses: active in the store before the load, which brings the same number of its own at every point, scattered among
them; the addresses filled in first were still there after the measuring.`,
  },
  sites: {
    title: 'Sites',
    size: 'sites',
    against: 'x one',
    legend: `Requests name the sites (or their API keys) in turn. Each was named once before the measuring, so that the worker had read it
from the store: cold requests/s is the rate of those first ones, at a worker that has just started.`,
  },
}

function partTable(part: Part, all: readonly SeriesReport[]): ReportTable {
  const { title, size, against } = WORDS[part]
  const left = (name: string): Column => ({ title: name, align: 'left' })
  const right = (name: string): Column => ({ title: name, align: 'right' })
  const extra = EXTRA[part]
  const columns = [
    left('endpoint'),
    left('store'),
    ...[size, 'worker us/request', against, 'Redis us/request', against].map(right),
    ...['requests/s', against, 'busy', ...extra.map(({ name }) => name)].map(right),
    left('notes'),
  ]
  const rows = all.flatMap(({ endpoint, points }) =>
    points.map(point => [
      endpoint,
      point.server,
      point.size.toLocaleString('en'),
      text(point.figures.workerUs, 2),
      text(point.ratios?.workerUs, 2),
      text(point.figures.redisUs, 2),
      text(point.ratios?.redisUs, 2),
      text(point.figures.requestsPerSecond, 0),
      text(point.ratios?.requestsPerSecond, 2),
      percent(point.figures.workerBusy),
      ...extra.map(({ cell }) => cell(point)),
      point.notes.join('; '),
    ]),
  )
  return { kind: 'table', title, columns, rows }
}

interface Extra {
  readonly name: string
  cell(point: PointReport): string
}

const REDIS_EXTRA: readonly Extra[] = [
  { name: 'requests/script call', cell: ({ figures }) => text(figures.redisBatch, 1) },
  { name: 'busiest Redis', cell: ({ figures }) => percent(figures.redisBusy) },
]

/** Columns that one part alone has. */
const EXTRA: Readonly<Record<Part, readonly Extra[]>> = {
  workers: [
    { name: 'primary us/request', cell: ({ figures }) => text(figures.primaryUs, 2) },
    REDIS_EXTRA[0]!,
  ],
  cluster: REDIS_EXTRA,
  addresses: [{ name: 'filled in s', cell: ({ figures }) => text(figures.fillSeconds, 1) }],
  sites: [{ name: 'cold requests/s', cell: ({ figures }) => text(figures.coldPerSecond, 0) }],
}

function text(spread: Spread | undefined, digits: number): string {
  return spread === undefined ? '-' : spreadText(spread, digits)
}

function percent(share: Spread | undefined): string {
  return share === undefined ? '-' : `${(share.median * 100).toFixed(0)}%`
}

/** A line for each process of each series. */
function verdictLines(part: Part, all: readonly SeriesReport[]): string[] {
  const { against } = WORDS[part]
  return all.flatMap(({ endpoint, points, verdicts }) =>
    verdicts.map(({ process, worstRatio, isFlat }) => {
      const flat = `flat within ${FLAT_WITHIN * 100} %: ${isFlat ? 'yes' : 'no'}`
      return `${endpoint} on ${points[0]!.server}, ${process} CPU: ${flat} (at worst ${worstRatio.toFixed(2)} ${against})`
    }),
  )
}

function legend({ repeat, seconds, warmUpSeconds, connections }: Options): string {
  return `Median (range) of ${repeat} x ${seconds} s after ${warmUpSeconds} s of the same load, ${connections} connections, ${availableParallelism()} cores, Node.js ${process.version}.
us/request: CPU time, user and system, over all processes of the kind. busy: CPU time of a worker over measured time.
Ratios are taken within a turn over the points of a series, against its first.`
}

interface Section {
  readonly table: ReportTable
  readonly legend: string
  readonly verdicts: readonly string[]
  readonly plot: ReportLines
}

function sectionsOf(all: readonly SeriesReport[]): Section[] {
  return PARTS.flatMap(part => {
    const ofPart = all.filter(series => series.part === part)
    if (ofPart.length === 0) return []
    return [
      {
        table: partTable(part, ofPart),
        legend: WORDS[part].legend,
        verdicts: verdictLines(part, ofPart),
        plot: plotOf(part, ofPart),
      },
    ]
  })
}

export function tablesText(all: readonly SeriesReport[], options: Options): string {
  const sections = sectionsOf(all).map(({ table, legend, verdicts }) =>
    [table.title, renderTable(table.columns, table.rows), verdicts.join('\n'), legend]
      .filter(paragraph => paragraph !== '')
      .join('\n\n'),
  )
  return [...sections, legend(options)].join('\n\n\n')
}

export function pageOf(all: readonly SeriesReport[], options: Options): Report {
  return {
    title: 'How powgate scales',
    intro: legend(options),
    parts: sectionsOf(all).flatMap(({ table, legend, verdicts, plot }): ReportPart[] => [
      plot,
      table,
      { kind: 'text', text: [...verdicts, legend].join('\n') },
    ]),
  }
}

/** CPU time against size, of workers and of Redis. */
function plotOf(part: Part, all: readonly SeriesReport[]): ReportLines {
  const { title, size } = WORDS[part]
  const series = all.flatMap(({ endpoint, points }) =>
    (['workerUs', 'redisUs'] as const).flatMap(name => {
      const known = points.flatMap(({ size: x, figures: { [name]: spread } }) =>
        spread === undefined ? [] : [{ x, y: spread.median, min: spread.min, max: spread.max }],
      )
      const store = part === 'cluster' ? '' : ` on ${points[0]!.server}`
      const process = name === 'workerUs' ? 'worker' : 'Redis'
      return known.length === 0 ? [] : [{ name: `${endpoint}${store}, ${process}`, points: known }]
    }),
  )
  const isLogX = part === 'addresses' || part === 'sites'
  return {
    kind: 'lines',
    title: `${title}: CPU time per request`,
    xTitle: size,
    yTitle: 'us',
    isLogX,
    series,
  }
}
