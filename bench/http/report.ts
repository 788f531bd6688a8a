/** The repetitions of each case as medians and ranges, and these as tables beside their budgets. */

import type { Endpoint } from '../../test/harness/load/traffic.ts'
import { type Spread, spreadOf } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  type Aim,
  aimsText,
  left,
  percent,
  type Report,
  type ReportPart,
  type ReportTable,
  rangeNote,
  right,
  table,
  text,
} from '../report/report.ts'
import type { Run, ServerKind } from './cases.ts'
import type { Figures, LatencyFigures } from './figures.ts'
import type { LatencyRun } from './inside.ts'
import type { Options } from './options.ts'

/** CPU budgets of requests, measured with 64 connections and a new address for each request. */
const BARE_US = 7.5
/** By store: CPU time against the bare server's. `redisUs`: of Redis, on a core that runs the bare server at BARE_US. */
const BUDGETS: Readonly<Record<Endpoint, Readonly<Record<StoreKind | 'redisUs', number>>>> = {
  challenge: { redis: 2.2, embedded: 1.9, redisUs: 4.5 },
  verify: { redis: 2.4, embedded: 2.2, redisUs: 4.5 },
  'verify-token': { redis: 2.3, embedded: 2.3, redisUs: 6 },
}

/** All repetitions of one case. */
interface ReportOf<Measured> {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  readonly isOk: boolean
  /** Why the figures are worth less than others, or nothing. */
  readonly notes: readonly string[]
  readonly figures: Readonly<Partial<Record<keyof Measured, Spread>>>
}

export type CaseReport = ReportOf<Figures>
/** @property busy the share of the worker that was asked for, in per cent; undefined if a rate was */
export type LatencyReport = ReportOf<LatencyFigures> & { readonly busy: number | undefined }

/** Below this the worker waited for load, and its figures include waking up for it. */
const BUSY_MIN = 0.8
const UNSEEDED_MAX = 0.01
/** A generator that is later than its timer's granularity was held up, or had too much to do. */
const OWN_DELAY_MS_MAX = 5
const RATE_KEPT_MIN = 0.99
const WAITED_MAX = 0.01

export function reportCases(runs: readonly Run[]): CaseReport[] {
  return grouped(runs, ({ endpoint, server }) => `${endpoint} ${server}`).map(ofCase => {
    const { endpoint, server } = ofCase[0]!
    const figures = spreadsOf(ofCase.flatMap(run => run.figures ?? []))
    const { isOk, notes } = judged(ofCase, figures)
    if (ofCase.some(run => run.ranOut)) notes.push('requests ran out early')
    const unseeded = Math.max(...ofCase.map(({ unseededShare }) => unseededShare))
    if (unseeded > UNSEEDED_MAX) notes.push(`${percent(unseeded)} had not fetched a challenge`)
    if (figures.workerBusy !== undefined && figures.workerBusy.median < BUSY_MIN)
      notes.push('worker not busy')
    if (figures.cpuUs !== undefined) notes.push(rangeNote(figures.cpuUs))
    return { endpoint, server, isOk, notes: notes.filter(Boolean), figures }
  })
}

export function reportLatencies(runs: readonly LatencyRun[]): LatencyReport[] {
  return grouped(runs, ({ endpoint, server, busy }) => `${endpoint} ${server} ${busy}`).map(ofCase => {
    const { endpoint, server, busy } = ofCase[0]!
    const all = ofCase.map(run => run.figures)
    const figures = spreadsOf(all)
    const { isOk, notes } = judged(ofCase, figures)
    return { endpoint, server, busy, isOk, notes: [...notes, ...lagNotes(all)].filter(Boolean), figures }
  })
}

/** The runs of each case, in the order in which cases came first. */
function grouped<One>(runs: readonly One[], nameOf: (run: One) => string): One[][] {
  const cases = new Map<string, One[]>()
  for (const run of runs) cases.set(nameOf(run), [...(cases.get(nameOf(run)) ?? []), run])
  return [...cases.values()]
}

function judged(
  runs: readonly { readonly failure: string | undefined }[],
  { othersBusy }: { readonly othersBusy?: Spread },
) {
  const failures = runs.flatMap(run => run.failure ?? [])
  const notes = [failures.length > 0 ? `FAILED: ${failures[0]}` : '', disturbanceNote(othersBusy?.median)]
  return { isOk: failures.length === 0, notes }
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
  const { ratePerSecond, workerBusy, latencyP50Ms, latencyP99Ms } = figures
  const latencies = `p50 ${latencyP50Ms.toFixed(2)} ms, p99 ${latencyP99Ms.toFixed(2)} ms`
  return `${endpoint} on ${server}, ${ratePerSecond.toFixed(0)}/s, ${percent(workerBusy)} busy: ${latencies}`
}

/** What a case may cost: against the bare server, and Redis on a core as fast as this one; undefined where there is no budget. */
function budgetsOf(
  { endpoint, server, figures }: CaseReport,
  cases: readonly CaseReport[],
): { readonly timesBare?: number; readonly redisUs?: number } {
  if (server === 'bare') return {}
  const budget = BUDGETS[endpoint]
  const bare = cases.find(one => one.endpoint === endpoint && one.server === 'bare')?.figures.cpuUs
  const hasRedis = figures.redisUs !== undefined && bare !== undefined
  return {
    timesBare: budget[server],
    ...(hasRedis && { redisUs: (budget.redisUs * bare.median) / BARE_US }),
  }
}

function budgetText(spent: Spread | undefined, budget: number | undefined, digits: number): string {
  if (budget === undefined) return ''
  const isOver = spent !== undefined && spent.median > budget
  return `${isOver ? 'OVER ' : ''}${budget.toFixed(digits)}`
}

/** Of the p99 at this share of the worker, above that of the bare server at the same rate. */
const [TAIL_BUSY, TAIL_MS_MAX] = [50, 5]

export function aimsOf(cases: readonly CaseReport[], latencies: readonly LatencyReport[]): Aim[] {
  const budgets = cases.flatMap(one => {
    const { timesBare, redisUs } = budgetsOf(one, cases)
    const aim = (what: string, spent: Spread | undefined, budget: number | undefined): Aim[] => {
      if (spent === undefined || budget === undefined) return []
      const about = `/${one.endpoint} on ${one.server}: ${what} at most ${budget.toFixed(1)}`
      return [{ about, isMet: spent.median <= budget, found: text(spent, 2) }]
    }
    return [
      ...aim("times the bare server's CPU time", one.figures.timesBare, timesBare),
      ...aim("us of Redis' CPU time", one.figures.redisUs, redisUs),
    ]
  })
  const tails = latencies.flatMap(
    ({ endpoint, server, busy, figures: { latencyP99Ms, bareP99Ms } }): Aim[] => {
      if (busy !== TAIL_BUSY || latencyP99Ms === undefined || bareP99Ms === undefined) return []
      const aboveMs = latencyP99Ms.median - bareP99Ms.median
      return [
        {
          about: `/${endpoint} on ${server}, worker ${busy}% busy: p99 at most ${TAIL_MS_MAX} ms above the bare server's`,
          isMet: aboveMs <= TAIL_MS_MAX,
          found: `${aboveMs.toFixed(1)} ms`,
        },
      ]
    },
  )
  return [...budgets, ...tails]
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
    const budgets = budgetsOf(report, cases)
    return [
      endpoint,
      server,
      text(figures.cpuUs, 2),
      text(figures.timesBare, 2),
      budgetText(figures.timesBare, budgets.timesBare, 1),
      text(figures.redisUs, 2),
      budgetText(figures.redisUs, budgets.redisUs, 2),
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
  const figure = (title: string, name: keyof LatencyFigures, digits: number) =>
    [right(title), ({ figures }: LatencyReport) => text(figures[name], digits)] as const
  return table<LatencyReport>(
    'Latency at fixed rates',
    [
      [left('endpoint'), ({ endpoint }) => endpoint],
      [left('server'), ({ server }) => server],
      [right('busy'), ({ figures }) => share(figures.workerBusy)],
      figure('requests/s', 'ratePerSecond', 0),
      figure('p50 ms', 'latencyP50Ms', 2),
      figure('p99 ms', 'latencyP99Ms', 2),
      figure('p99.9 ms', 'latencyP999Ms', 1),
      figure('max ms', 'latencyMaxMs', 1),
      figure('bare p99', 'bareP99Ms', 2),
      figure('bare max', 'bareMaxMs', 1),
      figure('loop p99', 'loopDelayP99Ms', 1),
      figure('loop max', 'loopDelayMaxMs', 1),
      figure('young/s', 'youngPerSecond', 1),
      figure('whole/s', 'wholePerSecond', 2),
      figure('longest ms', 'longestCollectionMs', 1),
      [left('notes'), ({ notes }) => notes.join('; ')],
    ],
    latencies,
  )
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

const LATENCY_LEGEND = `\
Rates at which the worker is so busy. Latency runs from when a request was due, whether or not it could be sent then, to the last
byte of its answer. bare: the bare server at the same rate, which has the delays of the machine and of the generator, the floor of what
can be told here. loop: how late the worker's event loop came to a timer of 1 ms. young, whole: collections of the young generation
and of the whole heap; longest: the longest pause for one.`

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
      ...section(latencyTable(latencies), LATENCY_LEGEND),
      aimsText(aimsOf(cases, latencies)),
    ],
  }
}
