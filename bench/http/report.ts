/** The repetitions of each case as medians and ranges, and these as tables beside their budgets. */

import type { Endpoint } from '../../test/harness/load/traffic.ts'
import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  left,
  percent,
  type Report,
  type ReportPart,
  type ReportTable,
  right,
  text,
} from '../report/report.ts'
import type { LatencyRun, Options, Run, RunOf, ServerKind } from './cases.ts'
import type { Figures, LatencyFigures } from './figures.ts'

/** CPU budgets of requests, measured with 64 connections and a new address for each request. */
const BARE_US = 7.5
/** By store: CPU time against the bare server's. `redisUs`: of Redis, on a core that runs the bare server at BARE_US. */
const BUDGETS: Readonly<Record<Endpoint, Readonly<Record<StoreKind | 'redisUs', number>>>> = {
  challenge: { redis: 2.2, embedded: 1.9, redisUs: 4.5 },
  verify: { redis: 2.4, embedded: 2.2, redisUs: 4.5 },
  'verify-token': { redis: 2.3, embedded: 2.3, redisUs: 6 },
}

/** All repetitions of one case. */
export interface ReportOf<Measured> {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  readonly isOk: boolean
  /** Why the figures are worth less than others, or nothing. */
  readonly notes: readonly string[]
  readonly figures: Readonly<Partial<Record<keyof Measured, Spread>>>
}

export type CaseReport = ReportOf<Figures>
export type LatencyReport = ReportOf<LatencyFigures>

/** Below this the worker waited for load, and its figures include waking up for it. */
const BUSY_MIN = 0.8
const UNSEEDED_MAX = 0.01
/** A generator that is later than its timer's granularity was held up, or had too much to do. */
const OWN_DELAY_MS_MAX = 5
const RATE_KEPT_MIN = 0.99
const WAITED_MAX = 0.01

export function reportCases(runs: readonly Run[]): CaseReport[] {
  return grouped(runs).map(ofCase => {
    const report = aggregated<Figures>(ofCase)
    const { workerBusy } = report.figures
    const isIdle = workerBusy !== undefined && workerBusy.median < BUSY_MIN
    return isIdle ? { ...report, notes: [...report.notes, 'worker not busy'] } : report
  })
}

export function reportLatencies(runs: readonly LatencyRun[]): LatencyReport[] {
  return grouped(runs).map(ofCase => {
    const report = aggregated<LatencyFigures>(ofCase)
    return {
      ...report,
      notes: [...report.notes, ...lagNotes(ofCase.flatMap(({ figures }) => figures ?? []))],
    }
  })
}

/** The runs of each case, in the order in which cases came first. */
function grouped<Measured>(runs: readonly RunOf<Measured>[]): RunOf<Measured>[][] {
  const cases = new Map<string, RunOf<Measured>[]>()
  for (const run of runs) {
    const name = `${run.endpoint} ${run.server}`
    cases.set(name, [...(cases.get(name) ?? []), run])
  }
  return [...cases.values()]
}

function aggregated<Measured extends object>(runs: readonly RunOf<Measured>[]): ReportOf<Measured> {
  const { endpoint, server } = runs[0]!
  const failures = runs.flatMap(run => run.failure ?? [])
  const figures = spreadsOf(runs.flatMap(run => run.figures ?? []))
  const notes: string[] = []
  if (failures.length > 0) notes.push(`FAILED: ${failures[0]}`)
  const { othersBusy } = figures as { othersBusy?: Spread }
  const disturbance = disturbanceNote(othersBusy?.median)
  if (disturbance !== '') notes.push(disturbance)
  if (runs.some(run => run.ranOut)) notes.push('requests ran out early')
  const unseeded = Math.max(...runs.map(({ unseededShare }) => unseededShare))
  if (unseeded > UNSEEDED_MAX) notes.push(`${percent(unseeded)} had not fetched a challenge`)
  return { endpoint, server, isOk: failures.length === 0, notes, figures }
}

/** The spread of each figure over the repetitions. */
function spreadsOf<Measured extends object>(
  all: readonly Measured[],
): Partial<Record<keyof Measured, Spread>> {
  const spreads: Partial<Record<keyof Measured, Spread>> = {}
  for (const name of Object.keys(all[0] ?? {}) as (keyof Measured)[]) {
    spreads[name] = spreadOf(all.flatMap(({ [name]: value }) => (value ?? []) as number | []))
  }
  return spreads
}

/** Each is about the worst repetition: a rate that was not kept even once spoils what it is compared with. */
function lagNotes(all: readonly LatencyFigures[]): string[] {
  if (all.length === 0) return []
  const notes: string[] = []
  const kept = Math.min(...all.map(({ ratePerSecond, wantedPerSecond }) => ratePerSecond / wantedPerSecond))
  if (kept < RATE_KEPT_MIN) notes.push(`RATE NOT KEPT: ${percent(kept)} of it`)
  const ownDelayMs = Math.max(...all.map(({ ownDelayP99Ms }) => ownDelayP99Ms))
  if (ownDelayMs > OWN_DELAY_MS_MAX) notes.push(`the generator lagged (99%: ${ownDelayMs.toFixed(1)} ms)`)
  const waited = Math.max(...all.map(({ waitedShare }) => waitedShare))
  if (waited > WAITED_MAX) notes.push(`${percent(waited)} waited for a connection`)
  return notes
}

/** One line for each run, while people wait. */
export function progressLine({ endpoint, server, figures, failure }: Run): string {
  if (failure !== undefined) return `${endpoint} on ${server}: FAILED: ${failure}`
  if (figures === undefined) return `${endpoint} on ${server}: nothing measured`
  const { requestsPerSecond, cpuUs, timesBare } = figures
  const ratio = timesBare === undefined ? '' : `, ${timesBare.toFixed(2)} x bare`
  return `${endpoint} on ${server}: ${requestsPerSecond.toFixed(0)}/s, ${cpuUs.toFixed(2)} us${ratio}`
}

export function latencyProgressLine({ endpoint, server, figures, failure }: LatencyRun): string {
  if (failure !== undefined) return `${endpoint} on ${server}, fixed rate: FAILED: ${failure}`
  if (figures === undefined) return `${endpoint} on ${server}, fixed rate: nothing measured`
  const { ratePerSecond, latencyP50Ms, latencyP99Ms } = figures
  const latencies = `p50 ${latencyP50Ms.toFixed(2)} ms, p99 ${latencyP99Ms.toFixed(2)} ms`
  return `${endpoint} on ${server}, fixed rate of ${ratePerSecond.toFixed(0)}/s: ${latencies}`
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

function share(spread: Spread | undefined): string {
  return spread === undefined ? '-' : percent(spread.median)
}

function mebibytes(before: Spread | undefined, after: Spread | undefined): string {
  return before === undefined ? '-' : `${before.median.toFixed(0)} -> ${after!.median.toFixed(0)}`
}

function loadTable(cases: readonly CaseReport[]): ReportTable {
  const figures = ['CPU us/request', 'x bare', 'budget', 'Redis us/request', 'budget', 'requests/s', 'busy']
  const columns = [...figures, 'p50 ms', 'p99 ms', 'worker MiB'].map(right)
  const rows = cases.map(report => {
    const { endpoint, server, notes, figures } = report
    const [budget, redisBudget] = budgetsOf(report, cases)
    return [
      endpoint,
      server,
      text(figures.cpuUs, 2),
      text(figures.timesBare, 2),
      budget!,
      text(figures.redisUs, 2),
      redisBudget!,
      text(figures.requestsPerSecond, 0),
      share(figures.workerBusy),
      text(figures.latencyP50Ms, 2),
      text(figures.latencyP99Ms, 2),
      mebibytes(figures.workerMibBefore, figures.workerMibAfter),
      notes.join('; '),
    ]
  })
  const named = [left('endpoint'), left('server'), ...columns, left('notes')]
  return { kind: 'table', title: 'At full load', columns: named, rows }
}

function redisTable(cases: readonly CaseReport[]): ReportTable {
  const figures = ['us/request', 'requests/script call', 'commands/request', 'bytes in', 'bytes out', 'MiB']
  const rows = cases.map(({ endpoint, figures }) => [
    endpoint,
    text(figures.redisUs, 2),
    text(figures.redisBatch, 1),
    text(figures.redisCommands, 2),
    text(figures.redisInBytes, 0),
    text(figures.redisOutBytes, 0),
    mebibytes(figures.redisMibBefore, figures.redisMibAfter),
  ])
  const columns = [left('endpoint'), ...figures.map(right)]
  return { kind: 'table', title: 'Redis at full load', columns, rows }
}

function latencyTable(latencies: readonly LatencyReport[]): ReportTable {
  const figures = ['requests/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'max ms', 'own p50 ms', 'own p99 ms', 'busy']
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
    share(figures.workerBusy),
    notes.join('; '),
  ])
  const columns = [left('endpoint'), left('server'), ...figures.map(right), left('notes')]
  return { kind: 'table', title: 'Latency at a fixed rate', columns, rows }
}

function loadLegend({ repeat, seconds, warmup, connections, direct, noSeed }: Options): string {
  const clients = direct ? 'one client address' : 'distinct client addresses behind a proxy'
  const seeds = direct || noSeed ? '' : ', which have fetched a challenge before they come to /verify'
  return `Median (range) of ${repeat} x ${seconds} s after ${warmup} s of the same load, ${connections} connections, ${clients}${seeds}; Node.js ${process.version}.
us/request: CPU time, user and system, of all processes of the server. x bare: taken within a repetition. Redis' budget is
for a core that runs the bare server at ${BARE_US} us, scaled to this one. OVER: the median is above the budget.
busy: CPU time of the worker over measured time; under ${percent(BUSY_MIN)} it is marked.
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

export function reportOf(
  cases: readonly CaseReport[],
  latencies: readonly LatencyReport[],
  options: Options,
): Report {
  const withRedis = cases.filter(({ figures }) => figures.redisUs !== undefined)
  const section = (table: ReportTable, legend: string): ReportPart[] =>
    table.rows.length === 0 ? [] : [table, { kind: 'text', text: legend }]
  return {
    title: 'powgate over HTTP',
    intro:
      'The service on loopback, beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes. Ratios are taken within a repetition; they count, not the absolutes.',
    parts: [
      ...section(loadTable(cases), loadLegend(options)),
      ...section(redisTable(withRedis), REDIS_LEGEND),
      ...section(latencyTable(latencies), latencyLegend(options)),
    ],
  }
}
