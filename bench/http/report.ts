/** Aggregates the repetitions of each case into medians and ranges. */

import { type Spread, spreadOf } from '../support/statistics.ts'
import type { LatencyRun, Run, RunOf, ServerKind } from './cases.ts'
import type { Figures, LatencyFigures } from './figures.ts'
import type { Options } from './options.ts'
import type { Endpoint } from './traffic.ts'

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
export const BUSY_MIN = 0.8
/** Above this share of a core somebody else used the machine too, its caches and its scheduler included. */
const OTHERS_BUSY_MAX = 0.15
const UNSEEDED_MAX = 0.01
/** A generator that is later than its timer's granularity was held up, or had too much to do. */
const OWN_DELAY_MS_MAX = 5
const RATE_KEPT_MIN = 0.99
const WAITED_MAX = 0.01

export function reportCases(runs: readonly Run[]): CaseReport[] {
  return grouped(runs).map(ofCase => {
    const report = reportOf<Figures>(ofCase)
    const { workerBusy } = report.figures
    const isIdle = workerBusy !== undefined && workerBusy.median < BUSY_MIN
    return isIdle ? { ...report, notes: [...report.notes, 'worker not busy'] } : report
  })
}

export function reportLatencies(runs: readonly LatencyRun[]): LatencyReport[] {
  return grouped(runs).map(ofCase => {
    const report = reportOf<LatencyFigures>(ofCase)
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

function reportOf<Measured extends object>(runs: readonly RunOf<Measured>[]): ReportOf<Measured> {
  const { endpoint, server } = runs[0]!
  const failures = runs.flatMap(run => run.failure ?? [])
  const figures = spreadsOf(runs.flatMap(run => run.figures ?? []))
  const notes: string[] = []
  if (failures.length > 0) notes.push(`FAILED: ${failures[0]}`)
  const { othersBusy } = figures as { othersBusy?: Spread }
  if (othersBusy !== undefined && othersBusy.median > OTHERS_BUSY_MAX) {
    notes.push(`others used ${percent(othersBusy.median)} of a core`)
  }
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

function percent(share: number): string {
  return `${(share * 100).toFixed(0)}%`
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

export function jsonText(
  cases: readonly CaseReport[],
  latencies: readonly LatencyReport[],
  options: Options,
): string {
  return JSON.stringify({ node: process.version, options, cases, latencies }, undefined, 2)
}
