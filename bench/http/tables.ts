/** The reports as tables for people: columns and rows, what they mean, and the whole as text or as a web page. */

import type { Report, ReportPart, ReportTable } from '../support/report.ts'
import type { Spread } from '../support/statistics.ts'
import { type Column, renderTable, spreadText } from '../support/table.ts'
import { BARE_US, BUDGETS } from './budgets.ts'
import type { Options } from './options.ts'
import { BUSY_MIN, type CaseReport, type LatencyReport } from './report.ts'

const left = (title: string): Column => ({ title, align: 'left' })
const right = (title: string): Column => ({ title, align: 'right' })

function loadTable(cases: readonly CaseReport[]): ReportTable {
  const numbers = [
    'CPU us/request',
    'x bare',
    'budget',
    'Redis us/request',
    'budget',
    'requests/s',
    'busy',
    'p50 ms',
    'p99 ms',
  ]
  const columns = [left('endpoint'), left('server'), ...[...numbers, 'worker MiB'].map(right), left('notes')]
  return { kind: 'table', title: 'At full load', columns, rows: cases.map(one => loadRow(one, cases)) }
}

/** The budgets of the service, and of Redis on a core as fast as this one; empty where there is none. */
function budgetsOf({ endpoint, server, figures }: CaseReport, cases: readonly CaseReport[]): string[] {
  if (server === 'bare') return ['', '']
  const budget = BUDGETS[endpoint]
  const bare = cases.find(one => one.endpoint === endpoint && one.server === 'bare')?.figures.cpuUs
  const hasRedis = server === 'redis' && bare !== undefined
  const ofRedis = hasRedis ? budgetText(figures.redisUs, (budget.redisUs * bare.median) / BARE_US, 2) : ''
  return [budgetText(figures.timesBare, budget[server], 1), ofRedis]
}

function budgetText(spent: Spread | undefined, budget: number, digits: number): string {
  const isOver = spent !== undefined && spent.median > budget
  return `${isOver ? 'OVER ' : ''}${budget.toFixed(digits)}`
}

function text(spread: Spread | undefined, digits: number): string {
  return spread === undefined ? '-' : spreadText(spread, digits)
}

function percent(share: Spread | undefined): string {
  return share === undefined ? '-' : `${(share.median * 100).toFixed(0)}%`
}

function loadRow(report: CaseReport, cases: readonly CaseReport[]): string[] {
  const { endpoint, server, notes, figures } = report
  const [budget, redisBudget] = budgetsOf(report, cases)
  const { workerMibBefore: before, workerMibAfter: after } = figures
  return [
    endpoint,
    server,
    text(figures.cpuUs, 2),
    text(figures.timesBare, 2),
    budget!,
    text(figures.redisUs, 2),
    redisBudget!,
    text(figures.requestsPerSecond, 0),
    percent(figures.workerBusy),
    text(figures.latencyP50Ms, 2),
    text(figures.latencyP99Ms, 2),
    before === undefined ? '-' : `${before.median.toFixed(0)} -> ${after!.median.toFixed(0)}`,
    notes.join('; '),
  ]
}

/** undefined if none of the cases has Redis. */
function redisTable(cases: readonly CaseReport[]): ReportTable | undefined {
  const withRedis = cases.filter(({ figures }) => figures.redisUs !== undefined)
  if (withRedis.length === 0) return undefined
  const numbers = ['us/request', 'requests/script call', 'commands/request', 'bytes in', 'bytes out', 'MiB']
  const rows = withRedis.map(({ endpoint, figures }) => {
    const { redisMibBefore: before, redisMibAfter: after } = figures
    return [
      endpoint,
      text(figures.redisUs, 2),
      text(figures.redisBatch, 1),
      text(figures.redisCommands, 2),
      text(figures.redisInBytes, 0),
      text(figures.redisOutBytes, 0),
      `${before!.median.toFixed(0)} -> ${after!.median.toFixed(0)}`,
    ]
  })
  const columns = [left('endpoint'), ...numbers.map(right)]
  return { kind: 'table', title: 'Redis at full load', columns, rows }
}

function latencyTable(latencies: readonly LatencyReport[]): ReportTable {
  const numbers = ['requests/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'max ms', 'own p50 ms', 'own p99 ms', 'busy']
  const rows = latencies.map(({ endpoint, server, notes, figures }) => [
    endpoint,
    server,
    text(figures.ratePerSecond, 0),
    text(figures.latencyP50Ms, 2),
    text(figures.latencyP99Ms, 2),
    text(figures.latencyP999Ms, 2),
    text(figures.latencyMaxMs, 1),
    text(figures.ownDelayP50Ms, 2),
    text(figures.ownDelayP99Ms, 2),
    percent(figures.workerBusy),
    notes.join('; '),
  ])
  const columns = [left('endpoint'), left('server'), ...numbers.map(right), left('notes')]
  return { kind: 'table', title: 'Latency at a fixed rate', columns, rows }
}

function loadLegend({ repeat, seconds, warmUpSeconds, connections, isForwarded, isSeeded }: Options): string {
  const clients = isForwarded ? 'distinct client addresses behind a proxy' : 'one client address'
  const seeds = isForwarded && isSeeded ? ', which have fetched a challenge before they come to /verify' : ''
  return `Median (range) of ${repeat} x ${seconds} s after ${warmUpSeconds} s of the same load, ${connections} connections, ${clients}${seeds}; Node.js ${process.version}.
us/request: CPU time, user and system, of all processes of the server. x bare: taken within a repetition. Redis' budget is
for a core that runs the bare server at ${BARE_US} us, scaled to this one. OVER: the median is above the budget.
busy: CPU time of the worker over measured time; under ${BUSY_MIN * 100}% it is marked.
Latencies here are those of a closed loop: the load waits when the server does. MiB: resident before and after.`
}

const REDIS_LEGEND = `\
requests/script call: how many requests' operations go out together. commands: what the scripts call. bytes: on
Redis' connections, per request.`

function latencyLegend({ rate }: Options): string {
  const which =
    rate === undefined ? 'half of what the slowest server of the endpoint reached just before' : 'given'
  return `Rate: ${which}, the same for all servers of an endpoint. Latency runs from when a request was due, whether or not it could be
sent then, to the last byte of its answer. own: how late the generator was by itself, which sends what is due
every 0.2 ms and whenever an answer comes in; it is part of the latencies, of the bare server's too, which so are the floor
of what can be told here.`
}

interface Section {
  readonly table: ReportTable
  readonly legend: string
}

function sectionsOf(
  cases: readonly CaseReport[],
  latencies: readonly LatencyReport[],
  options: Options,
): Section[] {
  const redis = redisTable(cases)
  return [
    { table: loadTable(cases), legend: loadLegend(options) },
    ...(redis === undefined ? [] : [{ table: redis, legend: REDIS_LEGEND }]),
    ...(latencies.length === 0 ? [] : [{ table: latencyTable(latencies), legend: latencyLegend(options) }]),
  ]
}

export function tablesText(
  cases: readonly CaseReport[],
  latencies: readonly LatencyReport[],
  options: Options,
): string {
  return sectionsOf(cases, latencies, options)
    .map(({ table, legend }) => `${table.title}\n\n${renderTable(table.columns, table.rows)}\n\n${legend}`)
    .join('\n\n\n')
}

export function pageOf(
  cases: readonly CaseReport[],
  latencies: readonly LatencyReport[],
  options: Options,
): Report {
  const sections = sectionsOf(cases, latencies, options)
  return {
    title: 'powgate over HTTP',
    intro:
      'The service on loopback, beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes. Ratios are taken within a repetition; they count, not the absolutes.',
    parts: [...barsOf(cases, latencies), ...sections.flatMap(partsOf)],
  }
}

function partsOf({ table, legend }: Section): ReportPart[] {
  return [table, { kind: 'text', text: legend }]
}

function barsOf(cases: readonly CaseReport[], latencies: readonly LatencyReport[]): ReportPart[] {
  const bar = (endpoint: string, server: string, spread: Spread | undefined) =>
    spread === undefined ? [] : [{ label: server, group: endpoint, ...spread }]
  const cpu = cases.flatMap(({ endpoint, server, figures }) => bar(endpoint, server, figures.cpuUs))
  const redis = cases.flatMap(({ endpoint, server, figures }) => bar(endpoint, server, figures.redisUs))
  const p99 = latencies.flatMap(({ endpoint, server, figures }) =>
    bar(endpoint, server, figures.latencyP99Ms),
  )
  const parts: ReportPart[] = [
    { kind: 'bars', title: 'CPU time of the server per request', unit: 'us', bars: cpu },
    { kind: 'bars', title: 'CPU time of Redis per request', unit: 'us', bars: redis },
    { kind: 'bars', title: 'Latency at a fixed rate, 99%', unit: 'ms', bars: p99, isLog: true },
  ]
  return parts.filter(part => part.kind !== 'bars' || part.bars.length > 0)
}
