/** From runs to what is printed: medians and ranges over the repetitions of each case. */

import { type Spread, spreadOf } from '../support/statistics.ts'
import { type Column, renderTable, spreadText } from '../support/table.ts'
import type { Figures, Run, ServerKind } from './cases.ts'
import type { Options } from './options.ts'
import type { Endpoint } from './traffic.ts'

/** All repetitions of one case. */
export interface CaseReport {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  readonly isOk: boolean
  /** Why the figures are worth less than others, or nothing. */
  readonly notes: readonly string[]
  readonly figures: Readonly<Partial<Record<keyof Figures, Spread>>>
}

/** Below this the worker waited for load, and its figures include waking up for it. */
const BUSY_MIN = 0.8
/** Above this share of a core somebody else used the machine too, its caches and its scheduler included. */
const OTHERS_BUSY_MAX = 0.15

export function reportCases(runs: readonly Run[]): CaseReport[] {
  const cases = new Map<string, Run[]>()
  for (const run of runs) {
    const name = `${run.endpoint} ${run.server}`
    cases.set(name, [...(cases.get(name) ?? []), run])
  }
  return [...cases.values()].map(reportCase)
}

function reportCase(runs: readonly Run[]): CaseReport {
  const { endpoint, server } = runs[0]!
  const failures = runs.flatMap(run => run.failure ?? [])
  const all = runs.flatMap(run => run.figures ?? [])
  const figures: Partial<Record<keyof Figures, Spread>> = {}
  for (const name of Object.keys(all[0] ?? {}) as (keyof Figures)[]) {
    figures[name] = spreadOf(all.flatMap(({ [name]: value }) => value ?? []))
  }
  const notes: string[] = []
  if (failures.length > 0) notes.push(`FAILED: ${failures[0]}`)
  if (figures.workerBusy !== undefined && figures.workerBusy.median < BUSY_MIN) notes.push('worker not busy')
  if (figures.othersBusy !== undefined && figures.othersBusy.median > OTHERS_BUSY_MAX) {
    notes.push(`others used ${(figures.othersBusy.median * 100).toFixed(0)}% of a core`)
  }
  if (runs.some(run => run.ranOut)) notes.push('requests ran out early')
  return { endpoint, server, isOk: failures.length === 0, notes, figures }
}

/** One line for each run, while people wait. */
export function progressLine({ endpoint, server, figures, failure }: Run): string {
  if (failure !== undefined) return `${endpoint} on ${server}: FAILED: ${failure}`
  if (figures === undefined) return `${endpoint} on ${server}: nothing measured`
  const { requestsPerSecond, workerUs, timesBare } = figures
  const ratio = timesBare === undefined ? '' : `, ${timesBare.toFixed(2)} x bare`
  return `${endpoint} on ${server}: ${requestsPerSecond.toFixed(0)}/s, ${workerUs.toFixed(2)} us${ratio}`
}

const COLUMNS: readonly Column[] = [
  { title: 'endpoint', align: 'left' },
  { title: 'server', align: 'left' },
  { title: 'worker us/request', align: 'right' },
  { title: 'x bare', align: 'right' },
  { title: 'Redis us/request', align: 'right' },
  { title: 'requests/s', align: 'right' },
  { title: 'busy', align: 'right' },
  { title: 'p50 ms', align: 'right' },
  { title: 'p99 ms', align: 'right' },
  { title: 'worker MiB', align: 'right' },
  { title: 'notes', align: 'left' },
]

export function tableText(cases: readonly CaseReport[], options: Options): string {
  const table = renderTable(COLUMNS, cases.map(row))
  return `${table}\n\n${legend(options)}`
}

function row({ endpoint, server, notes, figures }: CaseReport): string[] {
  const text = (spread: Spread | undefined, digits: number) =>
    spread === undefined ? '-' : spreadText(spread, digits)
  const { workerMibBefore: before, workerMibAfter: after, workerBusy: busy } = figures
  return [
    endpoint,
    server,
    text(figures.workerUs, 2),
    text(figures.timesBare, 2),
    text(figures.redisUs, 2),
    text(figures.requestsPerSecond, 0),
    busy === undefined ? '-' : `${(busy.median * 100).toFixed(0)}%`,
    text(figures.latencyP50Ms, 2),
    text(figures.latencyP99Ms, 2),
    before === undefined ? '-' : `${before.median.toFixed(0)} -> ${after!.median.toFixed(0)}`,
    notes.join('; '),
  ]
}

function legend({ repeat, seconds, connections, isForwarded }: Options): string {
  const clients = isForwarded ? 'distinct client addresses behind a proxy' : 'one client address'
  return `Median (range) of ${repeat} x ${seconds} s, ${connections} connections, ${clients}, Node.js ${process.version}.
us/request: CPU time, user and system. busy: CPU time of the worker over measured time; under ${BUSY_MIN * 100}% it is marked.
Latencies are those of a closed loop: the load waits when the server does. MiB: resident before and after.`
}

export function jsonText(cases: readonly CaseReport[], options: Options): string {
  return JSON.stringify({ node: process.version, options, cases }, undefined, 2)
}
